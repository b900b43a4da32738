"""Starts a session with a server. Importing this loads the MCP SDK, which takes about a second."""

import asyncio

from threadkeep.domain.mcp import McpServer, RemoteServer, StdioServer
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.processes.lines import ServerLog
from threadkeep.mcp.processes.programs import ServerEnvironment, ServerKey
from threadkeep.mcp.sessions.incoming import IncomingMessages, LargeMessageReader
from threadkeep.mcp.sessions.remote import RemoteLink
from threadkeep.mcp.sessions.session import ServerSession
from threadkeep.mcp.sessions.stdio import StdioLink


async def launch(
    key: ServerKey,
    server: McpServer,
    environment: ServerEnvironment,
    server_log: ServerLog,
    limits: Limits,
    reader: LargeMessageReader,
) -> ServerSession:
    """A session that has just started; LinkBroken if it can't be."""
    incoming = IncomingMessages(reader)
    match server:
        case StdioServer():
            program = await asyncio.to_thread(environment.program, key, server)
            link = StdioLink(program, server_log, incoming)
        case RemoteServer():
            headers = await asyncio.to_thread(environment.headers, key, server)
            link = RemoteLink(
                server.url,
                headers,
                incoming,
                allow_private=environment.allow_private,
                denied=environment.denied_networks,
            )
        case _:
            raise AssertionError(f"a server is run or reached, not {type(server).__name__}")
    return ServerSession(
        key.name,
        link,
        incoming,
        server.timeout_s,
        limits,
        server.hide,
        has_one_user=key.user_id is not None,
    )
