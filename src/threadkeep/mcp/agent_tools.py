"""The tools of a turn: from our own servers and from the agent's, side by side."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import StorageError
from threadkeep.domain.mcp import McpServer, fingerprint
from threadkeep.domain.tool_rules import ToolEffect, effect_of
from threadkeep.domain.user import User
from threadkeep.mcp.catalog import Catalog
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerKey
from threadkeep.mcp.promptx_command import PromptXCommand
from threadkeep.mcp.used_servers import UsedHere, UsedServers
from threadkeep.ports.mcp import SeenTools, ServerState, ServerStatus
from threadkeep.ports.tools import Caller, GivenInput, Step, Tool, ToolServer, Unavailable

log = logging.getLogger("threadkeep.mcp")


class AgentTools:
    """The tools of agents, and the status of the servers that agents have added."""

    def __init__(self, own: Sequence[ToolServer], catalog: Catalog, pool: Pool, seen: SeenTools) -> None:
        self._own = {server.name: server for server in own}
        self._programs = {server.name: server for server in own if isinstance(server, PromptXCommand)}
        self._catalog = catalog
        self._pool = pool
        self._seen = seen
        self._used = UsedHere()

    def session(self, caller: Caller, used: Collection[str] = ()) -> "TurnToolSession":
        """The tools for one turn; `used` are the servers that it used on another node, or before a pause."""
        return TurnToolSession(caller, self._own, self, self._used.of(caller.conversation.tip_id or "", used))

    def end(self, caller: Caller) -> None:
        """Ends what only this caller's conversation uses."""
        self._pool.end_those_of_conversation(caller.conversation.id)

    async def own_names(self, caller: Caller) -> Collection[str]:
        """The names of our own servers' tools for this caller."""
        return {tool.name for server in self._own.values() for tool in await server.tools(caller)}

    def known(self, agent: Agent) -> Sequence[Tool]:
        """The tools that the agent's turns may use, as far as this node knows; effects are as declared."""
        own = (tool for server in self._own.values() for tool in server.offers(agent))
        statuses = self._pool.statuses(agent.id)
        servers = (statuses[name] for name in self._servers(agent) if name in statuses)
        return [*own, *(tool for status in servers for tool in status.tools or ())]

    def states(self) -> Sequence[ServerState]:
        """The status of all servers on this node."""
        return self._pool.states()

    async def of(self, agent: Agent) -> Mapping[str, ServerStatus]:
        """The status of the agent's servers on this node, by name; may omit those never used."""
        servers = self._servers(agent)
        known = self._pool.statuses(agent.id)
        statuses = {name: program.status(agent) for name, program in self._programs.items()}
        for name, server in servers.items():
            if server.disabled:
                statuses[name] = ServerStatus(ServerState.DISABLED)
            elif problem := self._catalog.problem(name, server):
                statuses[name] = ServerStatus(ServerState.FAILED, problem)
            elif name in known:
                statuses[name] = known[name]
        return statuses

    async def test(self, agent: Agent, user: User, name: str) -> ServerStatus:
        """Connects to one of the agent's servers, ignoring its back-off, and lists its tools.

        An unreachable server is a status, not an exception.
        """
        if program := self._programs.get(name):
            return await program.test(agent, user)
        server = self._servers(agent).get(name)
        if server is None:
            return ServerStatus(ServerState.READY if name in self._own else ServerState.INACTIVE)
        if problem := self._catalog.problem(name, server):
            return ServerStatus(ServerState.FAILED, problem)
        status = await self._pool.test(ServerKey.of(agent.id, name, server, user.id), server)
        if status.tools is not None:
            await self._record(agent, name, status.tools)
        return status

    async def list(self, caller: Caller) -> tuple[list[Tool], list[Unavailable]]:
        """The tools of the agent's own servers, all queried at the same time."""
        servers = self._servers(caller.agent)
        asked = [self._ask(caller, name, server) for name, server in servers.items() if not server.disabled]
        tools: list[Tool] = []
        unavailable: list[Unavailable] = []
        for answer in await asyncio.gather(*asked):
            if isinstance(answer, Unavailable):
                unavailable.append(answer)
            else:
                tools += answer
        return tools, unavailable

    def call(
        self,
        caller: Caller,
        tool: Tool,
        arguments: Mapping[str, Any],
        given: GivenInput | None,
        used: UsedServers,
    ) -> AsyncGenerator[Step]:
        """Runs a tool of one of the agent's own servers; the server receives the caller's key of the call."""
        # As it was when the turn started; later turns have the changed one.
        server = caller.agent.settings.mcp_servers[tool.server]
        key = _key(caller, tool.server, server)
        return self._pool.call(
            key, server, tool.name, arguments, call_key=caller.call_key, given=given, used=used
        )

    def _servers(self, agent: Agent) -> dict[str, McpServer]:
        """The servers that the agent's owner has added; ends any others that still run for the agent."""
        servers = {it.name: it.server for it in self._catalog.merged(agent) if it.server is not None}
        active = (name for name, server in servers.items() if not server.disabled)
        self._pool.keep_only(agent.id, {*active, *self._own})
        return servers

    async def _ask(self, caller: Caller, name: str, server: McpServer) -> Sequence[Tool] | Unavailable:
        if problem := self._catalog.problem(name, server):
            return Unavailable(name, problem)
        try:
            tools = await self._pool.tools(_key(caller, name, server), server)
        except LinkBroken as exc:
            return Unavailable(name, str(exc))
        await self._record(caller.agent, name, tools)
        effect = None if server.trust_annotations else ToolEffect.WRITE
        return [replace(it, configured=server, effect=effect or it.effect) for it in tools]

    async def _record(self, agent: Agent, name: str, tools: Sequence[Tool]) -> None:
        mark = fingerprint((tool.name, tool.description, tool.input_schema) for tool in tools)
        try:
            await self._seen.record(agent.id, name, mark)
        except StorageError as exc:
            log.warning("couldn't save the tools of server %s: %s", name, exc.message)


class TurnToolSession:
    """The tools of one turn."""

    def __init__(
        self, caller: Caller, own: Mapping[str, ToolServer], agents: AgentTools, used: UsedServers
    ) -> None:
        self._caller = caller
        self._own = own
        self._agents = agents
        self._used = used

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """What can be called now, our own tools first, each with its effect, and what is unavailable."""
        tools = [tool for server in self._own.values() for tool in await server.tools(self._caller)]
        others, unavailable = await self._agents.list(self._caller)
        return [self._ruled(tool) for tool in (*tools, *others)], unavailable

    def call(
        self, tool: Tool, arguments: Mapping[str, Any], *, key: str, given: GivenInput | None = None
    ) -> AsyncGenerator[Step]:
        """Runs a tool: any number of Progress and Asked, then one Returned or InputRequired."""
        caller = replace(self._caller, call_key=key)
        if tool.is_own:
            return self._own[tool.server].call(caller, tool.name, arguments)
        return self._agents.call(caller, tool, arguments, given, self._used)

    def _ruled(self, tool: Tool) -> Tool:
        """A tool with the effect that the agent's owner has set, if any."""
        effect = effect_of(self._caller.agent.settings.tools, tool.server, tool.name)
        return tool if effect in {None, tool.effect} else replace(tool, effect=effect)


def _key(caller: Caller, name: str, server: McpServer) -> ServerKey:
    return ServerKey.of(caller.agent.id, name, server, caller.user.id, caller.conversation.id)
