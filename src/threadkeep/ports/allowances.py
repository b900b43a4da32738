"""Limits on each user's turns, at once and per minute, and on what they upload, create and store."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import TurnId, UserId

HELD_S = 30.0
"""How long a reply outside a turn has its place without being renewed."""


@dataclass(frozen=True, slots=True)
class ReplyPlace:
    """A reply outside any turn, among those that its user may run at once."""

    user_id: UserId
    id: str


class Allowances(Protocol):
    """The remaining allowance of each user. Raises RateLimited at the limit."""

    async def take_turn(
        self, user_id: UserId, turn_id: TurnId, running_here: int, *, after: TurnId | None = None
    ) -> None:
        """Reserves a turn that is about to start, given the user's other running turns on this node.

        `after` is the turn that it replaces, which no longer counts: `running_here` doesn't include it.
        """
        ...

    async def give_turn_back(self, user_id: UserId, turn_id: TurnId) -> None:
        """Returns the reservation of a turn that couldn't start."""
        ...

    async def take_call(self, user_id: UserId) -> None:
        """Reserves a model call outside a turn; it counts as one of the user's calls per minute."""
        ...

    async def take_reply(self, place: ReplyPlace, running_here: int) -> None:
        """Reserves a reply outside any turn, given the user's running turns on this node.

        It also counts as one of the user's calls per minute. It has its place for `HELD_S`.
        """
        ...

    async def renew_replies(self, places: Collection[ReplyPlace]) -> None:
        """Gives replies that still run their places for another `HELD_S`."""
        ...

    async def give_reply_back(self, place: ReplyPlace) -> None:
        """Frees the place of a reply that has ended."""
        ...

    async def take_uploads(self, user_id: UserId, count: int) -> None:
        """Takes files from those that the user may upload per minute."""
        ...

    async def take_write(self, user_id: UserId) -> None:
        """Takes one of the things that the user may create per minute besides turns."""
        ...
