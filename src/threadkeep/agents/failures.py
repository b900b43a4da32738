"""Exceptions as they are recorded, and raised again: the same way on the first run as on every later one."""

from typing import Any, cast

import msgspec
from msgspec import Raw

from threadkeep.agents.errors import (
    AgentUnusable,
    BudgetExceeded,
    Denied,
    ModelFailed,
    OutcomeUnknown,
    OutputInvalid,
    StepFailed,
    StepLimit,
    StepResultInvalid,
    StepResultTooLarge,
    ToolFailed,
    TurnError,
)
from threadkeep.agents.loading import recorded_module
from threadkeep.agents.values import Unstorable, encode
from threadkeep.domain.text import storable
from threadkeep.wire.programs import (
    AGENT_UNUSABLE,
    BUDGET_EXCEEDED,
    DENIED,
    MODEL_FAILED,
    NOTHING,
    OUTCOME_UNKNOWN,
    OUTPUT_INVALID,
    RESULT_INVALID,
    RESULT_TOO_LARGE,
    STEP_LIMIT,
    TOOL_FAILED,
    ClaimFailed,
    ProgramError,
)

MOST_MESSAGE_CHARACTERS = 16_384
MOST_ARGUMENT_BYTES = 64 * 1024

_CLASSES: dict[str, type[TurnError]] = {
    OUTCOME_UNKNOWN: OutcomeUnknown,
    DENIED: Denied,
    BUDGET_EXCEEDED: BudgetExceeded,
    MODEL_FAILED: ModelFailed,
    OUTPUT_INVALID: OutputInvalid,
    TOOL_FAILED: ToolFailed,
    AGENT_UNUSABLE: AgentUnusable,
    STEP_LIMIT: StepLimit,
    RESULT_INVALID: StepResultInvalid,
    RESULT_TOO_LARGE: StepResultTooLarge,
}
_ENDS_AN_ITERATION = (StopIteration, StopAsyncIteration)
"""Raised in a coroutine, they become a `RuntimeError`."""


def record(error: BaseException) -> ProgramError:
    """An exception as it is recorded: without its traceback."""
    kind = error.__class__
    return ProgramError(f"{kind.__module__}.{kind.__qualname__}", message_of(error), _arguments(error))


def message_of(error: BaseException) -> str:
    """What an exception says, within limits."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an exception whose own code fails; it is about to be recorded
        message = "(no message: its `__str__` failed)"
    if len(message) > MOST_MESSAGE_CHARACTERS:
        message = f"{message[:MOST_MESSAGE_CHARACTERS]}…"
    return storable(message)


def _arguments(error: BaseException) -> Raw:
    try:
        encoded = encode(error.args)
    except Unstorable:
        return NOTHING
    return Raw(encoded) if len(encoded) <= MOST_ARGUMENT_BYTES else NOTHING


def raised_by(name: str, failed: ClaimFailed) -> Exception:
    """What a claim that failed raises: an exception of ours, or the program's own."""
    if failed.code in _CLASSES:
        return _CLASSES[failed.code](failed.error.message)
    return rebuilt(name, failed.error)


def rebuilt(name: str, error: ProgramError) -> Exception:
    """A recorded exception as its own class, if that gives the same; otherwise StepFailed."""
    kind = _class_of(error.type)
    if kind is not None and bytes(error.args):
        try:
            again = kind(*msgspec.json.decode(error.args))
            if type(again) is kind and message_of(again) == error.message:
                return again
        except Exception:  # noqa: BLE001, S110 - a class of the program that takes other arguments
            pass
    return StepFailed(name, error.type.removeprefix("builtins."), error.message)


def _class_of(path: str) -> type[Exception] | None:
    """An exception class by its path."""
    found: Any = None
    module_name, _, names = path.rpartition(".")
    while module_name and (found := recorded_module(module_name)) is None:
        module_name, _, outer = module_name.rpartition(".")
        names = f"{outer}.{names}"
    for part in names.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or not issubclass(found, Exception):
        return None
    return None if issubclass(found, _ENDS_AN_ITERATION) else found


def leading(error: BaseException) -> BaseException:
    """The exception that says most: of a group, the first of ours that has a code."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    inner = [leading(it) for it in group.exceptions]
    ours = [it for it in inner if isinstance(it, TurnError)]
    return ours[0] if ours else inner[0] if len(inner) == 1 else group


def without_values(error: BaseException, most: int = 10) -> BaseException:
    """An exception for the log: its class, its traceback, its causes and those that it groups; so many of
    them at most, one in another. Only ours say what is wrong.
    """
    bare = _bare(error, most).with_traceback(error.__traceback__)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and most > 1:
        bare.__cause__ = without_values(cause, most - 1)
    return bare


def _bare(error: BaseException, most: int) -> BaseException:
    if not isinstance(error, BaseExceptionGroup) or most < 2:
        return _named(cast("BaseException", error))
    group = cast("BaseExceptionGroup[BaseException]", error)
    return BaseExceptionGroup("", [without_values(it, most // 2) for it in group.exceptions[:most]])


def _named(error: BaseException) -> Exception:
    kind = type(error)
    named = {"__module__": kind.__module__}
    bare = cast("type[Exception]", type(kind.__qualname__, (Exception,), named))
    hint = error.hint if isinstance(error, TurnError) and kind.__module__ == TurnError.__module__ else None
    return bare(hint) if hint else bare()
