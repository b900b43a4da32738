"""A link: the way to a server, over which a session is held."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


class LinkBroken(Exception):
    """The server cannot be reached, or has gone; the message says why, to a person."""


class Link(ABC):
    """The way to a server: the streams of a process, or HTTP."""

    @abstractmethod
    def open(self, ended: asyncio.Event) -> AbstractAsyncContextManager[Streams]:
        """Holds the link while the block runs; `ended` is set when the other side ends it.

        Raises LinkBroken where there is nothing at the other end, or there no longer is.
        """
