"""A model and tools that live in the test: no wire, no thread, every step an await of its own."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from threadkeep.domain.approval import Decision
from threadkeep.domain.errors import GatewayNotConfigured
from threadkeep.domain.events import EventBody
from threadkeep.domain.ids import ConversationId, PayloadId
from threadkeep.domain.model import Model
from threadkeep.domain.payload import Payload
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.engine.journal import JournalEntry
from threadkeep.engine.large_values import LargeValues
from threadkeep.engine.loop import HandOff, Pause, StateLeft, Together, TurnStep
from threadkeep.engine.user_requests import Asking
from threadkeep.ports.gateway import ModelEvent, ModelRequest
from threadkeep.ports.models import ConnectedModel
from threadkeep.ports.tools import Asked, Caller, GivenInput, Grant, Progress, Returned, Tool, Unavailable

Step = ModelEvent | Exception | asyncio.Event
"""What a model does: gives an event, raises, or waits until the test lets it go on."""

SingleStep = EventBody | JournalEntry | TurnReceipt | Pause | HandOff

Kept = dict[PayloadId, bytes]


def large_values(kept: Kept | None = None) -> LargeValues:
    """Keeps payloads in a dict."""
    payloads = {} if kept is None else kept

    async def keep(payload: Payload, content: bytes) -> None:
        payloads[payload.id] = content

    return LargeValues(ConversationId("c"), lambda: 0, keep)


async def single(steps: AsyncGenerator[TurnStep]) -> AsyncGenerator[SingleStep]:
    """A turn's steps one by one, those that are stored together, too."""
    async with aclosing(steps):
        async for step in steps:
            if isinstance(step, Together):
                for entry in step.entries:
                    yield entry
            else:
                assert not isinstance(step, StateLeft)
                yield step


EMPTY_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}

Run = Callable[[Mapping[str, Any]], AsyncGenerator[Progress | Asked | Returned]]


class InMemoryGateway:
    """A model that plays one reply a call."""

    def __init__(
        self, *replies: Sequence[Step], supports_tools: bool = True, context_tokens: int = 100_000
    ) -> None:
        self.supports_tools = supports_tools
        self.context_tokens = context_tokens
        self.requests: list[ModelRequest] = []
        self.open_streams = 0
        self._replies = list(replies)

    @property
    def model(self) -> ConnectedModel:
        """Its one model."""
        return ConnectedModel(self.describe("scripted"), self)

    def describe(self, model: str) -> Model:
        """It looks at no files."""
        return Model(
            gateway="in-memory",
            name=model,
            context_tokens=self.context_tokens,
            supports_tools=self.supports_tools,
        )

    def signer(self, model: str) -> str:
        """Who signs its reasoning."""
        return f"in-memory/{model}"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Plays the next reply."""
        self.requests.append(request)
        self.open_streams += 1
        try:
            for step in self._replies.pop(0):
                await asyncio.sleep(0)
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                else:
                    yield step
        finally:
            self.open_streams -= 1

    async def retire(self) -> None:
        """There is nothing to let go of."""

    async def close(self) -> None:
        """There is nothing to let go of."""


class InMemoryModels:
    """The models of a gateway that lives in the test; without one, there is no model."""

    def __init__(self, gateway: InMemoryGateway | None) -> None:
        self._gateway = gateway

    def get(self, model: str | None) -> ConnectedModel:
        """Any model."""
        if self._gateway is None:
            raise GatewayNotConfigured
        if model is None:
            return self._gateway.model
        return ConnectedModel(self._gateway.describe(model.removeprefix("in-memory/")), self._gateway)

    def choose(self, model: str) -> ConnectedModel:
        """Any model."""
        return self.get(model)

    def listed(self) -> Sequence[ConnectedModel]:
        """The default model."""
        return [self._gateway.model] if self._gateway else ()


class NobodyAsked:
    """User requests of a turn that never asks."""

    expires_at = 0

    def request_id(self, tool_call_id: str) -> str:
        """The id of a request."""
        return f"request of {tool_call_id}"

    def expires_in(self, seconds: float) -> int:
        """When a request expires."""
        return 0

    async def granted(self) -> frozenset[Grant]:
        """Nothing is granted."""
        return frozenset()

    async def ask(self, asking: Asking) -> None:
        """Fails."""
        raise AssertionError("nobody is asked")

    async def withdraw(self, request_id: str) -> bool:
        """There is nothing to end."""
        return False

    async def decisions(self) -> Mapping[str, Decision]:
        """There are none."""
        return {}

    async def arrived(self) -> None:
        """Never."""
        await asyncio.Event().wait()


class InMemoryTools:
    """Tools that are functions of the test."""

    def __init__(
        self,
        *away: Unavailable,
        timeout_s: float = 10,
        schema: Mapping[str, Any] = EMPTY_SCHEMA,
        is_own: bool = True,
        effect: ToolEffect = ToolEffect.WRITE,
        **tools: Run,
    ) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.open_calls = 0
        self._away = away
        self._runs = tools
        self._timeout_s = timeout_s
        self._schema = schema
        self._is_own = is_own
        self._effect = effect

    def add(self, **tools: Run) -> None:
        """Further tools."""
        self._runs |= tools

    def remove(self, name: str) -> None:
        """A tool goes."""
        del self._runs[name]

    def session(self, caller: Caller, used: Collection[str] = ()) -> "InMemoryTools":
        """The same for everyone."""
        return self

    def end(self, caller: Caller) -> None:
        """Nothing is one conversation's alone."""

    async def own_names(self, caller: Caller) -> Collection[str]:
        """None that a client may not use."""
        return ()

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """All tools."""
        await asyncio.sleep(0)
        tools = [
            Tool("test", name, f"Does {name}.", self._schema, self._timeout_s, self._is_own, self._effect)
            for name in self._runs
        ]
        return tools, self._away

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], *, key: str, given: GivenInput | None = None
    ) -> AsyncGenerator[Progress | Asked | Returned]:
        """Runs the function, with an await before every step."""
        self.calls.append((tool.name, arguments))
        self.open_calls += 1
        steps = self._runs[tool.name](arguments)
        try:
            async for step in steps:
                await asyncio.sleep(0)
                yield step
        finally:
            self.open_calls -= 1
            await steps.aclose()


def gives(*steps: Progress | Returned | Exception | asyncio.Event) -> Run:
    """A tool that does just this, whatever it is asked."""

    async def run(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Asked | Returned]:
        for step in steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step

    return run


async def adds(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Asked | Returned]:
    """A tool that adds."""
    yield Returned("ok", result={"sum": sum(arguments.values())})
