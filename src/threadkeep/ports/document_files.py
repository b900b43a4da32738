"""Where the files of documents lie, each in the workspace of its agent."""

from collections.abc import Collection, Sequence
from typing import BinaryIO, Protocol

from threadkeep.domain.ids import AgentId, DocumentId


class DocumentFiles(Protocol):
    """The files of documents, as they were sent. What cannot be written is a StorageUnavailable."""

    async def keep(
        self, agent_id: AgentId, document_id: DocumentId, file: BinaryIO, *, most: int | None = None
    ) -> tuple[int, str]:
        """Keeps a copy of a file, durably; its size and hash. Stops beyond `most` bytes."""
        ...

    async def open(self, agent_id: AgentId, document_id: DocumentId) -> BinaryIO | None:
        """An open file, which the caller closes; None if it no longer exists."""
        ...

    async def remove(self, agent_id: AgentId, document_id: DocumentId) -> None:
        """Removes a file, if it is there."""
        ...

    async def agent_ids(self) -> Sequence[AgentId]:
        """The agents that have files."""
        ...

    async def keep_only(self, agent_id: AgentId, known: Collection[DocumentId], *, idle_s: float) -> None:
        """Removes an agent's other files, save those written within `idle_s` seconds."""
        ...
