"""Steps, as they are claimed: functions that run once, whatever crashes."""

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

from msgspec import Struct

from threadkeep.agents.agent import ChooseFunction
from threadkeep.agents.errors import AmbiguousStep, NotJson, TurnMisused
from threadkeep.agents.tool import EFFECTS, Tool, check_effect
from threadkeep.agents.values import (
    Unstorable,
    content_hash,
    result_type,
)
from threadkeep.domain.text import one_line, storable
from threadkeep.wire.programs import (
    Effect,
    StepAccess,
    StepClaim,
    bare_name,
)

MOST_NAME_CHARACTERS = 128
MOST_TITLE_CHARACTERS = 200
MOST_RETRIES = 100


class Step(Struct, frozen=True, kw_only=True):
    """A call of a function, as it is claimed."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    hash: str
    scope: str
    kind: Any
    """What it returns, by its annotation."""
    streams: bool
    """Whether it says what it yields."""
    is_alike: bool
    """Whether equal arguments make two calls at once interchangeable."""
    effect: Effect
    access: StepAccess
    tool: Tool[..., Any] | None = None
    """Set if it is shown as a call of a tool."""
    arguments: dict[str, Any] | None = None
    call_id: str | None = None
    is_tool: bool = False
    timeout_s: float | None = None
    retries: int = 0
    retries_for: type[Exception] = Exception
    title: str | None = None
    hidden: bool = False
    asks_if_unknown: bool = False
    keeps_output: bool = False

    @property
    def place(self) -> tuple[str, str, str]:
        """What identifies it, but for how often it was claimed."""
        return self.scope, self.name, self.hash

    def claim(self, id_: int) -> StepClaim:
        """What the server needs to know of it."""
        return StepClaim(
            id=id_,
            name=self.name,
            hash=self.hash,
            scope=self.scope,
            effect=self.effect,
            access=self.access,
            is_tool=self.is_tool,
            streams=self.streams,
            title=self.title,
            hidden=self.hidden,
            arguments=self.arguments,
            call_id=self.call_id,
            schema=self.tool.parameters if self.tool is not None else None,
            timeout_s=self.timeout_s,
            asks_if_unknown=self.asks_if_unknown,
            keeps_output=self.keeps_output,
        )


class StepOptions(Struct, frozen=True, kw_only=True):
    """What `turn.step` takes besides the function and its arguments."""

    effect: Effect | None = None
    """A write, unless the function is a tool that says something else."""
    access: StepAccess = "allow"
    name: str | None = None
    key: object = None
    timeout_s: float | None = None
    retries: int = 0
    retries_for: type[Exception] = Exception
    """Which exceptions are worth another attempt."""
    title: str | None = None
    hidden: bool = False
    unknown: str = "raise"
    keeps_output: bool = False
    """Of a write: whether what it said before it was cut off stays in the reply."""

    def check(self, name: str, effect: Effect) -> None:
        """Raises TurnMisused with a sentence; `effect` is what the step has in the end."""
        if self.unknown not in ("raise", "ask"):
            raise TurnMisused(f"`unknown` is raise or ask; not {self.unknown!r}.")
        if not 0 <= self.retries <= MOST_RETRIES:
            raise TurnMisused(f"`retries` is a number from 0 to {MOST_RETRIES}; not {self.retries!r}.")
        if self.retries and effect == "write":
            raise TurnMisused(
                f"Step `{name}` is a write, which is never repeated by itself. If it can be repeated, "
                'say so with `effect="idempotent"`; otherwise leave out `retries`.'
            )
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise TurnMisused(f"`timeout_s` is more than 0; not {self.timeout_s!r}.")


def step_of(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], scope: str, options: StepOptions
) -> Step:
    """A call as a step; raises what tells its author what is wrong with it."""
    effect: Effect = "write" if options.effect is None else options.effect
    access, name = options.access, options.name
    try:
        check_effect(effect, access)
    except ValueError as exc:
        raise TurnMisused(str(exc)) from None
    if isinstance(fn, Tool):
        given = cast("Tool[..., Any]", fn)
        effect = given.effect if options.effect is None else _stricter(options.effect, given.effect)
        access = "ask" if "ask" in (options.access, given.access) else "allow"
        fn, name = given.fn, name or given.name
    while isinstance(fn, functools.partial):
        fn = cast("functools.partial[Any]", fn)
        fn, args, kwargs = fn.func, (*fn.args, *args), {**fn.keywords, **kwargs}
    _check_function(fn)
    name = _step_name(fn, name)
    options.check(name, effect)
    known = _known(fn, name)
    tool = Tool(fn, effect=effect, access=access, name=_tool_name(name)) if access == "ask" else None
    return Step(
        fn=fn,
        args=args,
        kwargs=kwargs,
        name=name,
        hash=_hash(name, args, kwargs, options.key),
        scope=scope,
        kind=known.kind,
        streams=known.streams,
        is_alike=options.key is None and bool(args or kwargs) and not _closes_over(fn),
        effect=effect,
        access=access,
        tool=tool,
        arguments=tool.named(args, kwargs) if tool is not None else None,
        timeout_s=options.timeout_s,
        retries=options.retries,
        retries_for=options.retries_for,
        title=None
        if options.title is None
        else _cut(one_line(storable(options.title)), MOST_TITLE_CHARACTERS),
        hidden=options.hidden,
        asks_if_unknown=options.unknown == "ask",
        keeps_output=options.keeps_output,
    )


def tool_step(tool: Tool[..., Any], arguments: dict[str, Any], call_id: str | None, scope: str) -> Step:
    """A call of a tool that a model asked for, or the code by its name."""
    known = _known(tool.fn, tool.name)
    return Step(
        fn=tool.fn,
        args=(),
        kwargs={},
        name=tool.name,
        hash=content_hash(call_id) if call_id is not None else _hash(tool.name, (), arguments, None),
        scope=scope,
        kind=known.kind,
        streams=known.streams,
        is_alike=call_id is None,
        effect=tool.effect,
        access=tool.access,
        tool=tool,
        arguments=arguments,
        call_id=call_id,
        is_tool=True,
    )


def _stricter(one: Effect, other: Effect) -> Effect:
    """Of two effects, the one that may be repeated less freely."""
    return EFFECTS[max(EFFECTS.index(one), EFFECTS.index(other))]


def _check_function(fn: object) -> None:
    if not callable(fn):
        if inspect.iscoroutine(fn):
            fn.close()  # nobody will await it
        raise TurnMisused(
            "A step takes a function and what to call it with, `turn.step(refund, order)`; not what a call "
            "returns, as in `turn.step(refund(order))`."
        )


def _step_name(fn: Callable[..., Any], given: str | None) -> str:
    name = given if given is not None else getattr(fn, "__qualname__", "")
    if given is None and (not name or name.endswith("<lambda>")):
        raise TurnMisused(
            'A step is known by its function\'s name. Give this one a name: `turn.step(fn, name="…")`.'
        )
    if (
        not 0 < len(name) <= MOST_NAME_CHARACTERS
        or one_line(name) != name
        or "/" in name
        or not name.isprintable()
    ):
        raise ValueError(
            f"A step's name has 1 to {MOST_NAME_CHARACTERS} characters in one line, and no slash; "
            f"not {_cut(name, 60)!r}."
        )
    return name


def _tool_name(name: str) -> str:
    """A step's name as that of a tool."""
    bare = bare_name(name)
    return "".join(it if it.isascii() and (it.isalnum() or it in "_-") else "_" for it in bare)[:64]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _hash(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], key: object) -> str:
    try:
        if key is not None:
            return content_hash({"key": key})
        return content_hash([args, kwargs] if kwargs else args)
    except Unstorable as exc:
        what = "key" if key is not None else "arguments"
        raise NotJson(
            f"The {what} of step `{name}` can't be written as JSON",
            str(exc),
            "Pass plain values, and keep clients and handles in globals or closures; or give the step a "
            "`key`.",
        ) from exc


