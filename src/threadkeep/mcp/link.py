"""A link: the way to a server, over which a session is held."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

Streams = tuple[Any, Any]
"""What a session reads from and writes to; the SDK has no public name for their types."""


class LinkBroken(Exception):
    """The server cannot be reached, or has gone; the message says why, to a person."""


class Link(ABC):
    """The way to a server: the streams of a process, or HTTP."""

    @abstractmethod
    def open(self, on_end: Callable[[], None]) -> AbstractAsyncContextManager[Streams]:
        """Holds the link while the block runs; calls `on_end` when the other side ends it.

        Raises LinkBroken where there is nothing at the other end, or there no longer is.
        """


def causes(exc: BaseException) -> Iterator[BaseException]:
    """What really went wrong, out of the groups in which task groups wrap it."""
    if isinstance(exc, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", exc).exceptions:
            yield from causes(inner)
    else:
        yield exc
