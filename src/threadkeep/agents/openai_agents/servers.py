"""MCP servers of the SDK: what tools they have is recorded, and they are connected when they are needed."""

import asyncio
from contextvars import Context
from typing import Any, cast
from weakref import WeakKeyDictionary

from agents.mcp import MCPServer, MCPServerManager
from mcp import Tool

from threadkeep.agents.openai_agents.current import recording, step_name

_connecting: WeakKeyDictionary[MCPServer, "asyncio.Task[MCPServerManager]"] = WeakKeyDictionary()


def record_server(server: MCPServer) -> None:
    """From now on, a turn asks a server once for its tools; a server that isn't connected is."""
    changed = cast("Any", server)
    if getattr(changed, "_threadkeep_recorded", False):
        return
    changed._threadkeep_recorded = True
    list_tools, call_tool = server.list_tools, server.call_tool

    async def listed(*args: Any, **kwargs: Any) -> list[Tool]:
        if (now := recording()) is None:
            return await list_tools(*args, **kwargs)

        async def ask() -> list[Any]:
            await _connect(server)
            return [it.model_dump(mode="json", by_alias=True) for it in await list_tools(*args, **kwargs)]

        name = step_name(f"{server.name} tools")
        found = await now[0].step(ask, name=name, key=server.name, effect="read", hidden=True)
        return [Tool.model_validate(it) for it in found]

    async def called(*args: Any, **kwargs: Any) -> Any:
        await _connect(server)
        return await call_tool(*args, **kwargs)

    changed.list_tools, changed.call_tool = listed, called


async def _connect(server: MCPServer) -> None:
    """Connects a server that its owner hasn't connected, for all turns to come."""
    if getattr(server, "session", server) is not None:
        return
    connecting = _connecting.get(server)
    if (
        connecting is None
        or connecting.get_loop() is not asyncio.get_running_loop()
        or _has_failed(connecting)
    ):
        # A connection outlives the turn that first needs it, so it isn't one of the turn's tasks.
        connecting = asyncio.create_task(_managed(server), context=Context())
        _connecting[server] = connecting
    await asyncio.shield(connecting)


async def _managed(server: MCPServer) -> MCPServerManager:
    manager = MCPServerManager([server], strict=True, connect_in_parallel=True)
    await manager.connect_all()
    return manager


def _has_failed(connecting: "asyncio.Task[Any]") -> bool:
    return connecting.done() and (connecting.cancelled() or connecting.exception() is not None)
