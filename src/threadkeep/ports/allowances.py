"""How much each user has asked for: turns at once, and in a minute."""

from typing import Protocol

from threadkeep.domain.ids import TurnId, UserId


class Allowances(Protocol):
    """What is left to each user. Whoever takes too much is refused with RateLimited."""

    async def take_turn(
        self, user_id: UserId, turn_id: TurnId, running_here: int, *, after: TurnId | None = None
    ) -> None:
        """Takes a turn that is about to begin; so many of the user's run or begin on this node.

        `after` is the turn in whose place it runs: that one does not count any more.
        """
        ...

    async def give_turn_back(self, user_id: UserId, turn_id: TurnId) -> None:
        """Gives back what was taken for a turn that could not be begun."""
        ...

    async def take_call(self, user_id: UserId) -> None:
        """Takes a call of the model that is no turn; it counts as one in the minute."""
        ...
