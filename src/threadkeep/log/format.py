"""How the log of a turn is stored: its events as JSON, one a line.

An event is one flat JSON object that begins with `type`, `turn_id`, `seq` and `at`, in this order; a chunk of
the log is one event a line. So a stored chunk becomes frames without being parsed.

The stored form of a tool's call or result may end in `refs`: fields whose values lie in the payload store.
Whoever shows a chunk to a client puts them back first (`has_references`, `put_back`); no client sees `refs`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, assert_never, get_args

import msgspec

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationStart,
    Notice,
    Retrieval,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResulted,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.ids import PayloadId


class UnreadableEvent(ThreadkeepError):
    """An event that this version cannot read."""


class _Head(msgspec.Struct):
    type: str
    turn_id: str
    seq: int
    at: int


_REFERENCES = '"refs":{'
_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(_Head).decode
_BODIES: dict[str, msgspec.json.Decoder[EventBody]] = {
    body.type: msgspec.json.Decoder(body) for body in get_args(EventBody)
}


def encode_event(event: TurnEvent) -> bytes:
    """An event as JSON."""
    # The head is put together by hand, since it is the same for all: ids and types need no escaping.
    head = f'{{"type":"{event.body.type}","turn_id":"{event.turn_id}","seq":{event.seq},"at":{event.at},'
    return head.encode() + _encode(_further_fields(event.body))[1:]


def _further_fields(body: EventBody) -> object:
    match body:
        case Text() | Thought():
            return body
        case TurnStart() | IterationStart() | Notice() | UsageReported() | Done() | Failed():
            return body
        case ToolCalled():
            return _without_empty(body)
        case Retrieval():
            return _without_empty(body, "tool_call_id")
        case ToolProgress():
            return _without_empty(body, "total", "message")
        case ToolResulted():
            other = "error" if body.error is None else "result"
            return _without_empty(body, other, "chart_data", "artifact_ids")
        case _ as never:
            assert_never(never)


def _without_empty(
    body: Retrieval | ToolCalled | ToolProgress | ToolResulted, *optional: str
) -> dict[str, Any]:
    values = {it.name: getattr(body, it.name) for it in fields(body)}
    if not values.get("refs"):
        values.pop("refs", None)
    return {name: it for name, it in values.items() if name not in optional or it not in (None, ())}


def decode_event(raw: bytes | str) -> TurnEvent:
    """An event from its JSON."""
    try:
        head = _decode_head(raw)
        body = _BODIES.get(head.type)
        if body is None:
            raise UnreadableEvent(f"There is no event of the type {head.type!r}.")
        return TurnEvent(head.turn_id, head.seq, head.at, body.decode(raw))
    except msgspec.DecodeError as exc:
        raise UnreadableEvent(f"An event cannot be read: {exc}") from exc


def encode_chunk(events: Iterable[TurnEvent]) -> str:
    """A run of events as the log stores it."""
    return b"\n".join(map(encode_event, events)).decode()


def encode_replayed(events: Iterable[TurnEvent]) -> str:
    """Events that were made from a message because their log is gone; each says so."""
    return b"\n".join(encode_event(event)[:-1] + b',"replayed":true}' for event in events).decode()


def decode_chunk(lines: bytes | str) -> list[TurnEvent]:
    """The events of a stored chunk."""
    text = lines.decode() if isinstance(lines, bytes) else lines
    return [decode_event(line) for line in text.split("\n") if line]


def has_references(events_text: str) -> bool:
    """Whether a stored chunk may have values in the payload store: a quick look, for most have none."""
    return _REFERENCES in events_text


def references_in(events_text: str) -> list[PayloadId]:
    """The payloads that a stored chunk refers to."""
    lines = events_text.split("\n")
    return [ref for _, _, body in _referring(lines) for ref in body.refs.values()]


def put_back(events_text: str, values: Mapping[PayloadId, bytes]) -> str:
    """A stored chunk with the values that it refers to, as JSON, in their places."""
    lines = events_text.split("\n")
    for index, event, body in _referring(lines):
        whole: dict[str, Any] = {name: msgspec.Raw(values[ref]) for name, ref in body.refs.items()}
        lines[index] = encode_event(replace(event, body=replace(body, **whole, refs={}))).decode()
    return "\n".join(lines)


def _referring(lines: Sequence[str]) -> Iterator[tuple[int, TurnEvent, ToolCalled | ToolResulted]]:
    """The events of a chunk's lines that refer to payloads, with the numbers of their lines."""
    for index, line in enumerate(lines):
        if _REFERENCES in line:
            event = decode_event(line)
            if isinstance(event.body, ToolCalled | ToolResulted) and event.body.refs:
                yield index, event, event.body
