"""What a turn's model calls cost: reserved before a call, and put on its usage."""

from collections.abc import Callable
from typing import Protocol

from threadkeep.domain.message import Usage
from threadkeep.domain.model import Model
from threadkeep.ports.gateway import ModelRequest

Priced = Callable[[str | None, Usage], Usage]
"""A model's usage with its cost, by the price of this moment, if there is one."""


def at_no_price(model: str | None, usage: Usage) -> Usage:
    """For models without prices."""
    return usage


class TurnSpending(Protocol):
    """Pays for a turn's model calls, one at a time. Storing a call's usage settles what it reserved."""

    @property
    def is_limited(self) -> bool:
        """Whether a budget applies."""
        ...

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """Reserves what a call can cost at most; the request gets an output limit, if there is a budget.

        Raises BudgetExceeded, or ModelNotAllowed for a model whose price is unknown.
        """
        ...

    async def release(self) -> None:
        """Gives back what was reserved for a call that was not billed, if anything was."""
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

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """The request as it is."""
        return request

    async def release(self) -> None:
        """Nothing was reserved."""

    def cut_off(self, estimate: Usage) -> Usage:
        """The estimate as it is."""
        return estimate

    priced = staticmethod(at_no_price)
