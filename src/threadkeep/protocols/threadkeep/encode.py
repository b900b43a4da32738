"""Our two dialects: events → frames.

`events` has the turn's events as the contract defines them (`wire/events.py`). Stored chunks become frames
unparsed.

`text` is for the simplest client: the reply's pieces, then `[DONE]`.

| event | frames |
|---|---|
| text | `data: <text>`; begins with a blank line after a tool call, another model call or a |
| | repeated one; of a reply that must fit a schema, all at once |
| error | `event: error`, `data: {"code", "message"}` |
| all others | none |
| the end, however the turn ended | `data: [DONE]` |
"""

from collections.abc import Sequence
from itertools import chain

import msgspec

from threadkeep.domain import events
from threadkeep.domain.events import LogChunk
from threadkeep.log.format import shown_lines
from threadkeep.protocols.checked import CheckedReplies
from threadkeep.protocols.dialect import Dialect, Frames, TurnContext
from threadkeep.protocols.narrator import JoiningNarrator, Narration
from threadkeep.protocols.threadkeep.frames import TextError
from threadkeep.sse import frame
from threadkeep.wire.events import encode_event

DONE = "[DONE]"

_TYPE_BEGINS = len('{"type":"')
_encode = msgspec.json.Encoder().encode


def frames_of_chunk(chunk: LogChunk, after: int) -> bytes:
    """The frames of a stored chunk's events with a number above `after`."""
    seen = max(after - chunk.first_seq + 1, 0)
    lines = enumerate(shown_lines(chunk.events)[seen:], chunk.first_seq + seen)
    return "".join([f"id: {seq}\nevent: {_type_of(line)}\ndata: {line}\n\n" for seq, line in lines]).encode()


def _type_of(line: str) -> str:
    return line[_TYPE_BEGINS : line.index('"', _TYPE_BEGINS)]


def event_frame(event: events.TurnEvent) -> bytes:
    """An event in the dialect `events`."""
    return frame(encode_event(event), event=event.body.type, id=event.seq)


def _event_frames(event: events.TurnEvent) -> Sequence[bytes]:
    return (event_frame(event),)


def _start_events(turn: TurnContext) -> Frames:
    return _event_frames


def _text_frames(text: str) -> Sequence[bytes]:
    # A model may well write the word that ends the stream; split in two, it doesn't end it.
    return [frame(piece) for piece in ((text[:4], text[4:]) if text == DONE else (text,))]


def _error_frames(narrated: Narration) -> Sequence[bytes]:
    if isinstance(narrated, events.Failed):
        return [frame(_encode(TextError(narrated.code, narrated.message)), event="error")]
    return ()


def _start_text(turn: TurnContext) -> Frames:
    narrator, checked = JoiningNarrator(_error_frames, text=_text_frames), CheckedReplies()

    def frames_of(event: events.TurnEvent) -> Sequence[bytes]:
        return [*chain.from_iterable(map(narrator.narrate, checked.passing(event.body)))]

    return frames_of


EVENTS = Dialect("events", _start_events, splice=frames_of_chunk)
TEXT = Dialect("text", _start_text, closing=frame(DONE), remembers=True)
