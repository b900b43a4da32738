"""Streams events at their reader's pace: the producer never waits for a reader."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum, auto
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from threadkeep.aside import LogWork
from threadkeep.domain.errors import Forbidden, Unauthenticated
from threadkeep.sse import HEARTBEAT, MEDIA_TYPE

log = logging.getLogger("threadkeep.http")

HEARTBEAT_EVERY_S = 15.0
SLOWEST_READ_S = 30.0

# Whether we broke off this response on purpose. There is no other way to drop a reader who stopped reading: a
# regular end would wait behind unread data. And it would look like a complete stream, which it isn't if the
# turn's end is unknown.
broken_off: ContextVar[bool] = ContextVar("broken_off", default=False)


T = TypeVar("T")
ReadT_co = TypeVar("ReadT_co", covariant=True)
ReadT_contra = TypeVar("ReadT_contra", contravariant=True)


class Source(Protocol[ReadT_co]):
    """The source of a stream, within `async with`; yields an empty sequence when woken."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Sequence[ReadT_co]: ...

    @property
    def has_ended(self) -> bool:
        """Whether what was read is all there is."""
        ...

    @property
    def is_paused(self) -> bool:
        """Whether nothing follows until a user decides."""
        ...

    def wake(self) -> None:
        """Wakes the reader, if it waits."""
        ...


class StreamEnd(Enum):
    """How a stream ends. One that is cut says nothing at its end: its connection breaks."""

    OVER = auto()
    PAUSED = auto()
    """A turn waits for its user, who answers with another request."""


class Encoding(Protocol[ReadT_contra]):
    """Turns what is read into frames."""

    def encode_chunk(self, chunk: ReadT_contra, /) -> bytes:
        """The frames of what was read."""
        ...

    def end(self, how: StreamEnd, /) -> bytes:
        """What is said at the end."""
        ...


async def _nothing(*_: object) -> None:
    pass


class LastingResponse(Response):
    """A response that stays open: it ends soon after its user may no longer read it."""

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(headers=headers)
        self._check: Callable[[], Awaitable[None]] = _nothing
        self.check_every_s = HEARTBEAT_EVERY_S

    def end_when_refused(self, check: Callable[[], Awaitable[None]], every_s: float) -> None:
        """Ends it soon after `check` refuses its user: tokens expire, and users are deleted."""
        self._check, self.check_every_s = check, every_s

    async def is_allowed(self) -> bool:
        """Whether its user may still read it."""
        try:
            await self._check()
        except (Unauthenticated, Forbidden):
            return False
        return True


class EventStream(LastingResponse):
    """Sends what a source yields, until it ends or the reader disconnects.

    If it `ends_when_paused`, also until a turn waits for its user; by default it stays open meanwhile.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self,
        source: Source[T],
        encoding: Encoding[T],
        headers: Mapping[str, str],
        *,
        ends_when_paused: bool = False,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **headers})
        self._ends_when_paused = ends_when_paused
        del self.headers["content-length"]
        self._source: Source[Any] = source
        self._encoding: Encoding[Any] = encoding
        self._work = LogWork()
        self._last_frames: bytes | None = None
        self._note_end: Callable[[bytes | None], Awaitable[None]] = _nothing

    def when_over(self, note: Callable[[bytes | None], Awaitable[None]]) -> None:
        """Notes what it says at the end; None if it doesn't get there."""
        self._note_end = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._send_while_read(receive, send)
        finally:
            await self._note_end(self._last_frames)

    async def _send_while_read(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with self._source:
            reader = _Reader(self._source, send, self.check_every_s)
            listening = asyncio.create_task(reader.listen(receive))
            try:
                async with reader.present:
                    await self._send_all(reader)
            except TimeoutError:
                if not reader.present.expired():
                    raise
                if reader.is_stuck:
                    broken_off.set(True)
                    log.info("dropping a stream whose client stopped reading")
            finally:
                listening.cancel()
                reader.close()

    async def _send_all(self, reader: "_Reader") -> None:
        async for chunks in self._source:
            if reader.needs_check:
                reader.needs_check = False
                if not await self.is_allowed():
                    broken_off.set(True)
                    log.info("closing a stream whose user is no longer signed in")
                    return
            if chunks:
                at_end = self._source.has_ended
                await reader.send(await self._work.take(self._encode, chunks, at_end=at_end))
            elif reader.needs_sign_of_life:
                await reader.send(HEARTBEAT)
            if self._ends_when_paused and self._source.is_paused:
                await reader.send(await self._work.end(self._encoding.end, StreamEnd.PAUSED), more=False)
                return
        if self._source.has_ended:
            self._last_frames = await self._work.end(self._encoding.end, StreamEnd.OVER)
            await reader.send(self._last_frames, more=False)
        else:
            broken_off.set(True)
            log.info("closing a stream: this node can't tell how the turn ends")

    def _encode(self, chunks: Sequence[Any]) -> bytes:
        return b"".join(map(self._encoding.encode_chunk, chunks))


class _Reader:
    """The other end of a stream.

    Drops a client that disconnects or doesn't take a piece in time; it can reconnect, and the turn isn't
    affected. One periodic timer checks both: one for each piece would cost as much as sending.
    """

    def __init__(self, source: Source[Any], send: Send, check_every_s: float) -> None:
        self.present = asyncio.timeout(None)
        self.needs_sign_of_life = False
        self.needs_check = False
        self.is_stuck = False
        self._source = source
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._sending_since: float | None = None
        self._look_every_s = min(check_every_s, HEARTBEAT_EVERY_S)
        self._looks_a_sign = max(1, int(HEARTBEAT_EVERY_S / self._look_every_s))
        self._looks = 0
        self._timer = self._loop.call_later(self._look_every_s, self._look)

    async def send(self, body: bytes, *, more: bool = True) -> None:
        """Sends a piece."""
        self.needs_sign_of_life = False
        self._sending_since = self._loop.time()
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        self._sending_since = None

    async def listen(self, receive: Receive) -> None:
        """Notices that the client has disconnected."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def close(self) -> None:
        """Stops the timer."""
        self._timer.cancel()

    def _look(self) -> None:
        pause = self._look_every_s
        self.needs_check = True
        if self._sending_since is None:
            self._looks += 1
            self.needs_sign_of_life |= self._looks % self._looks_a_sign == 0
            self._source.wake()
        else:
            pause = min(pause, self._sending_since + SLOWEST_READ_S - self._loop.time())
        if pause > 0:
            self._timer = self._loop.call_later(pause, self._look)
        else:
            self.is_stuck = True
            self._leave()

    def _leave(self) -> None:
        if not self.present.expired():
            self.present.reschedule(self._loop.time())
