"""One web socket: how much of an unfinished message we keep, before and after sign-in."""

import sys
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.http11 import Request

from threadkeep.wire.inside import CONNECTION, LARGE_MESSAGES, SMALL_MESSAGE_BYTES

ANY_SIZE = sys.maxsize
"""Disables uvicorn's own limit: ours changes when the client signs in."""

_TOO_BIG = 1009
_REFUSED = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
"""The answer where websockets has none: before version 17, to headers that are too long and the like."""


class SocketConnection(WebSocketsSansIOProtocol):
    """Accepts only small messages until the application allows larger ones.

    Closes connections that aren't web socket requests, which uvicorn leaves open forever.
    """

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        self._most_bytes = SMALL_MESSAGE_BYTES
        self._is_awaited = False
        self._unfinished_bytes = 0
        """The bytes since the last complete message. A part may begin with the end of another message."""

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        self._unfinished_bytes = 0
        if not self.handshake_complete:  # not refused
            self.scope["extensions"][LARGE_MESSAGES] = self._allow  # pyright: ignore
            self.scope["extensions"][CONNECTION] = {}  # pyright: ignore

    def data_received(self, data: bytes) -> None:
        self._unfinished_bytes += len(data)
        super().data_received(data)
        if not self.handshake_initiated:  # the whole request arrives at once: uvicorn has refused it
            self.transport.write(b"".join(self.conn.data_to_send()) or _REFUSED)
            self.transport.close()
        elif self._is_too_large:
            self._refuse_or_wait()

    async def receive(self) -> Any:
        """The next message. The application calls this after handling the previous ones."""
        self._is_awaited = True
        if self.read_paused and self.queue.empty():  # we waited for that
            self.read_paused = False
            self.transport.resume_reading()
            if self._is_too_large:
                self._refuse_or_wait()
        message = await super().receive()
        self._is_awaited = False
        return message

    @property
    def _is_too_large(self) -> bool:
        return self._unfinished_bytes > self._most_bytes + SMALL_MESSAGE_BYTES and not self.close_sent

    def _refuse_or_wait(self) -> None:
        """Refuses a message that is too large, unless an earlier one may still sign the client in."""
        if self._is_awaited:
            self.conn.fail(_TOO_BIG, "The message is too large.")
            self.handle_parser_exception()
        elif not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def send_receive_event_to_app(self) -> None:
        self._unfinished_bytes = 0
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        self._forget_whole_frames()
        super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        self._forget_whole_frames()
        super().handle_pong(event)

    def _forget_whole_frames(self) -> None:
        """Pings aren't part of a message; the parts before them are."""
        self._unfinished_bytes = sum(map(len, self.frames))

    def _allow(self, most_bytes: int) -> None:
        self._most_bytes = max(self._most_bytes, most_bytes)
