"""Responses that are read: as far as they go, to their end, or as a stream."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from threadkeep.aside import LogWork
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import TurnNotFound
from threadkeep.domain.events import LogChunk, TurnEvent
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.handling.stream import EventStream
from threadkeep.log.portions import passing
from threadkeep.protocols.narrator import Narrator
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.decode import CreateResponse
from threadkeep.protocols.openai.encode import NOTHING_SEEN, ResponseEncoder, ResponseHead, ResponseStream
from threadkeep.protocols.openai.ids import response_id
from threadkeep.protocols.openai.input_items import decision
from threadkeep.protocols.openai.items import Items
from threadkeep.runtime.following import Follower
from threadkeep.services.turns import Turns

PROTOCOL = "openai"


def no_response() -> TurnNotFound:
    """The error for a response that doesn't exist, or belongs to someone else."""
    return TurnNotFound("Response not found.")


class RequestFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a response repeats of the request for it."""

    metadata: dict[str, str] = {}
    previous_response_id: str | None = None
    conversation: str | None = None
    """As the client named it."""
    background: bool = False
    format_name: str | None = None
    """What the client calls the schema of the reply."""


def format_name(body: CreateResponse) -> str | None:
    """What a request calls the schema of the reply; None without one."""
    wanted = body.text.format if body.text else None
    return (wanted.name or "reply") if wanted and wanted.type == "json_schema" else None


def text_shown(output: Mapping[str, Any] | None, name: str | None) -> frames.TextOptions:
    """The format that a request asked for, as its response repeats it."""
    if output is None:
        return frames.TextOptions()
    return frames.TextOptions(frames.JsonObject() if name is None else frames.JsonFormat(name, output))


def choice_shown(choice: str | None) -> str | Mapping[str, str]:
    """The function that the model had to call, likewise."""
    if choice is None:
        return "auto"
    return {"type": "function", "name": choice} if choice else "required"


def head_of(turn: Turn, conversation: Conversation, part: int = 1) -> ResponseHead:
    """What is known about a response before its first event. Those of a turn share their request's fields."""
    begun_with = turn.begun_with
    fields = RequestFields()
    if begun_with is not None and begun_with.protocol == PROTOCOL:
        fields = msgspec.convert(begun_with.request_fields, RequestFields)
    previous = fields.previous_response_id if part == 1 else response_id(turn.id, part - 1)
    return ResponseHead(
        turn_id=turn.id,
        part=part,
        created_at=turn.started_at,
        model=(begun_with.asked_model if begun_with else None) or conversation.agent_id,
        conversation=fields.conversation,
        previous_response_id=previous,
        instructions=begun_with.instructions if begun_with else None,
        metadata=fields.metadata,
        tools=tools_shown(begun_with.tools if begun_with else ()),
        tool_choice=choice_shown(begun_with.tool_choice if begun_with else None),
        text=text_shown(begun_with.output if begun_with else None, fields.format_name),
        background=fields.background,
    )


def tools_shown(tools: Iterable[ClientTool]) -> Sequence[Mapping[str, Any]]:
    """A request's functions as its response repeats them."""
    return [
        {
            "type": "function",
            "name": it.name,
            "description": it.description,
            "parameters": it.parameters,
            "strict": False,
        }
        for it in tools
    ]


async def so_far(turns: Turns, turn: Turn, head: ResponseHead) -> frames.Response:
    """A response as far as it goes now."""
    response = ResponseStream(head)
    read = await turns.read(turn, response.events)
    if turn.status is TurnStatus.WAITING:
        await read.end(response.pause)
    if response.response is None:
        raise no_response()
    return response.response


async def ended(log: Follower, head: ResponseHead) -> frames.Response:
    """A response once it has ended."""
    response, work = ResponseStream(head), LogWork()
    async with log:
        async for chunks in log:
            await work.take(passing(response.events), chunks, at_end=log.has_ended)
            if log.is_paused:
                await work.end(response.pause)
            if response.is_over:
                break
    if response.response is None:
        raise no_response()
    return response.response


async def part_after(turns: Turns, turn: Turn, seen: int) -> int:
    """The part of a turn that the first answer after an event begins."""
    items = Items(turn.id)

    def take(event: TurnEvent) -> None:
        if event.seq <= seen:
            items.add(event)

    await turns.read(turn, take)
    return items.part + 1


async def items_of(turns: Turns, turn: Turn) -> Sequence[frames.InputItem | frames.OutputItem]:
    """All items of a turn, with what was decided between its responses."""
    listed: list[frames.InputItem | frames.OutputItem] = []
    items, decisions = Items(turn.id), Narrator(decision)

    def take(event: TurnEvent) -> None:
        if items.begins_part(event):
            items.close()
            listed.extend(items.output)
        items.add(event)
        listed.extend(decisions.narrate(event.body))

    read = await turns.read(turn, take)
    await read.end(items.close)
    return [*listed, *items.output]


def stream(log: Follower, head: ResponseHead, after: int = NOTHING_SEEN) -> EventStream:
    """A response as its events arrive, after one of them."""
    encoder = ResponseEncoder(head, after)
    return EventStream(_ResponseLog(log, encoder), encoder, {}, ends_when_paused=True)


class _ResponseLog:
    """The log of a turn up to the end of one of its responses."""

    def __init__(self, log: Follower, encoder: ResponseEncoder) -> None:
        self._log = log
        self._encoder = encoder

    async def __aenter__(self) -> Self:
        await self._log.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._log.__aexit__(kind, exc, trace)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[LogChunk]:
        if self._encoder.is_over:
            raise StopAsyncIteration
        return await anext(self._log)

    @property
    def has_ended(self) -> bool:
        """Whether the response has ended."""
        return self._encoder.is_over or self._log.has_ended

    @property
    def is_paused(self) -> bool:
        """Whether the turn waits for its user."""
        return self._log.is_paused

    def wake(self) -> None:
        """Makes a waiting reader look again."""
        self._log.wake()
