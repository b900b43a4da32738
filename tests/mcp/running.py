"""Servers for tests, and what is left of them."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.making import ALICE, BOB
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.domain.mcp import McpServer, StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.domain.workspace import Workspaces
from threadkeep.loops import Loops
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerEnvironment, ServerKey
from threadkeep.ports.tools import Returned, Step
from threadkeep.testing.waiting import until

__all__ = ["ALICE", "BOB", "Limits"]

LIMITS = Limits(most_servers=8, budget_s=60, connect_s=60, ping_s=60, idle_s=600)

CHAOS = Path(__file__).parent / "chaos.py"
ENVIRONMENT = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


HALVES = r"""a\ud800b\udc00c\uD83D\uDE00\\ud800 \ud83d\ud83d\ude00"""
"""Half surrogate pairs, whole ones, and what only looks like one, as they are on the wire."""
MENDED = [
    (f'{{"content": [{{"type": "text", "text": "{text}"}}]}}', shown)
    for text, shown in (
        (HALVES, "a\ufffdb\ufffdc😀\\ud800 \ufffd😀"),
        ("x" * 70_000 + HALVES, "x" * 70_000 + "a\ufffdb\ufffdc😀\\ud800 \ufffd😀"),
        ("a\xffb", "a\ufffdb"),
    )
]
"""Results on the wire, in Latin-1, and the texts that arrive."""


def chaos(mode: str = "good", env: Mapping[str, str] | None = None, **settings: Any) -> StdioServer:
    """A server that misbehaves like this."""
    secrets = {name: Secret(value) for name, value in (env or {}).items()}
    return StdioServer("python", ("-I", "-S", str(CHAOS), mode), secrets, **settings)


class Pooled:
    """A pool, and short ways to use it; its servers write their process ids to a file."""

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        *,
        allow_private: bool = False,
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        self.pids_file = folder / "pids"
        environment = {**environment, "CHAOS_PIDS": str(self.pids_file)}
        self.workspaces = Workspaces(folder / "data")
        self.pool = Pool(
            ServerEnvironment(self.workspaces, environment, allow_private=allow_private), limits, Loops()
        )
        self.agent_id = AgentId(new_uuid())

    def key(self, server: McpServer, user: UserId = ALICE, name: str = "chaos") -> ServerKey:
        """Where this user finds a server."""
        return ServerKey.of(self.agent_id, name, server, user)

    async def tools(self, server: McpServer, user: UserId = ALICE, name: str = "chaos") -> list[str]:
        """The names of the tools that a server has."""
        return [tool.name for tool in await self.pool.tools(self.key(server, user, name), server)]

    async def steps(
        self, server: McpServer, tool: str, user: UserId = ALICE, name: str = "chaos", **arguments: Any
    ) -> list[Step]:
        """All that comes of a call."""
        calling = self.pool.call(self.key(server, user, name), server, tool, arguments)
        return [step async for step in calling]

    async def call(
        self, server: McpServer, tool: str, user: UserId = ALICE, name: str = "chaos", **arguments: Any
    ) -> Returned:
        """How a call ends."""
        returned = (await self.steps(server, tool, user, name, **arguments))[-1]
        assert isinstance(returned, Returned)
        return returned

    def pids(self) -> list[int]:
        """Every process that the servers noted, in the order of their births."""
        return [int(line) for line in self.pids_file.read_text().split()] if self.pids_file.exists() else []


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not collected yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until_none(left: Callable[[], Collection[Any]]) -> None:
    """Waits until nothing is left, and says what is."""
    try:
        await until(lambda: not left())
    except TimeoutError:
        raise AssertionError(f"This is left: {left()}") from None


def descriptors() -> set[str]:
    """What this process holds open, by what it is."""
    found: set[str] = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(f"{entry.name} {entry.readlink()}")
    return found


@asynccontextmanager
async def pooled(folder: Path, limits: Limits, **settings: Any) -> AsyncGenerator[Pooled]:
    """A pool that must leave nothing behind: no process, no descriptor, no task."""
    tasks, open_before = asyncio.all_tasks(), descriptors()
    pooled = Pooled(folder, limits, **settings)
    try:
        yield pooled
    finally:
        await pooled.pool.close()
    await until_none(lambda: [pid for pid in pooled.pids() if is_alive(pid)])
    await until_none(lambda: asyncio.all_tasks() - tasks - {asyncio.current_task()})
    await until_none(lambda: descriptors() - open_before)
