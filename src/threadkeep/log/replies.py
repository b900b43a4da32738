"""Converts between replies and the logs of their turns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, assert_never, cast

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
    Notice,
    Retrieval,
    ReturnedImage,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.message import Message, MessageStatus, Usage
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    Part,
    Parts,
    QuestionPart,
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Turn
from threadkeep.engine.fold import fold
from threadkeep.log.format import decode_chunk, encode_replayed
from threadkeep.ports.turn_log import LogChunk, TurnLogStore

Result = Literal["ok", "error", "timeout", "denied", "interrupted", "unknown"]


async def written_so_far(log: TurnLogStore, message: Message) -> Message:
    """A reply in progress, up to the end of its turn's log; any other message unchanged."""
    if message.completed_at is not None or message.turn_id is None:
        return message
    chunks = await log.read(message.turn_id, 0)
    return fold(message, (event for chunk in chunks for event in decode_chunk(chunk.events)))


def replayed(turn: Turn, reply: Message) -> LogChunk:
    """The events of a turn whose log was trimmed, rebuilt from its message; each is marked as such."""
    events = list(events_of(turn, reply))
    return LogChunk(turn.id, 1, len(events), encode_replayed(events))


def events_of(turn: Turn, reply: Message) -> Iterator[TurnEvent]:
    """Events that fold to the reply, as far as its parts have events."""
    for seq, (at, body) in enumerate(_bodies(turn, reply), 1):
        yield TurnEvent(turn.id, seq, at, body)


def _bodies(turn: Turn, reply: Message) -> Iterator[tuple[int, EventBody]]:
    yield turn.started_at, TurnStart.of(turn)
    yield from _of_parts(reply.parts, turn.started_at)
    ended_at = turn.ended_at or turn.started_at
    if reply.usage is not None:
        yield ended_at, UsageReported.of(reply.usage, reply.model)
    yield ended_at, _end(reply)


def _of_parts(parts: Parts, now: int) -> Iterator[tuple[int, EventBody]]:
    """The events of the parts; a text has no time, so it gets the end of the part before it."""
    iteration = 0
    images = _images_by_call(parts)
    for part in parts:
        if part.superseded:
            continue
        if part.iteration != iteration:
            iteration = part.iteration
            yield now, IterationStart(iteration)
        for at, body in _of_part(part, now, images):
            yield at, body
            now = at
        if isinstance(part, ThoughtPart):
            now = part.started_at + part.duration_ms


_Images = Mapping[str, Sequence[ReturnedImage]]


def _images_by_call(parts: Parts) -> _Images:
    images: dict[str, list[ReturnedImage]] = {}
    for part in parts:
        if isinstance(part, FilePart) and part.tool_call_id and not part.superseded:
            images.setdefault(part.tool_call_id, []).append(returned_image(part))
    return images


def _of_part(part: Part, now: int, images: _Images) -> Iterator[tuple[int, EventBody]]:
    match part:
        case TextPart():
            yield now, Text(part.text)
        case ThoughtPart():
            yield part.started_at, Thought(part.text if part.title is None else _titled(part))
        case ToolCallPart(call=call):
            yield call.created_at, _called(call, asks=part.approval is not None)
            if part.approval is not None:
                yield from _asked(call, ApprovalKind.TOOL, part.approval)
            if part.client_request is not None:
                yield from _asked(call, ApprovalKind.CLIENT_TOOL, part.client_request)
            if call.status is not ToolCallStatus.RUNNING:
                yield (
                    call.created_at + (call.duration_ms or 0),
                    _resulted(call, images.get(call.tool_call_id, ())),
                )
        case RetrievalPart():
            yield part.at, Retrieval(part.query, part.hits, part.tool_call_id)
        case NoticePart():
            yield part.at, Notice(part.code, part.message)
        case QuestionPart():
            yield part.at, _question(part)
            if part.decision is not None:
                yield part.decision.at, _response(part.request_id, part.decision)
        case UserTextPart():
            yield part.at, UserMessage(part.message_id, part.text)
        case FilePart() | CardPart():  # a call's event has its images; the others have no event
            return
        case _ as never:
            assert_never(never)


def _titled(part: ThoughtPart) -> str:
    """A step of another engine: an event has no title, so the text begins with it."""
    return f"{part.title}: {part.text}" if part.text else f"{part.title}"


def _asked(
    call: ToolCall, kind: ApprovalKind, asked: CallApproval
) -> Iterator[tuple[int, ApprovalRequest | ApprovalResponse]]:
    """A request about a call and, if there is one, the decision."""
    request = ApprovalRequest(
        request_id=asked.request_id,
        kind=kind,
        message=asked.message,
        expires_at=asked.expires_at,
        tool_call_id=call.tool_call_id,
    )
    yield call.created_at, request
    if asked.decision is not None:
        yield asked.decision.at, _response(asked.request_id, asked.decision)


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


def _called(call: ToolCall, *, asks: bool) -> ToolCalled:
    refs = {name: ref for name, ref in call.refs.items() if name == "arguments"}
    return ToolCalled(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        server=call.server,
        arguments=call.arguments,
        refs=refs,
        model_name=call.model_name,
        asks=asks,
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
    return Done("COMPLETED", reply.id, usage, "end_turn")