class _Known(NamedTuple):
    """What a function's steps have in common."""

    kind: Any
    streams: bool


_looked_at: WeakKeyDictionary[FunctionType, _Known] = WeakKeyDictionary()


def _known(fn: Callable[..., Any], name: str) -> _Known:
    """Looks at a module's functions and methods once: it takes longer than most of what a step is."""
    function: object = fn.__func__ if inspect.ismethod(fn) else fn
    if not isinstance(function, FunctionType) or "<locals>" in function.__qualname__:
        return _look_at(fn, name)
    known = _looked_at.get(function)
    if known is None:
        known = _looked_at[function] = _look_at(fn, name)
    return known


def _look_at(fn: Callable[..., Any], name: str) -> _Known:
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        return _Known(Any, streams=True)
    try:
        return _Known(result_type(fn), streams=False)
    except Unstorable as exc:
        raise NotJson(f"What step `{name}` returns can't be known", str(exc)) from exc


def _closes_over(fn: Callable[..., Any]) -> bool:
    """Whether something besides its arguments decides what a function does."""
    if inspect.ismethod(fn):
        return not inspect.isclass(fn.__self__)
    if inspect.isbuiltin(fn):
        return fn.__self__ is not None and not inspect.ismodule(fn.__self__)
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return code is None or bool(code.co_freevars)


class OpenSteps:
    """The steps of one agent's run whose functions run or wait to; `function_of` says what runs for each."""

    def __init__(self, function_of: ChooseFunction) -> None:
        self.function_of = function_of
        self._open = defaultdict[tuple[str, str, str], list[Step]](list)

    def add(self, step: Step) -> None:
        """Refuses a step that nothing tells apart from one that is open."""
        alike = self._open[step.place]
        if not all(_is_same(it, step) for it in alike):
            bare = step.name.rpartition(".")[2]
            how = (
                "and take no arguments"
                if not (step.args or step.kwargs)
                else "with equal arguments, though the function uses other variables, too"
            )
            raise AmbiguousStep(
                f"Two steps named `{step.name}` run at once {how}. Pass the values as arguments, "
                f"`turn.step({bare}, value)`, or give each a `key` of its own."
            )
        alike.append(step)

    def remove(self, step: Step) -> None:
        """A step has ended."""
        self._open[step.place] = [it for it in self._open[step.place] if it is not step]
        if not self._open[step.place]:
            del self._open[step.place]


def _is_same(one: Step, other: Step) -> bool:
    """Whether it makes no difference which of two calls gets which result."""
    if inspect.ismethod(one.fn) and one.fn == other.fn:
        return bool(one.args or one.kwargs)
    return one.is_alike and other.is_alike
