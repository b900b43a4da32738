"""What users saw and what the world counted: all that the checker knows beside the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]


@dataclass(slots=True)
class SentMessage:
    """A message, and what its sender was told."""

    mark: str
    user: str
    conversation: str
    text: str
    acknowledged: bool = False
    """Whether a response said that it is stored."""
    acknowledged_at: float = 0.0
    refused: str | None = None
    """The code of the error, if a response said that it isn't."""
    turn_id: str | None = None
    message_id: str | None = None


@dataclass(slots=True)
class Followed:
    """One connection on which somebody followed a turn."""

    user: str
    turn_id: str
    node: str
    after: int
    """The last event that the follower had seen before."""
    events: list[Event] = field(default_factory=list[Event])
    is_replay: bool = False
    """Whether the log was gone, so that it was built from the message."""
    end: str = "open"
    """`over` if the stream said so, `lost` if it broke, `gone` for a 410, `nothing` for a 204."""


@dataclass(slots=True)
class AnsweredRequest:
    """An answer to what a turn asked."""

    user: str
    turn_id: str
    request_id: str
    action: str
    status: int
    code: str = ""


@dataclass(slots=True)
class HandOver:
    """A call that reached the outside world."""

    key: str
    """The same if it is a repetition."""
    name: str
    effect: str
    about: str
    at: float
    node: str


@dataclass(slots=True)
class MadeCall:
    """A call that a model got."""

    mark: str
    stage: int
    at: float
    ended_at: float | None
    input_tokens: int
    output_tokens: int
    status: str
    """`answered` if it said what it used, `refused` if it costs nothing, else `cut`."""


@dataclass(slots=True)
class Backup:
    """A copy of the database that was made while everything went on."""

    at: float
    texts: list[str]
    """Of users' messages, stored and queued."""
    dangling: list[tuple[str, str]]
    """Tables whose rows refer to what isn't there, and where that should be."""


@dataclass
class Seen:
    """All of a run."""

    sent: list[SentMessage] = field(default_factory=list[SentMessage])
    followed: list[Followed] = field(default_factory=list[Followed])
    answered: list[AnsweredRequest] = field(default_factory=list[AnsweredRequest])
    hand_overs: list[HandOver] = field(default_factory=list[HandOver])
    calls: list[MadeCall] = field(default_factory=list[MadeCall])
    leaks: list[str] = field(default_factory=list[str])
    """Responses with another user's words."""
    unexpected: list[str] = field(default_factory=list[str])
    """Responses that no user should get."""
    backups: list[Backup] = field(default_factory=list[Backup])
    final: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict[str, list[Mapping[str, Any]]])
    """The messages of each conversation, as its user reads them in the end."""
    replays: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """The events of each turn, as its user reads them in the end, unless they are no longer stored."""
    left: list[str] = field(default_factory=list[str])
    """What still went on after everything had ended: tasks, statements, exceptions that nobody awaited."""
    price: tuple[int, int] = (0, 0)
    """Of a token in and a token out, in trillionths."""
    losses: int = 0
    """How often a node may have been lost between a reservation and its call, which then counts in full."""
    budget: int | None = None
    """What each user may spend, in trillionths."""
