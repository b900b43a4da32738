"""An application on a port, for tests that need one: browsers, WebSockets, other processes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from threadkeep.client.in_process import AsgiApplication
from threadkeep.http.server.connection import ConnectionLimits, Connections
from threadkeep.http.server.server import SignalFreeServer, listen
from threadkeep.http.server.web_sockets import SocketConnection

HOST = "127.0.0.1"


@asynccontextmanager
async def listening(app: AsgiApplication, **config: Any) -> AsyncGenerator[str]:
    """Serves an application on a free port of this machine, in the running loop; yields its URL."""
    listener = listen(HOST, 0)
    # Without sign-in, Threadkeep answers only connections of its own kind.
    ours: dict[str, Any] = {"http": Connections(ConnectionLimits()).protocol, "ws": SocketConnection}
    ours |= {"log_config": None, "access_log": False, "timeout_graceful_shutdown": 1}
    server = SignalFreeServer(uvicorn.Config(app, **{**ours, **config}))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():  # noqa: ASYNC110 - the server has no event for it
        await asyncio.sleep(0.01)
    try:
        yield f"http://{HOST}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        listener.close()
