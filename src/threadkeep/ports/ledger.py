"""The ledger: what every model call has cost, and what budgets have left.

A call under a budget reserves what it can cost at most, across all nodes; its charge settles that.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from threadkeep.domain.ledger import BudgetState, Charge, Reservation, UsageFilter, UsageSum
from threadkeep.domain.money import Budget


class LedgerStore(Protocol):
    """Storage of the ledger. The calls of turns are charged with the log's chunks instead."""

    async def charge(self, charge: Charge) -> None:
        """Adds a call outside a turn and settles its reservation; once, however often it is tried."""
        ...

    async def reserve(self, reservation: Reservation, budgets: Sequence[Budget]) -> int | BudgetState:
        """Reserves for a call in all of its budgets, or in none; returns the amount, or the one without room.

        Replaces what the turn had reserved for a call that was not billed. StorageConflict if the turn has
        ended or another node runs it.
        """
        ...

    async def release(self, reservation_id: str, fence: int | None = None) -> None:
        """Gives back what was reserved for a call that was not billed.

        Does nothing if another node has taken the turn over: what is reserved for it is that node's.
        """
        ...

    async def states(self, budgets: Sequence[Budget], currency: str) -> Sequence[BudgetState]:
        """What budgets have spent and reserved."""
        ...

    async def usage(self, which: UsageFilter, by: Collection[str]) -> Sequence[UsageSum]:
        """Sums of calls by these dimensions, in their order; apart for each currency."""
        ...

    async def charge_abandoned(self, before: int) -> int:
        """Charges in full what was reserved before a time for calls that nobody is left to charge."""
        ...

    async def forget_spending(self, today: str) -> int:
        """Forgets what was spent before the last month; the ledger still knows.

        Of deleted users, whose ledger is gone, it forgets all but this day and this month.
        """
        ...

    async def open_reservations(self) -> int:
        """How many calls have something reserved, on all nodes."""
        ...
