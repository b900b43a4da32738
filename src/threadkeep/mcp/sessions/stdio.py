"""MCP over the standard streams of a process that we run."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from threadkeep.mcp.link import Link, LinkBroken, Streams
from threadkeep.mcp.processes.lines import LongLine, ServerLog
from threadkeep.mcp.processes.process import NotStarted, Program, ServerProcess
from threadkeep.mcp.sessions.incoming import (
    CANNOT_READ,
    ENDS_BYTES,
    NOT_MCP,
    TOO_LARGE,
    IncomingMessages,
    UnreadableMessage,
    answered_id,
    refusal,
)
from threadkeep.tasks import end_tasks

# Enough to cancel a call although the server is not reading at the moment.
_UNSENT_MESSAGES = 64
_SHOWN_GARBAGE = 200
_NOTED_GARBAGE = 5


class StdioLink(Link):
    """A server that we run."""

    def __init__(self, program: Program, log: ServerLog, incoming: IncomingMessages) -> None:
        self._program = program
        self._log = log
        self._incoming = incoming
        self._has_ended = False
        self._garbage = 0

    @asynccontextmanager
    async def open(self, on_end: Callable[[], None]) -> AsyncGenerator[Streams]:
        """Runs the server while the block does."""
        try:
            process = await ServerProcess.start(self._program, self._log)
        except NotStarted as exc:
            raise LinkBroken(str(exc)) from exc
        incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](_UNSENT_MESSAGES)
        tasks = (
            asyncio.create_task(self._receive(process, incoming, on_end)),
            asyncio.create_task(_send(process, outgoing)),
        )
        try:
            yield read, write
        finally:
            await end_tasks(*tasks)
            for stream in (incoming, read, write, outgoing):
                stream.close()
            await process.close()
            if self._has_ended:
                raise LinkBroken(self._how_it_ended(process.exit_code))

    async def _receive(
        self,
        process: ServerProcess,
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
        on_end: Callable[[], None],
    ) -> None:
        try:
            async with aclosing(process.lines()) as lines:
                async for line in lines:
                    if (message := await self._read(line)) is not None:
                        await incoming.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            pass  # one of the two sides has closed
        self._has_ended = True
        on_end()
        incoming.close()

    async def _read(self, line: bytes | LongLine) -> SessionMessage | None:
        """The message in a line; if unreadable, an error for the request that waits for it."""
        if isinstance(line, LongLine):
            self._log.note(f"It wrote a line of {line.length} bytes to stdout, which is too long.")
            return _refusal(line.head, line.tail, TOO_LARGE)
        line = line.strip()
        try:
            small = await self._incoming.shrink(line) if line else None
            return _parse(small) if small is not None else None
        except UnreadableMessage as exc:
            self._note_garbage(line)
            return _refusal(line[:ENDS_BYTES], line[-ENDS_BYTES:], str(exc))

    def _note_garbage(self, line: bytes) -> None:
        self._garbage += 1
        if self._garbage <= _NOTED_GARBAGE:
            self._log.note(
                f"It wrote something to stdout that isn't an MCP message: {line[:_SHOWN_GARBAGE]!r}"
            )

    def _how_it_ended(self, code: int | None) -> str:
        said = self._log.complaint
        return f"It exited with code {code}{': ' + said if said else '.'}"


def _refusal(head: bytes, tail: bytes, problem: str) -> SessionMessage | None:
    request_id = answered_id(head, tail)
    return None if request_id is None else _parse(refusal(request_id, problem))


def _parse(message: bytes) -> SessionMessage:
    try:
        # Not `validate_json`: it parses a message once for every kind of message.
        whole = msgspec.json.decode(message)
        return SessionMessage(jsonrpc_message_adapter.validate_python(whole, by_name=False))
    except RecursionError as exc:
        raise UnreadableMessage(CANNOT_READ) from exc
    except ValueError as exc:
        raise UnreadableMessage(NOT_MCP) from exc


async def _send(process: ServerProcess, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    try:
        async for sent in outgoing:
            await process.send(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
    except ConnectionError:
        outgoing.close()
