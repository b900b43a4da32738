"""A tool server whose tools are functions of a test: a real MCP server, over HTTP on this machine.

    def add(a: int, b: int) -> int:
        "Adds two numbers."
        return a + b

    with ToolServer(add) as server:
        agent = await client.create_agent("Clerk", settings={"mcpServers": {"sums": server.settings}})
        …
        server.uses    # [ToolUse("add", {"a": 1, "b": 2})]

Threadkeep only connects to it if `mcp_allow_private` is set, as `running_app` does.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Self

from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, ToolAnnotations

from threadkeep.client.blocking import LoopThread
from threadkeep.testing.listening import listening

_READ = ToolAnnotations(read_only_hint=True)
_IDEMPOTENT = ToolAnnotations(idempotent_hint=True)

_call_key: ContextVar[str] = ContextVar("call_key", default="")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call with its arguments.

    A repeated call has the same `key`, which is neither compared nor shown.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    key: str = field(default="", compare=False, repr=False)


class ToolServer:
    """The server, in a separate thread for the duration of the `with` block.

    A tool is named after its function, and its docstring describes it to the model. What it raises is the
    tool's error, in the exception's words. A parameter of the type `mcp.server.mcpserver.Context` gets the
    context of the call. Tools in `reading` and `idempotent` are annotated as such: with `trustAnnotations`,
    Threadkeep may repeat their calls. With `newest_only` it speaks MCP of 2026 and later: a tool may return
    an `InputRequiredResult`.
    """

    def __init__(
        self,
        *tools: Callable[..., Any],
        name: str = "tools",
        reading: Sequence[Callable[..., Any]] = (),
        idempotent: Sequence[Callable[..., Any]] = (),
        newest_only: bool = False,
    ) -> None:
        self.uses: list[ToolUse] = []
        self.url = ""  # set while it runs
        self._server = MCPServer(name, log_level="WARNING")
        self._server.middleware.append(_remember_call_key)
        if newest_only:
            self._server.middleware.append(_refuse_handshake)
        for kind, annotations in ((tools, None), (reading, _READ), (idempotent, _IDEMPOTENT)):
            for tool in kind:
                self._server.add_tool(self._noted(tool), annotations=annotations)

    @property
    def settings(self) -> dict[str, Any]:
        """The server as an entry of an agent's `mcpServers`."""
        return {"url": self.url}

    def __enter__(self) -> Self:
        self._thread = LoopThread()
        self._stop = asyncio.Event()
        ready: Future[Any] = Future()
        self._serving = self._thread.start(self._serve(ready))
        wait([ready, self._serving], return_when=FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()  # raises the reason why it hasn't started
        self.url = ready.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.loop.call_soon_threadsafe(self._stop.set)
        self._serving.result()
        self._thread.close()

    async def _serve(self, ready: "Future[Any]") -> None:
        app = self._server.streamable_http_app()
        # End the sessions before closing the port: their streams end, and nothing waits for them.
        async with listening(app, lifespan="off") as url, app.router.lifespan_context(app):
            ready.set_result(f"{url}/mcp")
            await self._stop.wait()

    def _noted(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        """The same tool; records each call first."""

        @wraps(tool)
        async def call(**arguments: Any) -> Any:
            given = {name: it for name, it in arguments.items() if not isinstance(it, Context)}
            self.uses.append(ToolUse(tool.__name__, given, _call_key.get()))
            try:
                result = tool(**arguments)
                return await result if inspect.isawaitable(result) else result
            except MCPError:
                raise
            except Exception as exc:
                raise ToolError(str(exc)) from exc

        return call


async def _remember_call_key(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
    _call_key.set(str((ctx.meta or {}).get("threadkeep/idempotencyKey", "")))
    return await call_next(ctx)


async def _refuse_handshake(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
    if ctx.method == "initialize":
        raise MCPError(code=METHOD_NOT_FOUND, message="This server has no handshake.")
    return await call_next(ctx)
