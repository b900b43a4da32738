"""Search of an agent's documents, and its index."""

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
