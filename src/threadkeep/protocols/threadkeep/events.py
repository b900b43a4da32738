"""The `events` dialect: turn events as the contract defines them. Stored chunks become frames unparsed."""

from collections.abc import Sequence

from threadkeep.domain.events import TurnEvent
from threadkeep.log.format import shown_lines
from threadkeep.ports.turn_log import LogChunk
from threadkeep.protocols.dialect import Dialect, Frames, TurnContext
from threadkeep.sse import frame
from threadkeep.wire.events import encode_event

_TYPE_BEGINS = len('{"type":"')


def frames_of_chunk(chunk: LogChunk, after: int) -> bytes:
    """The frames of a stored chunk's events with a number above `after`."""
    seen = max(after - chunk.first_seq + 1, 0)
    lines = enumerate(shown_lines(chunk.events)[seen:], chunk.first_seq + seen)
    return "".join([f"id: {seq}\nevent: {_type_of(line)}\ndata: {line}\n\n" for seq, line in lines]).encode()


def _type_of(line: str) -> str:
    return line[_TYPE_BEGINS : line.index('"', _TYPE_BEGINS)]


def _frames(event: TurnEvent) -> Sequence[bytes]:
    return (frame(encode_event(event), event=event.body.type, id=event.seq),)


def _start(turn: TurnContext) -> Frames:
    return _frames


EVENTS = Dialect("events", _start, splice=frames_of_chunk)
