"""Cursors: which envelope of which event, as clients acknowledge it and resume after it."""

import re
from typing import NamedTuple

from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.dialect import Position

_CURSOR = re.compile(r"([0-9a-f-]{36}):([1-9][0-9]{0,14}):([0-9]{1,3})")


class Cursor(NamedTuple):
    """Identifies an envelope: its turn, its event, and its index among the event's envelopes, from 0."""

    turn_id: str
    seq: int
    envelope: int

    def __str__(self) -> str:
        return f"{self.turn_id}:{self.seq}:{self.envelope}"

    @property
    def position(self) -> Position:
        """The position of a reader that has seen this envelope."""
        return Position(self.seq - 1, self.envelope + 1)


def parse_cursor(text: str) -> Cursor:
    """Parses a cursor that a client sends back."""
    parts = _CURSOR.fullmatch(text)
    if parts is None:
        raise InvalidRequest("This isn't a cursor of an AgentX stream.", param="afterCursor")
    return Cursor(parts[1], int(parts[2]), int(parts[3]))
