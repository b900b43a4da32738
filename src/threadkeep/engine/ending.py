"""The end of a turn: the one place that decides its last events, whatever ended it.

A turn ends in exactly one Done or Failed. Before that, every tool call gets its one result and every model
call its usage, even if the turn was interrupted.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from threadkeep.context.estimates import estimate_tokens
from threadkeep.domain.errors import UNEXPECTED, OutputInvalid, ThreadkeepError
from threadkeep.domain.events import Done, EventBody, Failed, Terminal, ToolResultStored, UsageReported
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Message, Usage
from threadkeep.domain.parts import Part, TextPart, ThoughtPart, ToolCallPart
from threadkeep.domain.turn import Turn
from threadkeep.engine.spending import Priced, at_no_price
from threadkeep.engine.stop import StopReason
from threadkeep.ports.gateway import GatewayError

MAX_ITERATIONS = "max_iterations"
"""The stop reason of a turn that reached its limit of tool rounds."""

INTERNAL_ERROR = Failed("INTERNAL_ERROR", UNEXPECTED)
ABANDONED = Failed("INTERRUPTED", "The server couldn't continue this turn.", retryable=True)
"""The end of a turn whose node disappeared."""

NO_DECISION = "The user didn't answer."
NO_RESULT = "The client didn't send a result."
PROCESS_ENDED = "The process running the tool ended."


class UnfinishedCall(Protocol):
    """A tool call without a result."""

    @property
    def tool_call_id(self) -> str:
        """Its id."""
        ...

    @property
    def tool_name(self) -> str:
        """The tool's name on its server."""
        ...

    @property
    def server(self) -> str:
        """The tool's server."""
        ...


def completed(turn: Turn, *, stop_reason: str, has_spoken: bool, output: Any = None) -> Terminal:
    """The end of a turn that ran to completion; `output` is its reply as a value, if it is structured."""
    if has_spoken:
        return Done("COMPLETED", turn.assistant_message_id, Usage(0, 0), stop_reason, output)
    message = "The model returned an empty reply."
    if stop_reason == MAX_ITERATIONS:
        message = "The agent reached its limit of tool rounds without answering."
    return Failed("AGENTX_ERROR", message, retryable=True)


def stopped(turn: Turn, reason: StopReason, *, timeout_s: float = 0) -> Terminal:
    """The end of a turn that was stopped."""
    match reason:
        case "abort":
            return Done("CANCELLED", turn.assistant_message_id, Usage(0, 0), "aborted")
        case "expire":
            return Done("CANCELLED", turn.assistant_message_id, Usage(0, 0), "expired")
        case "timeout":
            return Failed("GENERATION_TIMEOUT", f"The turn took longer than {timeout_s:g} s.", retryable=True)
        case "interrupt" | "hand_off":
            return Failed("INTERRUPTED", "The server stopped during this turn.", retryable=True)


def failed(error: Exception, *, is_prepared: bool = True) -> Failed:
    """The end of a turn that an error interrupted; before the first model call, it can always be retried."""
    match error:
        case GatewayError() if is_prepared:
            return Failed(error.code, error.message, error.retryable)
        case OutputInvalid():
            return Failed(error.code, error.message, retryable=True)
        case ThreadkeepError():
            return Failed(error.code, error.message, retryable=not is_prepared)
        case _:
            return INTERNAL_ERROR


def last_events(
    end: Terminal,
    *,
    open_calls: Iterable[UnfinishedCall],
    why: str,
    reported: Usage,
    unreported: Usage | None,
    model: str | None = None,
    waiting: Collection[str] = (),
) -> Iterator[EventBody]:
    """What a turn's log still lacks: results of open tool calls, usage of an open model call, the end.

    `why` is what happened to the open calls; those that were waiting for their user or client are denied. A
    successful turn's end includes its total usage.
    """
    for call in open_calls:
        if call.tool_call_id in waiting:
            error = NO_RESULT if call.server == CLIENT else NO_DECISION
            yield ToolResultStored(call.tool_call_id, call.tool_name, "denied", error=error)
        else:
            yield interrupted(call, why)
    if unreported is not None:
        yield UsageReported.of(unreported, model)
    yield replace(end, usage=reported + (unreported or Usage(0, 0))) if isinstance(end, Done) else end


def interrupted(call: UnfinishedCall, why: str) -> ToolResultStored:
    """The result of a call that gets none from its tool."""
    return ToolResultStored(call.tool_call_id, call.tool_name, "interrupted", error=why)


def cut_off(
    failure: Failed,
    reply: Message,
    open_calls: Iterable[UnfinishedCall],
    *,
    open_iteration: int | None,
    request_tokens: int,
    priced: Priced = at_no_price,
) -> Iterator[EventBody]:
    """The last events of a turn that exists only as its log, folded to `reply`.

    `open_iteration` is the model call that reported no usage; the turn's first request had `request_tokens`.
    """
    unreported = None
    if open_iteration is not None:
        spent = priced(reply.model, spent_in(open_iteration, reply.parts, request_tokens))
        unreported = spent if spent.input_tokens or spent.output_tokens else None
    return last_events(
        failure,
        open_calls=open_calls,
        why=PROCESS_ENDED,
        reported=reply.usage or Usage(0, 0),
        unreported=unreported,
        model=reply.model,
    )


def spent_in(iteration: int, parts: Iterable[Part], request_tokens: int) -> Usage:
    """The usage of a model call so far, including everything sent before it in its turn."""
    counting = [part for part in parts if not part.superseded]
    sent = sum(_tokens(part) for part in counting if part.iteration < iteration)
    return Usage(request_tokens + sent, tokens_written(iteration, counting), estimated=True)


def tokens_written(iteration: int, parts: Iterable[Part]) -> int:
    """How much a model call has written so far, as an estimate."""
    return sum(_tokens(part) for part in parts if part.iteration == iteration and not part.superseded)


def _tokens(part: Part) -> int:
    match part:
        case TextPart(text=text) | ThoughtPart(text=text):
            return estimate_tokens(text)
        case ToolCallPart(call=call):
            return estimate_tokens(f"{call.tool_name}{call.arguments}{call.error or call.result or ''}")
        case _:
            return 0
