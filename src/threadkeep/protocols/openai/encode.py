"""A turn's events → the stream of one of its responses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import msgspec

from threadkeep.domain.events import Done, Failed, LogChunk, TurnEvent
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import Usage
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import decode_chunk
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.ids import response_id
from threadkeep.protocols.openai.items import Items

NOTHING_SEEN = -1

_TYPE_AT = len('{"type":"')
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHead:
    """What is known about a response before its first event."""

    turn_id: TurnId
    part: int
    created_at: int
    model: str
    """As the client named it."""
    conversation: str | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    metadata: dict[str, str]
    tools: Sequence[Any] = ()
    tool_choice: str | Mapping[str, str] = "auto"
    text: frames.TextOptions = field(default_factory=frames.TextOptions)
    background: bool = False
    is_stored: bool = True

    def response(self, items: Items, status: frames.ResponseStatus, at: int = 0) -> frames.Response:
        """The response as far as it goes, at a time (ms)."""
        is_over = status not in ("queued", "in_progress")
        end = items.end
        return frames.Response(
            id=response_id(self.turn_id, self.part),
            created_at=self.created_at // 1000,
            completed_at=at // 1000 if status == "completed" else None,
            status=status,
            background=self.background,
            store=self.is_stored,
            model=self.model,
            output=tuple(items.output) if is_over else (),
            error=frames.ResponseError("server_error", end.message) if isinstance(end, Failed) else None,
            incomplete_details=_why_incomplete(end) if status == "incomplete" else None,
            instructions=self.instructions,
            metadata=self.metadata,
            previous_response_id=self.previous_response_id,
            conversation=frames.ConversationOf(self.conversation) if self.conversation else None,
            tools=self.tools,
            tool_choice=self.tool_choice,
            text=self.text,
            usage=_usage(items.usage) if is_over else None,
        )


class ResponseStream:
    """The events of one response, numbered from 0 without gaps; takes all events of its turn, in order."""

    def __init__(self, head: ResponseHead) -> None:
        self._head = head
        self._items = Items(head.turn_id)
        self._has_begun = False
        self._whole: frames.Response | None = None
        self._at = 0
        """When the latest event happened."""

    def events(self, event: TurnEvent) -> Sequence[frames.StreamEvent]:
        """What the next event of the turn adds to this response."""
        items, part = self._items, self._head.part
        if self._whole is not None:
            return ()
        if items.begins_part(event) and items.part == part:
            return self.closing("completed")
        self._at = event.at
        added = items.add(event)  # nothing where a part begins
        if items.part != part:
            return ()
        if not self._has_begun:
            self._has_begun = True
            return [*self._opening(), *added]
        return added if items.end is None else [*added, *self.closing(_status(items.end))]

    def add(self, events: Iterable[TurnEvent]) -> None:
        """Takes more events, for a reader who only wants the whole response."""
        for event in events:
            self.events(event)

    def closing(self, status: frames.ResponseStatus) -> Sequence[frames.StreamEvent]:
        """The last events of the response."""
        closing = self._items.close()
        kind = {"completed": "completed", "failed": "failed"}.get(status, "incomplete")
        self._whole = self._head.response(self._items, status, self._at)
        return [
            *closing,
            frames.ResponseEvent(f"response.{kind}", self._items.next_number(), self._whole),
        ]

    def pause(self) -> Sequence[frames.StreamEvent]:
        """The last events if the turn waits for its user after the events so far: that ends the response."""
        if self._whole is None and self._items.part == self._head.part:
            return self.closing("completed")
        return ()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._whole is not None

    @property
    def response(self) -> frames.Response | None:
        """The response as far as it goes; None before it has begun."""
        if self._whole is None and self._items.part < self._head.part:
            return None
        return self._whole or self._head.response(self._items, "in_progress")

    def _opening(self) -> Iterator[frames.StreamEvent]:
        for kind in ("created", "in_progress"):
            response = self._head.response(self._items, "in_progress")
            yield frames.ResponseEvent(f"response.{kind}", self._items.next_number(), response)


class ResponseEncoder:
    """The bytes of one response for a reader who has its events up to a number."""

    def __init__(self, head: ResponseHead, after: int = NOTHING_SEEN) -> None:
        self._stream = ResponseStream(head)
        self._after = after

    def encode_chunk(self, chunk: LogChunk) -> bytes:
        """The next chunk of the log."""
        return self._frames(chain.from_iterable(map(self._stream.events, decode_chunk(chunk.events))))

    def encode(self, event: TurnEvent) -> bytes:
        """The next event."""
        return self._frames(self._stream.events(event))

    @property
    def is_over(self) -> bool:
        """Whether the response has ended."""
        return self._stream.is_over

    def end(self, how: StreamEnd) -> bytes:
        """What follows the last event: a turn that waits for its user has ended its response."""
        return self._frames(self._stream.pause()) if how is StreamEnd.PAUSED else b""

    def _frames(self, events: Iterable[frames.StreamEvent]) -> bytes:
        if self._after > NOTHING_SEEN:
            events = (it for it in events if it.sequence_number > self._after)
        return b"".join(map(_sse, events))


def _sse(event: frames.StreamEvent) -> bytes:
    data = _encode(event)  # without newlines, and the type comes first
    return b"event: %b\ndata: %b\n\n" % (data[_TYPE_AT : data.index(b'"', _TYPE_AT)], data)


def _status(end: Done | Failed) -> Literal["completed", "incomplete", "failed", "cancelled"]:
    if isinstance(end, Failed):
        return "failed"
    if end.status == "CANCELLED":
        return "cancelled"
    return "incomplete" if end.stop_reason == "max_tokens" else "completed"


def _why_incomplete(end: Done | Failed | None) -> frames.IncompleteDetails | None:
    is_cut = isinstance(end, Done) and end.stop_reason == "max_tokens"
    return frames.IncompleteDetails("max_output_tokens") if is_cut else None


def _usage(usage: Usage) -> frames.ResponseUsage:
    return frames.ResponseUsage(
        input_tokens=usage.input_tokens,
        input_tokens_details=frames.CachedTokens(usage.cache_read_tokens, usage.cache_write_tokens),
        output_tokens=usage.output_tokens,
        output_tokens_details=frames.ReasoningTokens(),
        total_tokens=usage.input_tokens + usage.output_tokens,
    )
