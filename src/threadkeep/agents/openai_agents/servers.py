"""MCP servers of the SDK: what tools they have is recorded, and they are connected while turns need them."""

import asyncio
from contextvars import Context
from typing import Any, cast
from weakref import WeakKeyDictionary

from agents.mcp import MCPServer
from mcp import Tool

from threadkeep.agents.openai_agents.current import Running, recording, running, step_name

CLOSE_S = 1.5

_connections: WeakKeyDictionary[MCPServer, "_Connection"] = WeakKeyDictionary()


def record_server(server: MCPServer) -> None:
    """From now on, a turn asks a server once for its tools; a server that isn't connected is."""
    changed = cast("Any", server)
    if getattr(changed, "_threadkeep_recorded", False):
        return
    changed._threadkeep_recorded = True
    list_tools, call_tool = server.list_tools, server.call_tool

    async def listed(*args: Any, **kwargs: Any) -> list[Tool]:
        if (now := recording()) is None:
            await _connect(server)
            return await list_tools(*args, **kwargs)

        async def ask() -> list[Any]:
            await _connect(server)
            return [it.model_dump(mode="json", by_alias=True) for it in await list_tools(*args, **kwargs)]

        name = step_name(f"{server.name} tools")
        found: Any = await now[0].step(ask, name=name, key=server.name, effect="read", hidden=True)
        return [Tool.model_validate(it) for it in found]

    async def called(*args: Any, **kwargs: Any) -> Any:
        await _connect(server)
        return await call_tool(*args, **kwargs)

    changed.list_tools, changed.call_tool = listed, called


async def _connect(server: MCPServer) -> None:
    """Connects a server that its owner hasn't connected, until the turns that need it have ended."""
    run = running.get()
    connection = _connections.get(server)
    if connection is None or connection.is_over:
        if run is None or getattr(server, "session", server) is not None:
            return
        connection = _connections[server] = _Connection(server)
    if run is not None:
        connection.use(run)
    await asyncio.shield(connection.ready)


class _Connection:
    """A connection, in a task of its own: it has to end in the task in which it began."""

    def __init__(self, server: MCPServer) -> None:
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server = server
        self._users = set[int]()
        self._unused = asyncio.Event()
        # Several turns may use it, so it isn't one of the tasks of the turn that first needs it.
        self._task = asyncio.create_task(self._live(), context=Context())

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._task.done() or self._unused.is_set() or self._task.get_loop().is_closed()

    def use(self, run: Running) -> None:
        """A run needs it until its end."""
        if run.number not in self._users:
            self._users.add(run.number)
            run.at_end.append(lambda: self._release(run))

    async def _release(self, run: Running) -> None:
        self._users.discard(run.number)
        if not self._users:
            self._unused.set()
            await asyncio.wait({self._task}, timeout=CLOSE_S)

    async def _live(self) -> None:
        try:
            await self._server.connect()
        except BaseException as exc:  # noqa: BLE001 - those who wait for it raise it
            self.ready.set_exception(exc)
            self.ready.exception()
            return
        self.ready.set_result(None)
        try:
            await self._unused.wait()
        finally:
            await self._server.cleanup()
