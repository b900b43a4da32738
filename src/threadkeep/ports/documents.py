"""Documents: their storage, and the extraction of their text."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from threadkeep.domain.document import Chunk, Document
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.ids import AgentId, DocumentId


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk with the terms it is found by, as often as they occur."""

    chunk: Chunk
    terms: Sequence[str]


@dataclass(frozen=True, slots=True)
class ExtractedPart:
    """Some chunks of a document, in order, and how much of it has been read."""

    chunks: Sequence[IndexedChunk]
    progress: float


class ExtractionFailed(ThreadkeepError):
    """The file can't be read; the message gives the reason, and retrying won't help."""

    code = "UNSUPPORTED_DOCUMENT"


class PasswordRequired(ExtractionFailed):
    """The file is encrypted with an unknown password."""


class ExtractionBroke(ThreadkeepError):
    """The process that read the file died; the file may be harmless."""


class Extractor(Protocol):
    """Extracts text from files, isolated from everything else."""

    def extract(self, file: BinaryIO, media_type: str) -> AsyncGenerator[ExtractedPart]:
        """Chunks of an open file; raises ExtractionFailed or ExtractionBroke. Closing it cancels the work."""
        ...


CheckRoom = Callable[[int, int], None]
"""Rejects documents if a user's agents have this many documents or bytes."""


class DocumentStore(Protocol):
    """Documents and their chunks."""

    async def add(self, document: Document) -> Document:
        """Stores a new document; returns the existing one if the agent already has the same file."""
        ...

    async def add_all(self, documents: Sequence[Document], check_room: CheckRoom) -> Sequence[Document]:
        """Does the same with documents of one agent, all or none.

        `check_room` receives the owner's totals including them; nobody else adds documents meanwhile.
        """
        ...

    async def get(self, agent_id: AgentId, document_id: DocumentId) -> Document | None:
        """One document of an agent."""
        ...

    async def page(
        self, agent_id: AgentId, *, before: str | None, offset: int, limit: int
    ) -> Sequence[Document]:
        """An agent's documents, newest first."""
        ...

    async def passages(self, document: Document, *, first: int, limit: int) -> Sequence[Chunk]:
        """A document's chunks from a position on, in order."""
        ...

    async def has_ready(self, agent_id: AgentId) -> bool:
        """Whether an agent has anything to search."""
        ...

    async def update(
        self, agent_id: AgentId, document_id: DocumentId, change: Callable[[Document], Document]
    ) -> Document | None:
        """Reads, changes and writes status, progress, count and error exclusively."""
        ...

    async def add_part(self, document: Document, part: ExtractedPart, now: int) -> bool:
        """Adds the next chunks to a document and to its agent's index; False if it is no longer wanted.

        Raises StorageConflict if they are not the next: another node reads the document, too.
        """
        ...

    async def remove_chunks(self, document: Document, *, limit: int) -> int:
        """Removes some chunks of a document from every index; returns how many, 0 if none are left."""
        ...

    async def delete(self, document: Document) -> None:
        """Deletes a document."""
        ...

    async def stalled(self, before: int) -> Sequence[Document]:
        """Documents in progress that have shown no activity since a time."""
        ...

    async def of_deleted_agents(self, *, limit: int) -> Sequence[Document]:
        """Documents whose agent is deleted: nobody can search or delete them any more."""
        ...

    async def note_cleared(self, *, deleted_before: int, limit: int) -> bool:
        """Notes for some deleted agents that none of their documents is left; False once all are noted."""
        ...

    async def ids_of(self, agent_id: AgentId) -> set[DocumentId]:
        """The ids of all documents of an agent, to find orphaned files."""
        ...


class DocumentFiles(Protocol):
    """The files of documents, as uploaded. Raises StorageUnavailable if a file can't be written."""

    async def keep(
        self, agent_id: AgentId, document_id: DocumentId, file: BinaryIO, *, most: int | None = None
    ) -> tuple[int, str]:
        """Stores a copy of a file durably; returns its size and hash. Stops beyond `most` bytes."""
        ...

    async def open(self, agent_id: AgentId, document_id: DocumentId) -> BinaryIO | None:
        """An open file, which the caller closes; None if it no longer exists."""
        ...

    async def remove(self, agent_id: AgentId, document_id: DocumentId) -> None:
        """Deletes a file, if it exists."""
        ...

    async def agent_ids(self) -> Sequence[AgentId]:
        """The agents that have files."""
        ...

    async def keep_only(self, agent_id: AgentId, known: Collection[DocumentId], *, idle_s: float) -> None:
        """Deletes an agent's other files, except those written within `idle_s` seconds."""
        ...
