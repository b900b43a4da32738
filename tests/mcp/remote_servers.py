"""Servers that are reached by HTTP: a real one on the official SDK, and one that misbehaves."""

import asyncio
import gzip
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import uvicorn
from mcp.server.mcpserver import Context
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from threadkeep.http.server.server import listen
from threadkeep.testing import ToolServer

Respond = Callable[[Request, dict[str, Any]], Awaitable[Response | None]]


@asynccontextmanager
async def serving_http(app: ASGIApp) -> AsyncGenerator[str]:
    """An app on a free port, in a thread and loop of its own; the address of its `/mcp`."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", loop="asyncio", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await asyncio.to_thread(thread.join)
        listener.close()


async def greet(name: str, context: Context) -> str:
    """Greets somebody."""
    await context.report_progress(1, 2, "thinking")
    headers = context.headers or {}
    return f"Hello {name}, {headers.get('threadkeep-user-id')}, {headers.get('authorization')}"


async def wait() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return "never"


def greeter() -> ToolServer:
    """A server as people write them, with the SDK."""
    return ToolServer(greet, wait, name="greeter")


def bad_server(respond: Respond, *, says_farewell: bool = True) -> Starlette:
    """A server that greets and has one tool, and responds to some of it as it is told to."""

    async def mcp(request: Request) -> Response:
        if request.method == "DELETE" and not says_farewell:
            await asyncio.sleep(8)
        if request.method != "POST":
            return Response(status_code=405)
        message = msgspec.json.decode(await request.body())
        if (told := await respond(request, message)) is not None:
            return told
        result: dict[str, Any] = {}
        match message["method"]:
            case "initialize":
                result = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "bad", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "bad", "inputSchema": {"type": "object"}}]}
            case method if method.startswith("notifications/"):
                return Response(status_code=202)
            case _:
                pass
        response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(response, headers={"Mcp-Session-Id": "a-session"})

    return Starlette(routes=[Route("/mcp", mcp, methods=["GET", "POST", "DELETE"])])


def on(method: str, make: Callable[[Any], Response]) -> Respond:
    """Responds to one method with what is made from the request's number."""

    async def respond(request: Request, message: dict[str, Any]) -> Response | None:
        return make(message.get("id")) if message["method"] == method else None

    return respond


def redirect(number: Any) -> Response:
    """To an address of the machine itself."""
    return RedirectResponse("http://127.0.0.1:1/latest/meta-data?token=x", 307)


def huge(number: Any) -> Response:
    """100 MB in one response, never all at once in the memory of the server."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % number
        for _ in range(1000):
            yield b"x" * 100_000
        yield b'"}]}}'

    return StreamingResponse(pieces(), media_type="application/json")


def huge_event(number: Any) -> Response:
    """The same as one event of a stream."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"event: message\ndata: "
        for _ in range(1000):
            yield b"x" * 100_000
        yield b"\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


def bomb(number: Any) -> Response:
    """A small response that is large when it is unpacked."""
    packed = gzip.compress(b"0" * 50_000_000)
    return Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})


def garbage(number: Any) -> Response:
    """No JSON at all."""
    return Response("<html>Sign in</html>", media_type="application/json")


def unauthorized(number: Any) -> Response:
    """Somebody without a key."""
    return Response(status_code=401)


def web_page(number: Any) -> Response:
    """Something for people."""
    return Response("<html>Hello</html>", media_type="text/html")


def gateway_timeout(number: Any) -> Response:
    """From something between us and the server."""
    return JSONResponse({"message": "Endpoint request timed out"}, 504)


def broken(number: Any) -> Response:
    """The server says what went wrong."""
    error = {"code": -32603, "message": "The table is locked."}
    return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, 500)


def ending(number: Any) -> Response:
    """A stream that ends before the response."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b": working\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


def cut_off(number: Any) -> Response:
    """A response of which only the beginning comes."""
    return Response(b"{", media_type="application/json", headers={"Content-Length": "100"})


def forgotten(number: Any) -> Response:
    """A session that the server does not know any more."""
    return Response(status_code=404)
