"""A share: a snapshot of a conversation up to a message, which a link opens.

Messages never change and keep their numbers. So a share stores only the numbers of its messages: later
messages and other branches don't show in it.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest, ShareNotFound
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, ShareId

RANDOM_BYTES = 32
MOST_SHARES = 100
"""Of one conversation."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")

Run = tuple[int, int]
"""Messages whose numbers follow one another: the first and the last number."""


class Sharing(Choice):
    """Who may open shares on this server."""

    OFF = "off"
    USERS = "users"
    """Everyone who is signed in."""
    ANYONE = "anyone"
    """Everyone who has the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share without its token, which is shown once and not stored."""

    id: ShareId
    conversation_id: ConversationId
    message_id: MessageId
    """Its last message."""
    title: str
    """The conversation's title when it was shared; empty if it had none."""
    runs: tuple[Run, ...]
    """Its messages, in ascending order."""
    files: frozenset[PayloadId]
    """The files that can be read through it."""
    with_tools: bool
    """Whether it shows what the agent did: its tools, what it found and what it thought."""
    created_at: int
    expires_at: int | None
    preview: str | None = None
    """How it begins, for chats that show its link; None for shares of earlier versions."""

    @property
    def message_count(self) -> int:
        """How many messages it has."""
        return sum(last - first + 1 for first, last in self.runs)

    def has_expired(self, now: int) -> bool:
        """Whether its link has stopped working."""
        return self.expires_at is not None and now >= self.expires_at

    def position(self, seq: int) -> int:
        """The position of one of its messages, from 1."""
        return sum(min(last, seq) - first + 1 for first, last in self.runs if first <= seq)

    def seq_at(self, position: int) -> int | None:
        """The number of the message at a position, from 1; None if it has fewer."""
        for first, last in self.runs:
            if 0 < position <= last - first + 1:
                return first + position - 1
            position -= last - first + 1
        return None

    def runs_after(self, seq: int) -> Iterator[Run]:
        """Its messages with larger numbers."""
        return ((max(first, seq + 1), last) for first, last in self.runs if last > seq)


@dataclass(frozen=True, slots=True)
class SharePreview:
    """What chats show for a link to a share before someone opens it."""

    title: str
    text: str | None
    expires_at: int | None

    def has_expired(self, now: int) -> bool:
        """Whether the link has stopped working."""
        return self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True)
class ShareDraft:
    """A user's input for a new share."""

    message_id: str | None = None
    """Its last message; None for the last one on the active path."""
    with_tools: bool = True
    expires_at: int | None = None

    def check_expiry(self, now: int) -> None:
        """Refuses an expiry in the past."""
        if self.expires_at is not None and self.expires_at <= now:
            raise InvalidRequest("`expiresAt` must be in the future.", param="expiresAt")


def runs_of(seqs: Iterable[int]) -> tuple[Run, ...]:
    """Ascending numbers as runs."""
    runs: list[Run] = []
    for seq in seqs:
        if runs and runs[-1][1] == seq - 1:
            runs[-1] = runs[-1][0], seq
        else:
            runs.append((seq, seq))
    return tuple(runs)


def new_token() -> str:
    """A new share's token: 256 random bits."""
    return secrets.token_urlsafe(RANDOM_BYTES)


def token_hash(token: str) -> str:
    """What is stored of a token; ShareNotFound if the text can't be one.

    A plain hash is enough: nobody can guess 256 random bits, however fast it is.
    """
    if not _TOKEN.fullmatch(token):
        raise ShareNotFound
    return hashlib.sha256(token.encode()).hexdigest()
