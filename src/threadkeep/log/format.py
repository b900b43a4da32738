"""How the log of a turn is stored: its events as JSON, one a line.

An event is one flat JSON object that begins with `type`, `turn_id`, `seq` and `at`, in this order; a chunk of
the log is one event a line. So a stored chunk becomes frames without being parsed.

The stored form of a tool's call or result may end in `refs`: fields whose values lie in the payload store.
Whoever shows a chunk to a client puts them back first (`has_references`, `put_back`); no client sees `refs`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from threadkeep.domain.events import ToolCalled, ToolResulted, TurnEvent
from threadkeep.domain.ids import PayloadId
from threadkeep.wire.events import decode_event, encode_event

_REFERENCES = '"refs":{'


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
