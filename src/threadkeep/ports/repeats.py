"""Storage of requests that can be repeated: what they asked for, and how they were answered."""

from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import UserId


@dataclass(frozen=True, slots=True)
class BegunRequest:
    """A request that was sent before."""

    request_hash: str
    response: str | None
    """What it was answered, encrypted; None while nobody knows."""


class RepeatStore(Protocol):
    """The requests of users that carry a key, by the keys' hashes."""

    async def begin(self, user_id: UserId, name: str, request_hash: str) -> BegunRequest | None:
        """Notes that a request begins; returns the one that began before under the same name, if any."""
        ...

    async def answer(self, user_id: UserId, name: str, response: str) -> None:
        """Keeps how a request was answered."""
        ...

    async def forget(self, user_id: UserId, name: str) -> None:
        """Forgets a request that was refused: it can be sent again."""
        ...

    async def forget_old(self, before: int) -> int:
        """Forgets the requests that began before a time; returns how many."""
        ...
