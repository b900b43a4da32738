"""The ledger: what every model call has cost, and what budgets have left.

A call under a budget reserves what it can cost at most, across all nodes; its charge settles that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from threadkeep.domain.ids import AgentId, TurnId, UserId
from threadkeep.domain.message import Usage
from threadkeep.domain.money import Budget, Cost, Payer, Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A model call that a provider may have billed, as the ledger has it."""

    id: str
    payer: Payer
    purpose: Purpose
    model: str | None
    usage: Usage
    at: int
    """When the call was made."""
    day: str
    """Which day that was in the operator's time zone."""
    is_first: bool = False
    """Whether it is its turn's first, so that turns can be counted."""
    reservation_id: str
    """What was reserved for it, if anything was: its turn's id, or its own."""
    is_reported: bool = False
    """Whether a program made it itself, and reported it afterwards."""
    reported_cost: Cost | None = None
    """What the program says that it cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What to set aside for a model call: as much as there is, from `least` to `most` trillionths."""

    id: str
    """Its turn's id, or its charge's outside a turn."""
    payer: Payer
    purpose: Purpose
    model: str | None
    at: int
    day: str
    least: int
    most: int
    currency: str
    fence: int | None = None
    """The fence of the node that runs the turn; None outside a turn."""
    turn_id: TurnId | None = None
    """The turn, if it can make several calls at once; then each has an id of its own."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget, what its period has spent so far, and what running calls have reserved; in trillionths."""

    budget: Budget
    spent: int
    reserved: int

    @property
    def left(self) -> int:
        """What a call may still reserve."""
        return self.budget.limit - self.spent - self.reserved


@dataclass(frozen=True, slots=True)
class UsageFilter:
    """Which calls to sum up: those of some days, of one user or of all, with one agent or with all.

    `agents` are those that a user's key is limited to.
    """

    first_day: str
    last_day: str
    user_id: UserId | None
    agent_id: str | None = None
    agents: frozenset[AgentId] | None = None


@dataclass(frozen=True, slots=True)
class UsageSum:
    """The sum of some calls: `group` has the value of each dimension asked for."""

    group: Mapping[str, str | None]
    currency: str | None
    turns: int
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    estimated: bool
    cost: int
    """In trillionths, of the calls whose cost is known."""
    unpriced: int
    """How many calls have no known cost."""
    reported: int = 0
    """How many calls programs made themselves, and reported afterwards."""
    reported_cost: int = 0
    """In trillionths, what they say that these cost."""


DIMENSIONS = ("day", "user", "agent", "key", "model", "purpose")
"""What usage can be summed up by."""
