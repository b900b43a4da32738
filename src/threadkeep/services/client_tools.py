"""Tools that clients run: which a request may bring, and how a turn offers them to its model."""

import asyncio
from collections.abc import Sequence

from threadkeep.domain.agent import Agent
from threadkeep.domain.client_tool import ClientTool, check_client_tools
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.model import Model
from threadkeep.domain.tool_rules import ToolAccess, access_of
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.domain.user import User
from threadkeep.ports.tools import Caller, Tool, ToolProvider


class ClientTools:
    """Checks the tools that requests bring."""

    def __init__(self, provider: ToolProvider | None) -> None:
        self._provider = provider

    async def check(
        self, user: User, agent: Agent, conversation: Conversation, begun_with: BegunWith | None
    ) -> None:
        """Refuses tools that are malformed, that the agent or the operator doesn't accept, or whose names
        the model knows as the agent's own.
        """
        tools = begun_with.tools if begun_with else ()
        if not tools:
            return
        await check_accepted(agent, tools)
        servers = tuple(f"{server}__" for server in agent.settings.mcp_servers)
        caller = Caller(agent, user, conversation)
        own = await self._provider.own_names(caller) if self._provider else ()
        for tool in tools:
            if tool.name in own or tool.name.startswith(servers):
                raise InvalidRequest(
                    f"The agent has a tool named `{tool.name}`; choose another name.", param="tools"
                )


async def check_accepted(agent: Agent, tools: Sequence[ClientTool]) -> None:
    """Refuses tools that the agent doesn't accept, or that are malformed."""
    if not tools:
        return
    if not agent.settings.client_tools:
        raise InvalidRequest("This agent doesn't accept tools that the client runs.", param="tools")
    await asyncio.to_thread(check_client_tools, tools)  # they may have many schemas


def offered_client_tools(agent: Agent, turn: Turn, model: Model) -> list[Tool]:
    """What the model is offered of a turn's: nothing that the owner's rules deny."""
    if not agent.settings.client_tools or not model.supports_tools:
        return []
    rules, tools = agent.settings.tools, turn.begun_with.tools if turn.begun_with else ()
    return [
        Tool(
            server=CLIENT,
            name=tool.name,
            description=tool.description,
            input_schema={"type": "object", "properties": {}, **tool.parameters},
            timeout_s=0,
            is_run_by_client=True,
        )
        for tool in tools
        if access_of(rules, CLIENT, tool.name) is not ToolAccess.DENY
    ]
