"""What a dialect is: a way to stream a turn.

A dialect maps each event of a turn to frames. The mapping may remember earlier events of the same turn and
nothing else, so a replay gives the same bytes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.events import LogChunk, TurnEvent
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId
from threadkeep.domain.secret import Secret
from threadkeep.domain.turn import Turn
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import decode_chunk

_SEQ = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What is known about a turn before its first event.

    The session is a credential: there is none unless the reader has presented it or owns the conversation.
    """

    turn_id: TurnId
    message_id: MessageId
    conversation_id: ConversationId
    agent_id: AgentId
    session: Secret | None = None

    @classmethod
    def of(cls, turn: Turn, conversation: Conversation) -> Self:
        """A turn of a conversation, for a reader who may know its session."""
        return cls(
            turn_id=turn.id,
            message_id=turn.assistant_message_id,
            conversation_id=conversation.id,
            agent_id=conversation.agent_id,
            session=conversation.session_id,
        )

    @property
    def session_id(self) -> str:
        """The session, decrypted now: most dialects don't need it."""
        return self.session.reveal() if self.session else ""


class Position(NamedTuple):
    """How far a reader has got: all events up to `seq`, and this many frames of the next one."""

    seq: int = 0
    frames: int = 0


START = Position()


def position_of_seq(turn: TurnContext, last_id: str) -> Position:
    """The position after an id that is an event's number."""
    if not _SEQ.fullmatch(last_id):
        raise InvalidRequest("The last event id must be an event number.", param="after")
    return Position(int(last_id))


Frames = Callable[[TurnEvent], Sequence[bytes]]
"""The frames of each event of one turn, called from the first event on, in order."""

Splice = Callable[[LogChunk, int], bytes]
"""The frames of a stored chunk's events with a number above the given one, without parsing them."""


class Encoder:
    """A dialect's bytes for one reader of one turn, without what the reader already has."""

    def __init__(self, frames: Frames, after: Position, closing: bytes, splice: Splice | None) -> None:
        self._frames = frames
        self._after = after
        self._closing = closing
        self._splice = splice

    def encode_chunk(self, chunk: LogChunk) -> bytes:
        """The next chunk of the log for this reader."""
        if self._splice is not None:
            return self._splice(chunk, self._after.seq)
        return b"".join(map(self.encode, decode_chunk(chunk.events)))

    def encode(self, event: TurnEvent) -> bytes:
        """The next event for this reader; empty if the dialect has no frame for it."""
        frames = self._frames(event)
        if event.seq <= self._after.seq:
            return b""
        if event.seq == self._after.seq + 1:
            frames = frames[self._after.frames :]
        return b"".join(frames)

    def end(self, how: StreamEnd) -> bytes:
        """What follows the turn's last event."""
        return self._closing


@dataclass(frozen=True, slots=True)
class Dialect:
    """A way to stream a turn; a value, shared by all streams."""

    name: str
    frames: Callable[[TurnContext], Frames]
    closing: bytes = b""
    remembers: bool = False
    """Whether frames depend on earlier events; then a stream starts from seq 1, wherever its reader is."""
    splice: Splice | None = None
    """A faster way from a chunk to the same frames, if the dialect is what the log stores."""
    position: Callable[[TurnContext, str], Position] = position_of_seq
    """Parses the id of a frame, as `Last-Event-ID` returns it."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The response's headers beyond those of every stream."""

    def start(self, turn: TurnContext, after: Position = START) -> Encoder:
        """A stream of this dialect, for a reader that may have part of it."""
        return Encoder(self.frames(turn), after, self.closing, self.splice)

    def first_seq(self, after: Position) -> int:
        """The first event that a stream needs."""
        return 1 if self.remembers else after.seq + 1
