"""Texts as vectors, close if their meanings are close."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.errors import ThreadkeepError


class EmbedderError(ThreadkeepError):
    """The embedder is unreachable or rejected the request; the message contains no secrets."""


class Embedder(Protocol):
    """An embedding model. Vectors have length 1 and consist of 16-bit floats."""

    @property
    def name(self) -> str:
        """The model's identity: vectors of two models can't be compared."""
        ...

    def understands(self, text: str) -> bool:
        """Whether its vector of this text is meaningful."""
        ...

    async def embed_query(self, query: str) -> bytes:
        """The vector of a short text that a user is waiting for."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of many texts, in the background."""
        ...

    async def close(self) -> None:
        """Ends the processes it has started."""
        ...
