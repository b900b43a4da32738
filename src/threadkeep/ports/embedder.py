"""Texts as vectors, close where they mean the same."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.errors import ThreadkeepError


class EmbedderError(ThreadkeepError):
    """The embedder is away or refused; the message is for people and holds no secret."""


class Embedder(Protocol):
    """A model that reads texts. A vector is of length 1 and comes as 16-bit floats."""

    @property
    def name(self) -> str:
        """Which model it is: vectors of two models cannot be compared."""
        ...

    def understands(self, text: str) -> bool:
        """Whether its vector of this text says anything."""
        ...

    async def embed_query(self, query: str) -> bytes:
        """The vector of one short text that somebody waits for."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of many texts, for which nobody waits."""
        ...

    async def close(self) -> None:
        """Ends what it has started."""
        ...
