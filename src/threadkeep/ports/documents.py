"""Documents: where they are kept, and how their text is got out of them."""

from collections.abc import AsyncGenerator, Callable, Sequence
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
    """The file cannot be read; the message tells people why, and trying again would not help."""

    code = "UNSUPPORTED_DOCUMENT"


class PasswordRequired(ExtractionFailed):
    """The file is encrypted, and nobody has given us its password."""


class ExtractionBroke(ThreadkeepError):
    """Whoever read the file died over it; the file may be harmless."""


class Extractor(Protocol):
    """Gets the text out of files, apart from everything else that runs here."""

    def extract(self, file: BinaryIO, media_type: str) -> AsyncGenerator[ExtractedPart]:
        """Chunks of an open file; raises ExtractionFailed or ExtractionBroke. Closing it ends the work."""
        ...


CheckRoom = Callable[[int, int], None]
"""Refuses that a user's agents have so many documents of so many bytes."""


class DocumentStore(Protocol):
    """Documents and their chunks."""

    async def add(self, document: Document, check_room: CheckRoom | None = None) -> Document:
        """Keeps a new document; gives the one that is there where the agent has the same file already.

        `check_room` gets what the agent's owner would have with it, while nobody else adds to that.
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

    async def has_ready(self, agent_id: AgentId) -> bool:
        """Whether an agent has anything to search."""
        ...

    async def update(
        self, agent_id: AgentId, document_id: DocumentId, change: Callable[[Document], Document]
    ) -> Document | None:
        """Reads, changes and writes status, progress, count and error while nobody else does."""
        ...

    async def add_part(self, document: Document, part: ExtractedPart, now: int) -> bool:
        """Adds some chunks to a document and to the index of its agent; False when it is no longer wanted."""
        ...

    async def remove_chunks(self, document: Document, *, limit: int) -> int:
        """Takes some chunks of a document out of every index; gives how many, 0 when none is left."""
        ...

    async def delete(self, document: Document) -> None:
        """Removes a document."""
        ...

    async def stalled(self, before: int) -> Sequence[Document]:
        """Documents that have been worked on without a sign of life since a time."""
        ...

    async def of_deleted_agents(self, *, limit: int) -> Sequence[Document]:
        """Some documents whose agent is deleted: nobody can search or remove them any more."""
        ...

    async def ids_of(self, agent_id: AgentId) -> set[DocumentId]:
        """The ids of all documents of an agent, for finding files that belong to none."""
        ...
