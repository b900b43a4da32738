"""The messages that a server sends. A separate process reads the large ones, so that no turn waits for it."""

import asyncio
import logging
import re
import uuid
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from typing import Any

import msgspec

from threadkeep.confined.process import end_process, start_confined
from threadkeep.mcp.sessions.call_result import CallResult, ExtractedResult, read_result, repaired
from threadkeep.ports.tools import MOST_RESULT_BYTES, Returned, ReturnedFile

log = logging.getLogger("threadkeep.mcp")

LARGE_BYTES = 64 * 1024
MANY_OBJECTS = 500
MOST_AT_ONCE = 2
MOST_UNCLAIMED = 16
READING_S = 60.0

CANNOT_READ = "The message is too large or too deeply nested."
_MOST_MB = MOST_RESULT_BYTES // (1024 * 1024)
TOO_LARGE = f"The result is larger than {_MOST_MB} MB, the limit."
NOT_MCP = "The server's response isn't a valid MCP message."

ENDS_BYTES = 256
PARSE_ERROR = -32700  # not the SDK's, which is loaded only once there is a server
NOT_SENT, NOT_ANSWERED = -32090, -32091
"""Our own codes for what became of a call: the server didn't receive it, or may have."""
_ID_AT_THE_BEGINNING = re.compile(rb'^\{\s*"jsonrpc":\s*"2\.0",\s*"id":\s*(\d{1,9}),')
_ID_AT_THE_END = re.compile(rb'"id":\s*(\d{1,9})(,\s*"jsonrpc":\s*"2\.0")?\s*\}\s*$')
_UNASKED = re.compile(rb'\{\s*("jsonrpc":\s*"2\.0",\s*)?"method"')

_decode = msgspec.msgpack.Decoder(ExtractedResult).decode


def is_notice(head: bytes) -> bool:
    """Whether a message that begins like this is unsolicited."""
    return _UNASKED.match(head) is not None


class UnreadableMessage(Exception):
    """A message that can't be read; says why, for people."""


def refusal(request_id: int | str, problem: str, code: int = PARSE_ERROR) -> bytes:
    """The error response to the one request that has no result, or one that can't be read."""
    error = {"code": code, "message": problem}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def answered_id(head: bytes, tail: bytes) -> int | None:
    """Which request an unreadable message answers, if recognisable."""
    found = _ID_AT_THE_BEGINNING.search(head) or _ID_AT_THE_END.search(tail)
    return int(found[1]) if found else None


class LargeMessageReader:
    """The processes that read large messages, for all servers of a node."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MOST_AT_ONCE)

    async def read(self, message: bytes) -> ExtractedResult | None:
        """Reads a large message; None if it can't be read."""
        try:
            return await self._read(message)
        except (TimeoutError, OSError, msgspec.DecodeError) as exc:
            log.warning("couldn't read a large message: %s", type(exc).__name__)
            return None

    async def _read(self, message: bytes) -> ExtractedResult | None:
        async with self._free:
            process = await start_confined("threadkeep.mcp.sessions.call_result", stdin=PIPE)
            try:
                async with asyncio.timeout(READING_S):
                    read, _ = await process.communicate(message)
                return _decode(read) if process.returncode == 0 else None
            finally:
                await end_process(process)


class IncomingMessages:
    """One server's messages, made small for the session; large results wait until their call claims them."""

    def __init__(self, reader: LargeMessageReader) -> None:
        self._reader = reader
        self._waiting: dict[str, CallResult] = {}

    async def shrink(self, message: bytes) -> bytes | None:
        """A message for the session; None for a large notification, which is skipped.

        Raises UnreadableMessage.
        """
        if not message.lstrip().startswith(b"{"):
            raise UnreadableMessage(NOT_MCP)
        if len(message) > MOST_RESULT_BYTES:
            raise UnreadableMessage(TOO_LARGE)
        if len(message) <= LARGE_BYTES and message.count(b"{") <= MANY_OBJECTS:
            return repaired(message)
        if is_notice(message):
            return None
        read = await self._reader.read(message)
        if read is None:
            raise UnreadableMessage(CANNOT_READ)
        return read.message if read.result is None else self._set_aside(read.message, read.result)

    def returned(self, result: Mapping[str, Any]) -> Returned:
        """How a call ended; ValueError if this isn't a call's result."""
        match result.get("structuredContent"):
            case {"threadkeep/claim": str(claim)} if claim in self._waiting:
                return _returned(self._waiting.pop(claim))
            case _:
                return _returned(read_result(result))

    def _set_aside(self, message: bytes, result: CallResult) -> bytes:
        # A server cannot guess a claim, and could claim only its own.
        claim = uuid.uuid4().hex
        if len(self._waiting) >= MOST_UNCLAIMED:  # no call waits for the oldest
            del self._waiting[next(iter(self._waiting))]
        self._waiting[claim] = CallResult(
            _value(result.value), _value(result.chart), result.error, result.files
        )
        whole = msgspec.json.decode(message)
        whole["result"]["structuredContent"] = {"threadkeep/claim": claim}
        return msgspec.json.encode(whole)


def _value(given: Any) -> Any:
    """Large JSON stays raw; small JSON becomes an ordinary value."""
    if not isinstance(given, bytes):
        return given
    return msgspec.Raw(given) if len(given) > LARGE_BYTES else msgspec.json.decode(given)


def _returned(result: CallResult) -> Returned:
    files = tuple(ReturnedFile(file.name, file.media_type, file.content) for file in result.files)
    if result.error is not None:
        return Returned("error", error=result.error, files=files)
    return Returned("ok", result.value, chart_data=result.chart, files=files)
