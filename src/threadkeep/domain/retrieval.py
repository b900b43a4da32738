"""Hits in documents and memories, and how a reply cites them."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST_SNIPPET_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class RetrievalHit:
    """A found piece of a document, or a memory."""

    source: str
    text: str
    score: float
    chunk_id: str | None = None
    document_id: str | None = None
    page: int | None = None
    url: str | None = None
    file_name: str | None = None
    """Where another engine found it; our own hits name their file in `source`."""


class PassageNumbers:
    """The numbers by which a model cites a turn's hits; a chunk that is found again keeps its first number.

    Only our own searches name chunks: replies of other engines, and those from before 0.1.0, keep the numbers
    that their texts cite.
    """

    def __init__(self, hits: Iterable[RetrievalHit] = ()) -> None:
        self._first: dict[str, int] = {}
        self._count = 0
        self.add(hits)

    def add(self, hits: Iterable[RetrievalHit]) -> list[int]:
        """The numbers of further hits; a repeated one leaves a number unused."""
        numbers: list[int] = []
        for hit in hits:
            self._count += 1
            first = self._first.setdefault(hit.chunk_id, self._count) if hit.chunk_id else self._count
            numbers.append(first)
        return numbers


@dataclass(frozen=True, slots=True)
class Citation:
    """One source that the reply refers to as [index]."""

    index: int
    title: str
    snippet: str
    score: float
    url: str | None = None
    file_name: str | None = None
    document_id: str | None = None
    page: int | None = None

    @staticmethod
    def of(hit: RetrievalHit, index: int) -> "Citation":
        """A hit under the number by which the model cites it."""
        return Citation(
            index=index,
            title=hit.source,
            snippet=hit.text[:MOST_SNIPPET_CHARACTERS],
            score=hit.score,
            url=hit.url,
            file_name=hit.file_name or (hit.source if hit.document_id else None),
            document_id=hit.document_id,
            page=hit.page,
        )
