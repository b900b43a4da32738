"""Storage of documents' files, each in its agent's workspace."""

from collections.abc import Collection, Sequence
from typing import BinaryIO, Protocol

from threadkeep.domain.ids import AgentId, DocumentId


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
