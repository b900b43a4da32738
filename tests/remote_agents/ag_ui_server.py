"""A server that speaks AG-UI as a script says: well, badly, or not at all."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Write = Callable[[bytes], Awaitable[None]]


@dataclass
class Request:
    """A run as it was asked for."""

    headers: dict[str, str]
    body: Json
    write: Write

    async def head(self, status: str = "200 OK", kind: str = "text/event-stream", more: str = "") -> None:
        """The beginning of the response."""
        await self.write(
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Connection: close\r\n\r\n".encode()
        )

    async def event(self, type_: str, **fields: Any) -> None:
        """One event."""
        await self.write(f"data: {json.dumps({'type': type_, **fields})}\n\n".encode())

    async def begin(self) -> None:
        """The response and the first event."""
        await self.head()
        await self.event("RUN_STARTED", threadId=self.body["threadId"], runId=self.body["runId"])

    async def say(self, text: str, id_: str = "m1") -> None:
        """One whole text."""
        await self.event("TEXT_MESSAGE_START", messageId=id_, role="assistant")
        await self.event("TEXT_MESSAGE_CONTENT", messageId=id_, delta=text)
        await self.event("TEXT_MESSAGE_END", messageId=id_)

    async def call(self, id_: str, name: str, arguments: Json) -> None:
        """One whole call of a tool."""
        await self.event("TOOL_CALL_START", toolCallId=id_, toolCallName=name)
        await self.event("TOOL_CALL_ARGS", toolCallId=id_, delta=json.dumps(arguments))
        await self.event("TOOL_CALL_END", toolCallId=id_)

    async def finish(self, **fields: Any) -> None:
        """The last event."""
        ids = {"threadId": self.body["threadId"], "runId": self.body["runId"]}
        await self.event("RUN_FINISHED", **ids, **fields)


Script = Callable[[Request], Awaitable[None]]


@dataclass
class AgUiServer:
    """A server on this machine; the last script answers all further requests."""

    scripts: list[Script]
    url: str = ""
    requests: list[Request] = field(default_factory=list[Request])
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed its connection before the script ended."""

    @property
    def bodies(self) -> list[Json]:
        """What was asked, in order."""
        return [it.body for it in self.requests]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}")

        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        request = Request(headers, body, write)
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        running = asyncio.ensure_future(script(request))
        gone = asyncio.ensure_future(reader.read())
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            self.closed.set()
        running.cancel()
        gone.cancel()
        await asyncio.gather(running, gone, return_exceptions=True)
        writer.close()


@asynccontextmanager
async def ag_ui_server(*scripts: Script) -> AsyncGenerator[AgUiServer]:
    """A running server."""
    server = AgUiServer([*scripts])
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0, limit=2**20)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/run"
    try:
        yield server
    finally:
        listening.close()
