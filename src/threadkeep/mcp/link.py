"""A link: the transport to a server, which carries a session."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

Streams = tuple[Any, Any]
"""What a session reads from and writes to; the SDK has no public name for their types."""


class LinkBroken(Exception):
    """The server can't be reached, or is lost; the message says why, for people."""


class Link(ABC):
    """The transport to a server: the streams of a process, or HTTP."""

    @abstractmethod
    def open(self, on_end: Callable[[], None]) -> AbstractAsyncContextManager[Streams]:
        """Holds the link while the block runs; calls `on_end` when the other side ends it.

        Raises LinkBroken if the other end doesn't exist, or no longer does.
        """


def causes(exc: BaseException) -> Iterator[BaseException]:
    """The actual causes, unwrapped from the exception groups of task groups."""
    if isinstance(exc, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", exc).exceptions:
            yield from causes(inner)
    else:
        yield exc
