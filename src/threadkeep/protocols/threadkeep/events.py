"""The `events` dialect: turn events as the contract writes them. A stored chunk becomes frames unparsed."""

from collections.abc import Sequence

from threadkeep.domain.events import TurnEvent
from threadkeep.protocols.sse import Dialect, Frames, TurnContext, frame
from threadkeep.wire.events import encode_event

_TYPE_BEGINS = len('{"type":"')


def frames_of_chunk(first_seq: int, events_text: str, after: int) -> bytes:
    """The frames of a stored chunk's events with a number above `after`."""
    seen = max(after - first_seq + 1, 0)
    lines = enumerate(events_text.split("\n")[seen:], first_seq + seen)
    return "".join([f"id: {seq}\nevent: {_type_of(line)}\ndata: {line}\n\n" for seq, line in lines]).encode()


def _type_of(line: str) -> str:
    return line[_TYPE_BEGINS : line.index('"', _TYPE_BEGINS)]


def _frames(event: TurnEvent) -> Sequence[bytes]:
    return (frame(encode_event(event), event=event.body.type, id=event.seq),)


def _start(turn: TurnContext) -> Frames:
    return _frames


EVENTS = Dialect("events", _start)
