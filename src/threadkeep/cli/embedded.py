"""A temporary Threadkeep for one chat, if no server runs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn

from threadkeep.bootstrap import create_app
from threadkeep.cli.privacy import keep_secrets_private
from threadkeep.http.server.server import listen, uvicorn_config
from threadkeep.settings import Settings
from threadkeep.storage.store import sqlite_path

SHUTDOWN_S = 2


def has_data(settings: Settings) -> bool:
    """Whether a server has run with these settings, or a backup was restored or data imported."""
    return sqlite_path(settings.database).is_file() if settings.on_sqlite else settings.data.is_dir()


@asynccontextmanager
async def embedded(settings: Settings) -> AsyncGenerator[str]:
    """Serves the data folder on a free port of this machine; yields its address."""
    keep_secrets_private(settings)  # like any server, it runs MCP servers' programs
    app = create_app(settings)
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn_config(app, SHUTDOWN_S))
        async with app.lifespan():
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                await serving
