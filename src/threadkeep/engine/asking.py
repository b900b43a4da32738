"""Asks models for one reply: falls back, repeats one that broke off, settles what each call cost."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing

from threadkeep.domain.errors import BudgetExceeded, ModelNotAllowed
from threadkeep.domain.events import EventBody, ToolCalled, UsageReported
from threadkeep.domain.message import Usage
from threadkeep.engine.journal import CallPaid, JournalEntry
from threadkeep.engine.model_call import CallTool, ModelCall, reply_events
from threadkeep.engine.spending import ModelSpending
from threadkeep.engine.turn_models import TurnModels
from threadkeep.ports.gateway import GatewayError, GatewayUnavailable, ModelRequest, ReplyBrokeOff

Restart = Callable[[], Iterator[EventBody]]
"""Discards what a reply has said that broke off."""


class ModelAsking:
    """One series of model calls; each is paid for."""

    def __init__(self, models: TurnModels, spending: ModelSpending, *, unreported: Usage | None) -> None:
        self._models = models
        self._spending = spending
        self._request = ModelRequest("", "", ())
        self._call: ModelCall | None = None
        self._is_reserved = False
        """Whether a call has reserved what it can cost, and isn't charged yet."""
        self._unshown: list[EventBody] = []
        self.unreported = unreported and spending.priced(models.current.id, unreported)
        """The usage of the last call, until an event reports it."""

    @property
    def model(self) -> str:
        """The id of the model that is asked."""
        return self._models.current.id

    async def reply(
        self, request: ModelRequest, call_tool: CallTool, restart: Restart, *, asks_again: bool = True
    ) -> AsyncGenerator[EventBody | JournalEntry | ModelCall]:
        """The events of a reply up to its first tool call, then the finished call."""
        self._request = request
        has_restarted = False
        while True:
            limited = await self._spending.reserve(self._models.current.model, request)
            self._is_reserved = True
            call = self._call = ModelCall(self._models.current.signer)
            try:
                stream = self._models.current.stream(limited)
                async with aclosing(reply_events(stream, call, call_tool)) as said:
                    async for event in said:
                        if self._unshown or isinstance(event, ToolCalled):
                            self._unshown.append(event)
                        else:
                            yield event
                break
            except GatewayUnavailable as exc:
                self._call = None  # the provider didn't reply, so it bills nothing
                await self.settle()
                needs_price = self._spending.is_limited
                for step in self._models.fall_back(exc, request, needs_price=needs_price):
                    yield step
            except ReplyBrokeOff:
                if has_restarted or not asks_again:
                    raise
                has_restarted = True
                await self.settle()
                for event in (*self.take_unshown(), *restart()):
                    yield event
            except (GatewayError, BudgetExceeded, ModelNotAllowed):
                if call.is_empty:  # the provider or a budget refused the request
                    self._call = None
                raise
        self.unreported, self._call = self._usage_of(call), None
        await self.settle()
        yield call

    async def settle(self) -> None:
        """Charges a call, or gives back what was reserved for one that was not made or not billed."""
        if self._call is not None:  # it has not ended by itself
            self.unreported, self._call = self._usage_of(self._call), None
        if not self._is_reserved:
            return
        self._is_reserved = False
        if self.unreported is None:
            await self._spending.release()
        else:
            await self._spending.charge(self.unreported)

    def take_unshown(self) -> Sequence[EventBody]:
        """What the reply has said since it called its first tool: shown with its end, or with the turn's."""
        unshown, self._unshown = self._unshown, []
        return unshown

    @property
    def made_call(self) -> CallPaid | None:
        """The last call, for the log: None where its turn makes one at a time."""
        return self._spending.made_call

    def report(self) -> Iterator[UsageReported]:
        """The usage of the last call, unless it is already reported."""
        if self.unreported is not None:
            spent, self.unreported = self.unreported, None
            yield UsageReported.of(spent, self._models.current.id)

    def _usage_of(self, call: ModelCall) -> Usage:
        return call.spent(self._request, self._models.current.id, self._spending)
