"""What a turn's model calls cost: reserved before a call, and put on its usage."""

from collections.abc import Callable
from typing import Protocol

from threadkeep.domain.errors import BudgetExceeded
from threadkeep.domain.message import Usage
from threadkeep.domain.model import Model
from threadkeep.engine.journal import CallPaid
from threadkeep.ports.gateway import ModelRequest

Priced = Callable[[str | None, Usage], Usage]
"""A model's usage with its cost, by the price of this moment, if there is one."""


def at_no_price(model: str | None, usage: Usage) -> Usage:
    """For models without prices."""
    return usage


class ModelSpending(Protocol):
    """Pays for model calls, one at a time, in a turn or outside any."""

    @property
    def refused(self) -> BudgetExceeded | None:
        """The budget that had no room for a call, if one ended it."""
        ...

    @property
    def is_limited(self) -> bool:
        """Whether a budget applies."""
        ...

    @property
    def made_call(self) -> CallPaid | None:
        """The last call, for the log: None where its turn makes one at a time."""
        ...

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """Reserves what a call can cost at most; the request gets an output limit, if there is a budget.

        Raises BudgetExceeded, or ModelNotAllowed for a model whose price is unknown.
        """
        ...

    async def release(self) -> None:
        """Gives back what was reserved for a call that was not billed, if anything was."""
        ...

    async def charge(self, usage: Usage) -> None:
        """Charges a call that has ended, however it ended, which settles what it reserved.

        A turn's calls are charged when their usage is stored, so its log does that.
        """
        ...

    def cut_off(self, estimate: Usage) -> Usage:
        """The usage of the last call, which was cut off before its provider said what it used."""
        ...

    def priced(self, model: str | None, usage: Usage) -> Usage:
        """A call's usage with its cost, by the price of this moment, if there is one."""
        ...


class FreeSpending:
    """For turns without budgets and prices."""

    is_limited = False
    refused = None
    made_call = None

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """The request as it is."""
        return request

    async def release(self) -> None:
        """Nothing was reserved."""

    async def charge(self, usage: Usage) -> None:
        """Nobody pays."""

    def cut_off(self, estimate: Usage) -> Usage:
        """The estimate as it is."""
        return estimate

    priced = staticmethod(at_no_price)
