"""Limits on each user's turns, at once and per minute, and on their uploads per minute."""

from typing import Protocol

from threadkeep.domain.ids import TurnId, UserId


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

    async def take_completion(self, user_id: UserId, *, turns_here: int, completions_here: int) -> None:
        """Reserves a reply outside any conversation; while it runs, it counts like a turn.

        Given the user's turns and such replies that run on this node.
        """
        ...

    async def take_uploads(self, user_id: UserId, count: int) -> None:
        """Takes files from those that the user may upload per minute."""
        ...
