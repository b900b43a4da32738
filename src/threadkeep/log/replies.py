"""Converts between replies and the logs of their turns."""

import asyncio
import logging
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal, assert_never, cast

from threadkeep.aside import LogWork
from threadkeep.context.attachments import returned_image
from threadkeep.domain.approval import ApprovalKind, CallApproval, Decision
from threadkeep.domain.errors import GenerationFailed
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    IterationStart,
    LogChunk,
    Notice,
    Retrieval,
    ReturnedImage,
    StepChanged,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import Message, MessageStatus, Usage
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    OutputPart,
    Part,
    Parts,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Turn
from threadkeep.engine.fold import Folding
from threadkeep.log.format import DAMAGED, encode_replayed
from threadkeep.log.portions import passing
from threadkeep.storage.turn_log import SqlTurnLog

log = logging.getLogger("threadkeep.turns")

Result = Literal["ok", "error", "timeout", "denied", "interrupted", "unknown"]
_Timed = tuple[int, EventBody]

REPLAYED_AT_ONCE = 500
"""How many events a chunk of a replayed turn has."""


async def written_so_far(turn_log: SqlTurnLog, message: Message) -> Message:
    """A reply in progress, up to the end of its turn's log, or up to where that is damaged; any other message
    unchanged.
    """
    if message.completed_at is not None or message.turn_id is None:
        return message
    work, folding = LogWork(), Folding()
    try:
        async for chunks in turn_log.pages(message.turn_id, 0):
            await work.take(passing(folding.add), chunks, at_end=False)
    except DAMAGED as exc:  # its conversation can be read nevertheless
        log.error("couldn't read all of turn %s: %s", message.turn_id, exc)
    return await work.end(folding.message, message)


async def replayed(turn: Turn, reply: Message) -> Sequence[LogChunk]:
    """The events of a turn without a log, rebuilt from its message, each marked as such: it was trimmed, or
    the turn is not from here. In a thread, because a reply may have many thousand parts.
    """
    events, chunks = events_of(turn, reply), list[LogChunk]()
    while (chunk := await asyncio.to_thread(_next_chunk, turn.id, events)) is not None:
        chunks.append(chunk)
    return chunks


def _next_chunk(turn_id: TurnId, events: Iterator[TurnEvent]) -> LogChunk | None:
    some = list(islice(events, REPLAYED_AT_ONCE))
    return LogChunk(turn_id, some[0].seq, some[-1].seq, encode_replayed(some)) if some else None


def events_of(turn: Turn, reply: Message) -> Iterator[TurnEvent]:
    """Events that fold to the reply, as far as its parts have events."""
    for seq, (at, body) in enumerate(_bodies(turn, reply), 1):
        yield TurnEvent(turn.id, seq, at, body)


def _bodies(turn: Turn, reply: Message) -> Iterator[_Timed]:
    yield turn.started_at, TurnStart.of(turn)
    yield from _of_parts(reply.parts, turn.started_at, is_checked=reply.output is not None)
    ended_at = turn.ended_at or turn.started_at
    if reply.usage is not None:
        yield ended_at, UsageReported.of(reply.usage, reply.model)
    yield ended_at, _end(reply)


def _of_parts(parts: Parts, now: int, *, is_checked: bool) -> Iterator[_Timed]:
    """The events of the parts; a text has no time, so it gets the end of what came before it.

    Calls of a round run side by side: their results wait in `open_ends` for what begins before them.
    """
    iteration = 0
    calls = _Calls(parts)
    open_ends: list[_Timed] = []
    for part in parts:
        if part.superseded:
            continue
        if part.iteration != iteration or isinstance(part, TextPart | ThoughtPart):
            now = open_ends[-1][0] if open_ends else now
            yield from open_ends
            open_ends.clear()
        if part.iteration != iteration:
            iteration = part.iteration
            yield now, IterationStart(iteration, is_checked=is_checked)
        begins, ends = _of_part(part, now, calls)
        for timed in begins:
            while open_ends and open_ends[0][0] < timed[0]:
                yield open_ends.pop(0)
            yield timed
            now = timed[0]
        for timed in ends:
            insort(open_ends, timed, key=_at)
        if isinstance(part, ThoughtPart):
            now = part.started_at + part.duration_ms
    yield from open_ends


def _at(timed: _Timed) -> int:
    return timed[0]


class _Calls:
    """What other parts of a reply know about its calls."""

    def __init__(self, parts: Parts) -> None:
        self._images: dict[str, list[ReturnedImage]] = {}
        self._answered_at: dict[str, int] = {}
        for part in parts:
            match part:
                case FilePart(tool_call_id=str(id_), superseded=False):
                    self._images.setdefault(id_, []).append(returned_image(part))
                case QuestionPart(tool_call_id=str(id_), decision=Decision(at=at)):
                    self._answered_at[id_] = max(at, self._answered_at.get(id_, 0))
                case _:
                    pass

    def images(self, call: ToolCall) -> Sequence[ReturnedImage]:
        """The images that a call returned."""
        return self._images.get(call.tool_call_id, ())

    def ended_at(self, part: ToolCallPart) -> int:
        """When a call ended: it ran once it was allowed, and not without the answers that it asked for."""
        call = part.call
        asked = [it.decision.at for it in (part.approval, part.client_request) if it and it.decision]
        ran_at = max(call.created_at, *asked) if asked else call.created_at
        return max(ran_at + (call.duration_ms or 0), self._answered_at.get(call.tool_call_id, 0))


