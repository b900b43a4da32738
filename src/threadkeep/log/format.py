"""The stored form of a turn's log: chunks of lines, one event per line, as JSON.

An event is one flat JSON object that begins with `type`, `turn_id`, `seq` and `at`, in this order. So a
stored chunk becomes frames without being parsed.

After the event, a line may have a tab and a JSON object: fields that only the server needs. A line that
begins with a tab is a journal entry: it has no event and no number. JSON contains no raw tabs, so
`shown_lines` finds what clients may see without parsing.

The stored form of a tool's call or result may end in `refs`: fields whose values are in the payload store.
Followers get the values back in place (`has_references`, `put_back`); no client sees `refs`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from threadkeep.domain.events import EventBody, LogChunk, ToolCalled, ToolResultStored, TurnEvent
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.tool_call import shown_refs
from threadkeep.engine.journal import JournalEntry
from threadkeep.wire.events import UnreadableEvent, decode_event, encode_event


class _Private(msgspec.Struct, omit_defaults=True):
    """The fields of events that only the server needs."""

    model_name: str = ""
    image_refs: tuple[Mapping[str, PayloadId], ...] = ()


DAMAGED = (UnreadableEvent, LookupError, AssertionError)
"""What reading a damaged log raises."""

_TAB = "\t"
LogEntry = TurnEvent | JournalEntry
_REFERENCES = '"refs":{'
_REPLAYED = ',"replayed":true}'
_encode = msgspec.json.Encoder().encode
_decode_private = msgspec.json.Decoder(_Private).decode
_decode_entry = msgspec.json.Decoder(JournalEntry).decode


def continues(chunks: Sequence[LogChunk], seq: int) -> bool:
    """Whether chunks have every event from the one after `seq` on."""
    lasts = [seq, *(chunk.last_seq for chunk in chunks[:-1])]
    return all(chunk.first_seq == last + 1 for chunk, last in zip(chunks, lasts, strict=True))


def encode_chunk(entries: Iterable[LogEntry]) -> str:
    """A run of events and journal entries as the log stores it."""
    return b"\n".join(map(_encode_line, entries)).decode()


def _encode_line(event: LogEntry) -> bytes:
    if not isinstance(event, TurnEvent):
        return b"\t" + _encode(event)
    private = _private(event.body)
    return encode_event(event) + (b"\t" + _encode(private) if private else b"")


def _private(body: EventBody) -> _Private | None:
    match body:
        case ToolCalled(model_name=name) if name:
            return _Private(model_name=name)
        case ToolResultStored(images=images) if images:
            return _Private(image_refs=tuple(image.refs for image in images))
        case _:
            return None


def encode_replayed(events: Iterable[TurnEvent]) -> str:
    """Events rebuilt from a message because their log was trimmed; each is marked as such."""
    return "\n".join(_replayed(event) for event in events)


def _replayed(event: TurnEvent) -> str:
    return encode_event(event)[:-1].decode() + _REPLAYED


def decode_chunk(lines: bytes | str) -> list[TurnEvent]:
    """The events of a stored chunk."""
    text = lines.decode() if isinstance(lines, bytes) else lines
    if _TAB not in text:  # nearly all chunks are pieces of a text
        return [*map(decode_event, filter(None, text.split("\n")))]
    return [_decode_line(line) for line in text.split("\n") if line and not line.startswith(_TAB)]


def decode_entries(text: str) -> list[LogEntry]:
    """The events and journal entries of a stored chunk, in order."""
    return [_decode_any(line) for line in text.split("\n") if line]


def _decode_any(line: str) -> LogEntry:
    if not line.startswith(_TAB):
        return _decode_line(line)
    try:
        return _decode_entry(line[1:])
    except msgspec.DecodeError as exc:
        raise UnreadableEvent(f"Can't read a log entry: {exc}") from exc


def _decode_line(line: str) -> TurnEvent:
    shown, _, private = line.partition(_TAB)
    event = decode_event(shown)
    if not private:
        return event
    try:
        return replace(event, body=_with_private(event.body, _decode_private(private)))
    except (msgspec.DecodeError, ValueError) as exc:
        raise UnreadableEvent(f"Can't read an event's private fields: {exc}") from exc


def _with_private(body: EventBody, private: _Private) -> EventBody:
    match body:
        case ToolCalled():
            return replace(body, model_name=private.model_name)
        case ToolResultStored(images=images) if images:
            refs = zip(images, private.image_refs, strict=True)
            return replace(body, images=tuple(replace(image, refs=it) for image, it in refs))
        case _:
            return body


def shown_lines(events_text: str) -> list[str]:
    """The events of a stored chunk as JSON, without the fields that only the server needs."""
    lines = events_text.split("\n")
    if _TAB in events_text:
        return [line.partition(_TAB)[0] for line in lines if not line.startswith(_TAB)]
    return lines


def has_references(events_text: str) -> bool:
    """Whether a stored chunk may have values in the payload store: a quick look, because most have none."""
    return _REFERENCES in events_text


def reference_count(events_text: str) -> int:
    """How many events of a stored chunk have such values: as quick, and rather too many."""
    return events_text.count(_REFERENCES)


def cut(chunk: LogChunk, most: int, most_referring: int) -> Iterator[LogChunk]:
    """A chunk in pieces that end with the line that reaches so many characters, or events with references."""
    text, start, first = chunk.events, 0, chunk.first_seq
    while start < len(text):
        end = _end_of_piece(text, start, most, most_referring)
        piece = text[start:end]
        last = chunk.last_seq if end == len(text) else first + _event_count(piece) - 1
        yield replace(chunk, first_seq=first, last_seq=last, events=piece)
        start, first = end + 1, last + 1


def _end_of_piece(text: str, start: int, most: int, most_referring: int) -> int:
    reached, place = start + most, start
    for _ in range(most_referring):
        place = text.find(_REFERENCES, place, reached)
        if place < 0:
            break
        place += 1
    else:
        reached = place
    end = text.find("\n", reached)
    return len(text) if end < 0 else end


def _event_count(lines: str) -> int:
    return lines.count("\n") + 1 - lines.count(f"\n{_TAB}") - lines.startswith(_TAB)


def references_in(events_text: str) -> list[PayloadId]:
    """The payloads that a stored chunk refers to."""
    lines = events_text.split("\n")
    return [ref for _, _, body in _referring(lines) for ref in shown_refs(body.refs).values()]


def put_back(events_text: str, values: Mapping[PayloadId, bytes]) -> str:
    """A stored chunk with the values that it refers to in place, as JSON."""
    lines = events_text.split("\n")
    for index, event, body in _referring(lines):
        whole: dict[str, Any] = {
            name: msgspec.Raw(values[ref]) for name, ref in shown_refs(body.refs).items()
        }
        filled = replace(event, body=replace(body, **whole, refs={}))
        is_replayed = lines[index].endswith(_REPLAYED)
        lines[index] = _replayed(filled) if is_replayed else _encode_line(filled).decode()
    return "\n".join(lines)


def _referring(lines: Sequence[str]) -> Iterator[tuple[int, TurnEvent, ToolCalled | ToolResultStored]]:
    """The events that refer to payloads, with their line numbers."""
    for index, line in enumerate(lines):
        if _REFERENCES in line and not line.startswith(_TAB):
            event = _decode_line(line)
            if isinstance(event.body, ToolCalled | ToolResultStored) and event.body.refs:
                yield index, event, event.body
