"""A document that an agent can search, and the chunks it is split into."""

from dataclasses import dataclass, replace
from pathlib import PurePath

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import IllegalTransition, UnsupportedDocument
from threadkeep.domain.ids import AgentId, DocumentId
from threadkeep.domain.text import check_line


class DocumentStatus(Choice):
    """A document is processed, then ready or failed; a failed one can be retried."""

    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


_NEXT = {
    DocumentStatus.PROCESSING: {DocumentStatus.READY, DocumentStatus.FAILED},
    DocumentStatus.READY: set[DocumentStatus](),
    DocumentStatus.FAILED: {DocumentStatus.PROCESSING},
}


PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML = "text/html"
MARKDOWN = "text/markdown"
CSV = "text/csv"
TEXT = "text/plain"

MOST_NAME_CHARACTERS = 255
HEAD_BYTES = 4096
"""How much of a file is needed to detect its type."""

_TEXTS = {
    ".html": HTML, ".htm": HTML, ".xhtml": HTML, ".md": MARKDOWN, ".markdown": MARKDOWN, ".csv": CSV,
    ".tsv": CSV, ".txt": TEXT, ".text": TEXT, ".log": TEXT, "": TEXT,
}  # fmt: skip
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


def media_type_of(file_name: str, head: bytes) -> str:
    """A file's type by its first bytes; its name only distinguishes kinds of text. Refuses other types."""
    if not head:
        raise UnsupportedDocument(f"{file_name} is empty.", param="fileName")
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return DOCX  # opening it will show whether it is one
    ending = PurePath(file_name).suffix.lower()
    is_text = head.startswith(_BYTE_ORDER_MARKS) or b"\x00" not in head
    if not is_text or ending not in _TEXTS:
        raise UnsupportedDocument(
            f"{file_name} isn't a supported file type. Upload a PDF, DOCX, HTML, Markdown, text or CSV file.",
            param="fileName",
        )
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return HTML if begin.startswith((b"<!doctype html", b"<html")) else _TEXTS[ending]


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
        check_line(self.file_name, "fileName", most=MOST_NAME_CHARACTERS)

    def become(self, status: DocumentStatus, now: int, *, error: str | None = None) -> "Document":
        """Takes one step: ready, failed with a reason, or retried."""
        if status not in _NEXT[self.status]:
            raise IllegalTransition(
                f"This document is {self.status}. Only failed documents can be processed again.",
                param="status",
            )
        progress = 1.0 if status is DocumentStatus.READY else 0.0
        return replace(self, status=status, progress=progress, error=error, updated_at=now)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document, small enough to show and to cite."""

    position: int
    text: str
    page: int | None = None
    heading: str | None = None