def _of_part(part: Part, now: int, calls: _Calls) -> tuple[Sequence[_Timed], Sequence[_Timed]]:
    """The events that begin a part, and those that come when their time has come."""
    match part:
        case TextPart():
            return [(now, Text(part.text))], ()
        case ThoughtPart():
            return [(part.started_at, Thought(part.text if part.title is None else _titled(part)))], ()
        case ToolCallPart():
            return _of_call(part, calls)
        case RetrievalPart():
            return [(part.at, Retrieval(part.query, part.hits, part.tool_call_id))], ()
        case StepPart():
            ended_at = part.at + (part.duration_ms or 0)
            ends = [(ended_at, _step(part))] if part.status != "running" else []
            return [(part.at, replace(_step(part), status="running", duration_ms=None))], ends
        case NoticePart():
            return [(part.at, Notice(part.code, part.message))], ()
        case QuestionPart():
            decision = part.decision
            ends = [(decision.at, _response(part.request_id, decision))] if decision is not None else []
            return [(part.at, _question(part))], ends
        case UserTextPart():
            return [(part.at, UserMessage(part.message_id, part.text))], ()
        case FilePart() | CardPart() | OutputPart():  # events of calls, or of the end, have these
            return (), ()
        case _ as never:
            assert_never(never)


def _of_call(part: ToolCallPart, calls: _Calls) -> tuple[Sequence[_Timed], Sequence[_Timed]]:
    call = part.call
    begins: list[_Timed] = [(call.created_at, _called(part))]
    ends: list[_Timed] = []
    for kind, asked in (
        (ApprovalKind.TOOL, part.approval),
        (ApprovalKind.CLIENT_TOOL, part.client_request),
    ):
        if asked is not None:
            begins.append((call.created_at, _asked(call, kind, asked)))
            if asked.decision is not None:
                ends.append((asked.decision.at, _response(asked.request_id, asked.decision)))
    if call.status is not ToolCallStatus.RUNNING:
        ends.append((calls.ended_at(part), _resulted(call, calls.images(call))))
    return begins, ends


def _titled(part: ThoughtPart) -> str:
    """A step of another engine: an event has no title, so the text begins with it."""
    return f"{part.title}: {part.text}" if part.text else f"{part.title}"


def _asked(call: ToolCall, kind: ApprovalKind, asked: CallApproval) -> ApprovalRequest:
    return ApprovalRequest(
        request_id=asked.request_id,
        kind=kind,
        message=asked.message,
        expires_at=asked.expires_at,
        tool_call_id=call.tool_call_id,
    )


def _step(part: StepPart) -> StepChanged:
    return StepChanged(
        step_id=part.step_id,
        name=part.name,
        kind="step",
        status=part.status,
        title=part.title,
        duration_ms=part.duration_ms,
        parent_id=part.parent_id,
        agent=part.agent,
    )


def _question(part: QuestionPart) -> ApprovalRequest:
    return ApprovalRequest(
        request_id=part.request_id,
        kind=ApprovalKind.QUESTION,
        message=part.message,
        expires_at=part.expires_at,
        tool_call_id=part.tool_call_id,
        schema=part.schema,
        url=part.url,
    )


def _response(request_id: str, decision: Decision) -> ApprovalResponse:
    return ApprovalResponse(request_id, decision.action, decision.scope, decision.arguments, decision.content)


def _called(part: ToolCallPart) -> ToolCalled:
    call = part.call
    refs = {name: ref for name, ref in call.refs.items() if name == "arguments"}
    return ToolCalled(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        server=call.server,
        arguments=call.arguments,
        refs=refs,
        model_name=call.model_name,
        asks=part.approval is not None,
        parent_id=part.parent_id,
    )


def _resulted(call: ToolCall, images: Sequence[ReturnedImage]) -> ToolResultStored:
    return ToolResultStored(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        status=cast("Result", call.status.value),
        result=call.result,
        error=call.error,
        duration_ms=call.duration_ms or 0,
        chart_data=call.chart_data,
        artifact_ids=call.artifact_ids,
        refs={name: ref for name, ref in call.refs.items() if name != "arguments"},
        images=tuple(images),
    )


def _end(reply: Message) -> Done | Failed:
    usage = reply.usage or Usage(0, 0)
    if reply.error is not None:
        return Failed(reply.error.code, reply.error.message, reply.error.retryable)
    if reply.status is MessageStatus.FAILED:  # imported: nobody knows why
        return Failed(GenerationFailed.code, "The answer failed.")
    if reply.status is MessageStatus.CANCELLED:
        return Done("CANCELLED", reply.id, usage, "aborted")
    return Done("COMPLETED", reply.id, usage, "end_turn", reply.output)
