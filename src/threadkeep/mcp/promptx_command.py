"""A real PromptX in place of our own: a program that runs separately for each agent and user.

It takes its project from PWD first, stores data in HOME, and writes beside the roles which ones it has found,
so each user has their own of all three, in a folder of the agent's workspace (`personal.py`).
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.mcp import PROMPTX, ServerScope, StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.domain.user import User
from threadkeep.domain.workspace import Workspaces
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.personal import FOLDER, prepare
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerKey
from threadkeep.ports.mcp import ServerState, ServerStatus
from threadkeep.ports.tools import Asked, Caller, InputRequired, Returned, Step, Tool


class PromptXCommand:
    """The three PromptX tools, run by a program of the operator's choice."""

    name = PROMPTX

    def __init__(
        self, command: Sequence[str], tools: Sequence[Tool], workspaces: Workspaces, pool: Pool
    ) -> None:
        self._command, *self._args = command
        self._tools = tuple(map(_as_the_program_does_it, tools))
        self._workspaces = workspaces
        self._pool = pool

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """The same for every agent."""
        return self._tools

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """All three, with our descriptions; the first call starts the program."""
        return self._tools

    async def call(self, caller: Caller, name: str, arguments: Mapping[str, Any]) -> AsyncGenerator[Step]:
        """Makes the program run a tool."""
        try:
            key, server, folder = await self._program(caller.agent, caller.user)
            offered = {tool.name for tool in await self._pool.tools(key, server)}
        except LinkBroken as exc:
            yield Returned("error", error=f"Couldn't connect to PromptX: {exc}")
            return
        if name == "promptx_action" and "promptx_init" in offered:
            # Otherwise it warns about an unnamed project, and misses roles written since it started.
            begun = self._pool.call(key, server, "promptx_init", {"workingDirectory": str(folder)})
            async with aclosing(begun) as steps:
                async for step in steps:
                    if isinstance(step, Asked):
                        step.decide(None)
        # Later versions dropped the prefix.
        theirs = name if name in offered else name.removeprefix("promptx_")
        calling = self._pool.call(key, server, theirs, arguments, call_key=caller.call_key)
        async with aclosing(calling) as steps:
            async for step in steps:
                if isinstance(step, InputRequired):
                    yield Returned(
                        "error", error="PromptX asked the user a question, which isn't allowed here."
                    )
                else:
                    yield _known_role(step, arguments) if name == "promptx_action" else step

    def status(self, agent: Agent) -> ServerStatus:
        """The program's status when last used."""
        return self._pool.statuses(agent.id).get(PROMPTX, ServerStatus(ServerState.IDLE))

    async def test(self, agent: Agent, user: User) -> ServerStatus:
        """Starts the program for this user, whatever its back-off."""
        try:
            key, server, _ = await self._program(agent, user)
        except LinkBroken as exc:
            return ServerStatus(ServerState.FAILED, str(exc))
        return await self._pool.test(key, server)

    async def _program(self, agent: Agent, user: User) -> tuple[ServerKey, StdioServer, Path]:
        """The key of this user's program, its server, and its folder."""
        folder = await asyncio.to_thread(prepare, self._workspaces.of(agent.id), user.id)
        return ServerKey(agent.id, PROMPTX, user.id), self._server(folder), folder

    def _server(self, folder: Path) -> StdioServer:
        home = folder / "home"
        return StdioServer(
            self._command,
            tuple(self._args),
            env={"HOME": Secret(str(home)), "PROMPTX_PROJECT_DIR": Secret(str(folder))},
            cwd=f"{FOLDER}/{folder.name}",
            scope=ServerScope.USER,
        )


def _as_the_program_does_it(tool: Tool) -> Tool:
    """A tool with its effect there: the program may store a repeated memory twice."""
    return tool if tool.effect is ToolEffect.READ else replace(tool, effect=ToolEffect.WRITE)


def _known_role(step: Step, arguments: Mapping[str, Any]) -> Step:
    """Makes an error of PromptX's prose reply that the role doesn't exist."""
    if isinstance(step, Returned) and f'"{arguments.get("role")}" 不存在' in str(step.result):
        return Returned("error", error=str(step.result))
    return step
