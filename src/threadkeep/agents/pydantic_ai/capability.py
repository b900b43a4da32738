"""What makes an agent of pydantic-ai durable: its model calls and tool calls become steps of the turn."""

from collections.abc import AsyncIterable
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    DurabilityEngineSpec,
    DurableOperationBackend,
)
from pydantic_ai.durable_exec import conversation_id_from_run_id as conversation_of
from pydantic_ai.messages import (
    AgentStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset

from threadkeep.agents.pydantic_ai.deferred import decide
from threadkeep.agents.pydantic_ai.operations import Operations, is_shown
from threadkeep.agents.pydantic_ai.records import records_of
from threadkeep.agents.turn import Turn, current_turn, in_step, in_turn

Leaf = AbstractToolset[Any]


class Durability(BaseDurabilityCapability[Any]):
    """Records what an agent does in the turn in which it runs; outside a turn it does nothing.

    `durable(agent)` adds it to each run. An agent that a tool of another one runs is given it when it is
    made: `Agent(…, capabilities=[Durability()])`.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="Threadkeep",
        durable_unit_noun="step",
        durable_container_noun="turn",
        codec=JSON_CODEC,
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-never",
        },
    )

    def __init__(self, *, name: str = "agent") -> None:
        super().__init__(event_stream_handler=self._show, name=name)
        self._operations = Operations()

    def _bind_to_agent(self, agent: Any) -> None:
        self._operations = Operations()
        self._toolsets: dict[int, tuple[Leaf, Leaf]] = {}

    def get_durable_operation_backend(self) -> DurableOperationBackend[Any]:
        """Where each operation becomes a step."""
        return self._operations

    @property
    def in_durable_context(self) -> bool:
        """Whether what is done here can be a step: in a turn, and not in a step of it."""
        return in_turn() and not in_step()

    def get_default_run_id(self) -> str | None:
        """The same when the function runs again."""
        return records_of(current_turn()).next_run_id(current_turn()) if self.in_durable_context else None

    def get_default_conversation_id(self, run_id: str) -> str | None:
        """The same when the function runs again."""
        return conversation_of(run_id) if self.in_durable_context else None

    def get_wrapper_toolset(self, toolset: Leaf) -> Leaf | None:
        """Every toolset, with or without an id, and also one that was added for this run."""
        return toolset.visit_and_replace(self._recorded) if self.in_durable_context else None

    def _recorded(self, leaf: Leaf) -> Leaf:
        known = self._toolsets.get(id(leaf))
        if known is None:  # with the leaf, so that its id stays its own
            known = self._toolsets[id(leaf)] = leaf, self._wrap_leaf_toolset(leaf) or leaf
        return known[1]

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Calls that a person decides on, or that are made elsewhere, pause the turn."""
        return await decide(current_turn(), requests) if self.in_durable_context else None

    async def _show(self, _: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Shows what a model says while it says it."""
        if is_shown.get():
            turn = current_turn()
            async for event in events:
                await show(turn, event)


async def show(turn: Turn, event: AgentStreamEvent) -> None:
    """Shows a piece of a text or of reasoning."""
    match event:
        case (
            PartStartEvent(part=TextPart(content=text))
            | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
        ):
            await turn.say(text)
        case PartStartEvent(part=ThinkingPart(content=text)):
            await turn.think(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            await turn.think(text)
        case _:
            pass
