"""Hooks of a run: agents that are made while it runs are recorded, too."""

from typing import Any

from agents import Agent, RunHooks

from threadkeep.agents.openai_agents.preparing import prepare


class PreparingHooks(RunHooks[Any]):
    """Prepares each agent that begins, and calls the hooks of the run's owner."""

    def __init__(self, inner: RunHooks[Any] | None) -> None:
        self._inner = inner or RunHooks[Any]()

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:
        """An agent begins: it may be one that nothing has led to so far."""
        prepare(agent)
        await self._inner.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """An agent has ended."""
        await self._inner.on_agent_end(context, agent, output)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """An agent hands over."""
        await self._inner.on_handoff(context, from_agent, to_agent)

    async def on_llm_start(self, *args: Any, **kwargs: Any) -> None:
        """A model is about to be asked."""
        await self._inner.on_llm_start(*args, **kwargs)

    async def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        """A model has replied."""
        await self._inner.on_llm_end(*args, **kwargs)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool is about to be called."""
        await self._inner.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """A tool has returned."""
        await self._inner.on_tool_end(context, agent, tool, result)
