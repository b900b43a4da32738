"""A document that an agent can search, and the chunks it is split into."""

from dataclasses import dataclass, replace

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import IllegalTransition
from threadkeep.domain.ids import AgentId, DocumentId
from threadkeep.domain.text import check_line


class DocumentStatus(Choice):
    """A document is worked on, then ready or failed; a failed one can be retried."""

    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


_NEXT = {
    DocumentStatus.PROCESSING: {DocumentStatus.READY, DocumentStatus.FAILED},
    DocumentStatus.READY: set[DocumentStatus](),
    DocumentStatus.FAILED: {DocumentStatus.PROCESSING},
}


@dataclass(frozen=True, slots=True)
class Document:
    """One uploaded file of an agent; `sha256` recognises the same file sent twice."""

    id: DocumentId
    agent_id: AgentId
    file_name: str
    media_type: str
    size: int
    sha256: str
    status: DocumentStatus
    created_at: int
    updated_at: int
    progress: float = 0.0
    chunk_count: int = 0
    error: str | None = None

    def __post_init__(self) -> None:
        check_line(self.file_name, "fileName", most=255)

    def become(self, status: DocumentStatus, now: int, *, error: str | None = None) -> "Document":
        """Takes one step: ready, failed with a reason, or retried."""
        if status not in _NEXT[self.status]:
            raise IllegalTransition(f"A document cannot go from {self.status} to {status}.", param="status")
        progress = 1.0 if status is DocumentStatus.READY else 0.0
        return replace(self, status=status, progress=progress, error=error, updated_at=now)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document, small enough to show and to cite."""

    document_id: DocumentId
    position: int
    text: str
    page: int | None = None
    heading: str | None = None
