"""Finds the tools, models, MCP servers and guardrails of an agent, and of the agents that it leads to.

They are changed in place: an agent's closures, such as those of `handoff()`, keep the objects themselves.
Outside of a turn, all of them do what they did before.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from agents import Agent, FunctionTool, Handoff, Model, RunContextWrapper

from threadkeep.agents.openai_agents.current import recording
from threadkeep.agents.openai_agents.guardrails import record_guardrails
from threadkeep.agents.openai_agents.models import record_model
from threadkeep.agents.openai_agents.offered_tools import as_sdk_tools
from threadkeep.agents.openai_agents.servers import record_server
from threadkeep.agents.openai_agents.tools import record_tool


def prepare(agent: Agent[Any]) -> None:
    """Has an agent recorded, and all that it can hand over to or call as tools."""
    found, waiting = set[int](), [agent]
    while waiting:
        it = waiting.pop()
        if id(it) not in found:
            found.add(id(it))
            _prepare(it)
            waiting.extend(leads_to(it))


def leads_to(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    """The agents that it can hand over to or call as tools.

    Both names are private to the SDK: no public ones lead to an agent.
    """
    for it in agent.handoffs:
        reference = cast("Any", it)._agent_ref if isinstance(it, Handoff) else None
        target: Any = reference() if reference is not None else it
        if isinstance(target, Agent):
            yield cast("Agent[Any]", target)
    for tool in agent.tools:
        target = cast("Any", tool)._agent_instance if isinstance(tool, FunctionTool) else None
        if isinstance(target, Agent):
            yield cast("Agent[Any]", target)


def _prepare(agent: Agent[Any]) -> None:
    changed = cast("Any", agent)
    if getattr(changed, "_threadkeep_recorded", None) is agent:
        return
    changed._threadkeep_recorded = agent
    if isinstance(agent.model, Model):
        record_model(agent.model)
    record_guardrails(agent.input_guardrails)
    record_guardrails(agent.output_guardrails)
    for server in agent.mcp_servers:
        record_server(server)
    _record_tools(agent.tools)
    get_all_tools = agent.get_all_tools

    async def get_all(run_context: RunContextWrapper[Any]) -> list[Any]:
        if (now := recording()) is not None:
            now[1].agent = agent.name
        tools = await get_all_tools(run_context)
        _record_tools(tools)  # those of MCP servers are made each time
        if now is None or now[1].is_nested:
            return tools
        turn, run = now
        return [*tools, *as_sdk_tools(turn, run.offered, {it.name for it in tools})]

    changed.get_all_tools = get_all


def _record_tools(tools: Iterable[Any]) -> None:
    for tool in tools:
        if isinstance(tool, FunctionTool):
            record_tool(tool)
            record_guardrails(tool.tool_input_guardrails or ())
            record_guardrails(tool.tool_output_guardrails or ())
