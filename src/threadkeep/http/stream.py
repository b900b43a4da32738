"""Streams of a turn's events: from the log, at the reader's pace, never holding up the turn."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from threadkeep.dialects.sse import HEARTBEAT
from threadkeep.ports.turn_log import LogChunk
from threadkeep.services.live_log import LiveLog

HEARTBEAT_EVERY_S = 15.0
SLOWEST_READ_S = 30.0


class EventStream(Response):
    """Sends chunks of a log as they are stored, until the turn has ended or the reader is gone."""

    media_type = "text/event-stream"

    def __init__(
        self,
        watch: AbstractAsyncContextManager[LiveLog],
        after_seq: int,
        whole: Callable[[Sequence[LogChunk]], Awaitable[Sequence[LogChunk]]],
        encode: Callable[[LogChunk], bytes],
        end: Callable[[], bytes],
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **headers})
        del self.headers["content-length"]
        self._watch = watch
        self._shown = after_seq
        self._whole = whole
        self._encode = encode
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        reader = _Reader(send)
        listening = asyncio.create_task(reader.listen(receive))
        try:
            async with self._watch as live:
                await self._send_all(live, reader)
        except ReaderGone:
            return
        finally:
            listening.cancel()

    async def _send_all(self, live: LiveLog, reader: "_Reader") -> None:
        while True:
            if chunks := live.since(self._shown):
                await reader.send(b"".join(map(self._encode, await self._whole(chunks))))
                self._shown = chunks[-1].last_seq
            elif live.ended:
                await reader.send(self._end(), more=False)
                return
            elif not await reader.wait(live):
                await reader.send(HEARTBEAT)


class ReaderGone(Exception):
    """The client has closed the connection, or reads too slowly. The turn does not care."""


class _Reader:
    """The other end of a stream."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._gone = False
        self._scope: asyncio.Timeout | None = None

    async def listen(self, receive: Receive) -> None:
        """Notices that the client has gone."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def send(self, body: bytes, *, more: bool = True) -> None:
        """Sends a piece; a client that does not take it in time is dropped and can come back."""
        if self._gone:
            raise ReaderGone
        try:
            async with asyncio.timeout(SLOWEST_READ_S):
                await self._send({"type": "http.response.body", "body": body, "more_body": more})
        except TimeoutError as exc:
            raise ReaderGone from exc

    async def wait(self, live: LiveLog) -> bool:
        """Waits until there is more to send, or until it is time for a sign of life: then False."""
        if self._gone:
            raise ReaderGone
        try:
            async with asyncio.timeout(HEARTBEAT_EVERY_S) as self._scope:
                await live.changed()
        except TimeoutError:
            if self._gone:
                raise ReaderGone from None
            return False
        finally:
            self._scope = None
        return True
