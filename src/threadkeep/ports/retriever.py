"""Search of an agent's documents, and its index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import AgentId, DocumentId
from threadkeep.domain.retrieval import RetrievalHit


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching chunk; `score` ranges from 0 to 1."""

    chunk_id: str
    document_id: DocumentId
    file_name: str
    page: int | None
    heading: str | None
    text: str
    score: float


def to_retrieval_hit(hit: Hit) -> RetrievalHit:
    """A hit as turn events describe it."""
    return RetrievalHit(hit.file_name, hit.text, hit.score, hit.chunk_id, hit.document_id, hit.page)


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """The matches, best first; `notice` says what the search had to do without."""

    hits: tuple[Hit, ...] = ()
    notice: str | None = None


class Retriever(Protocol):
    """Searches the documents of agents."""

    async def search(self, agent_id: AgentId, query: str, *, top_k: int, threshold: float) -> FoundPassages:
        """The best chunks of an agent's ready documents with at least this score."""
        ...


@dataclass(frozen=True, slots=True)
class Collection:
    """Statistics of all of an agent's chunks."""

    number: int
    chunk_count: int
    term_count: int
    removals: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate chunks for a query: how common its terms are, and which chunks have the rare ones."""

    collection: Collection
    frequencies: Mapping[str, int]
    chunk_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """How often a chunk has each of the requested terms, and how many terms it has in total."""

    chunk_id: int
    counts: Mapping[str, int]
    term_count: int


LARGE_COLLECTION = 20_000
"""Above this number of chunks, a query isn't compared with all vectors."""


class VectorIndex(Protocol):
    """A vector index in the database, for large collections; not every database has one."""

    async def agents_with_more_chunks(self, more_than: int) -> Sequence[AgentId]:
        """The agents that have more chunks than this."""
        ...

    async def follow(self, agent_id: AgentId, embedder: str) -> bool:
        """Indexes some more of an agent's vectors; returns whether there may be more."""
        ...

    async def nearest(
        self, collection: Collection, embedder: str, query: bytes, *, limit: int, others: Sequence[int]
    ) -> Mapping[int, float] | None:
        """The cosine of the nearest chunks, and of these others; None if not all of them are here yet."""
        ...


class ChunkIndex(Protocol):
    """The index of all chunks. Only returns chunks of ready documents."""

    async def candidates(self, agent_id: AgentId, terms: Sequence[str], *, limit: int) -> Candidates | None:
        """Chunks of an agent that have some of the terms, most of the rare ones first; None without any."""
        ...

    async def term_counts(
        self, collection: Collection, chunk_ids: Sequence[int], terms: Sequence[str]
    ) -> Sequence[ChunkTerms]:
        """The terms of these chunks."""
        ...

    async def chunks(self, chunk_ids: Sequence[int]) -> Sequence[tuple[int, Hit]]:
        """The chunks with these ids, in any order, not yet scored."""
        ...

    async def vectors(
        self, agent_id: AgentId, embedder: str, *, after: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        """The vectors of an agent's chunks in order of arrival: number, chunk, 16-bit floats."""
        ...

    async def newer_vectors(
        self, agent_id: AgentId, embedder: str, *, after: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        """The same; its cost depends on the number of newer vectors of all agents, not on the total."""
        ...

    async def newest_vector(self) -> int:
        """The number of the newest vector of any agent."""
        ...

    async def waiting(self, embedder: str) -> Sequence[AgentId]:
        """The agents with chunks that have no vector of this embedder yet."""
        ...

    async def without_vector(
        self, agent_id: AgentId, embedder: str, *, limit: int
    ) -> Sequence[tuple[int, str]]:
        """Chunks, with their text, that have no vector of this embedder yet and weren't refused often."""
        ...

    async def refuse(self, embedder: str, chunk_id: int) -> None:
        """Notes that the embedder rejected a chunk but accepted others."""
        ...

    async def add_vectors(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Stores vectors of chunks; skips deleted chunks."""
        ...
