"""Whether agents' MCP servers run, their rules for tools mean something, and their roles are complete."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from threadkeep.bootstrap import build_catalog, build_server_environment
from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.ids import UserId
from threadkeep.domain.mcp import McpServer, StdioServer
from threadkeep.domain.tool_rules import rules_without_server, without_server
from threadkeep.domain.workspace import Workspaces
from threadkeep.loops import Loops
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerKey
from threadkeep.ports.mcp import ServerState, ServerStatus
from threadkeep.settings import Settings
from threadkeep.storage.inspection import Inspection, KeptAgent
from threadkeep.tools.roles import role_problems

SERVERS_AT_ONCE = 4


async def check_servers(settings: Settings, inspection: Inspection) -> AsyncGenerator[Finding]:
    """Connects to every MCP server of agents, a few at a time, and ends those that it started."""
    found = [
        (agent, name, server)
        for agent in inspection.agents
        for name, server in agent.settings.mcp_servers.items()
        if not server.disabled
    ]
    if not found:
        yield Finding("mcp servers", "ok", "No agent has added an MCP server.")
        return
    turn = asyncio.Semaphore(SERVERS_AT_ONCE)
    with TemporaryDirectory(prefix="threadkeep-doctor-") as elsewhere:

        async def look_in(agent: KeptAgent, name: str, server: McpServer) -> Finding:
            async with turn:
                status = await _connect(settings, Path(elsewhere), agent, name, server)
            label = f"{name} of {agent.name}"
            if status.state is ServerState.READY:
                return Finding("mcp servers", "ok", f"{label}: {len(status.tools or ())} tools.")
            advice = "Fix it in the agent's settings, or disable it there; turns continue without it."
            return Finding("mcp servers", "warning", f"{label}: {status.error or 'not connected.'}", advice)

        for finding in await asyncio.gather(*(look_in(*it) for it in found)):
            yield finding


def check_rules(inspection: Inspection) -> Iterator[Finding]:
    """Whether the servers that agents' rules for tools name exist."""
    for agent in inspection.agents:
        for rule in rules_without_server(agent.settings.tools, agent.settings.mcp_servers):
            advice = "Correct the name in the rule, or add the server: threadkeep mcp add."
            yield Finding("tool rules", "warning", f"{agent.name}: {without_server(rule)}.", advice)


async def _connect(
    settings: Settings, elsewhere: Path, agent: KeptAgent, name: str, server: McpServer
) -> ServerStatus:
    if problem := build_catalog(settings).problem(name, server):
        return ServerStatus(ServerState.FAILED, problem)
    # If its folder doesn't exist yet, it runs in a temporary one.
    inner = server.cwd if isinstance(server, StdioServer) else None
    is_there = (settings.workspaces.of(agent.id) / (inner or "")).is_dir()
    workspaces = settings.workspaces if is_there else Workspaces(elsewhere)
    pool = Pool(build_server_environment(settings, workspaces), Limits(), Loops())
    try:
        return await pool.test(ServerKey.of(agent.id, name, server, UserId("doctor")), server)
    except ThreadkeepError as exc:  # one of its secrets is unreadable
        return ServerStatus(ServerState.FAILED, exc.message)
    finally:
        await pool.close()


def check_roles(settings: Settings) -> Iterator[Finding]:
    """Whether everything that role files refer to exists."""
    problems = list(role_problems(settings.workspaces))
    for problem in problems:
        yield Finding("roles", "warning", f"{problem}.", "Add the files, or remove the references.")
    if not problems:
        yield Finding("roles", "ok", "Every file they refer to exists.")
