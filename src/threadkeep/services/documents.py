"""Documents of agents: stored, processed, made searchable, deleted."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import BinaryIO

from threadkeep.clock import Clock
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.document import (
    HEAD_BYTES,
    MOST_NAME_CHARACTERS,
    Chunk,
    Document,
    DocumentStatus,
    media_type_of,
)
from threadkeep.domain.errors import DocumentNotFound, LimitNotAllowed
from threadkeep.domain.ids import DocumentId, is_uuid, new_uuid
from threadkeep.domain.text import check_line
from threadkeep.domain.user import User
from threadkeep.jobs.documents import READ_JOB, read_job, remove_chunks
from threadkeep.jobs.queue import Jobs
from threadkeep.ports.retriever import FoundPassages, Retriever
from threadkeep.services.agents import Agents
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.store import Store


class Documents:
    """The use cases of documents, for the owner of their agent and for admins."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        files: FolderDocumentFiles,
        retriever: Retriever,
        jobs: Jobs,
        clock: Clock,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._agents = agents
        self._files = files
        self._retriever = retriever
        self._jobs = jobs
        self._clock = clock
        self._caps = caps

    async def add(self, agent: Agent, *sent: tuple[str, BinaryIO]) -> list[Document]:
        """Stores files and queues them for processing, or stores none if one is rejected; an already added
        file returns its document.
        """
        fresh = [await self._described(agent, file_name, file) for file_name, file in sent]
        kept = [await self._keep(document, file) for document, (_, file) in zip(fresh, sent, strict=True)]
        try:
            added = await self._store.documents.add_all(kept, self._caps.check_room)
        except LimitNotAllowed:
            await self._remove(fresh)
            raise
        await self._remove([it for it in fresh if it.id not in {document.id for document in added}])
        new = {it.id for it in fresh}
        for document in added:
            if document.id in new:
                await self._jobs.add(READ_JOB, read_job(document, agent.owner_id))
        return list(added)

    async def _remove(self, documents: Iterable[Document]) -> None:
        """Removes files that no document has. Those that a crash leaves are removed every hour."""
        for document in documents:
            await self._files.remove(document.agent_id, document.id)

    async def _described(self, agent: Agent, file_name: str, file: BinaryIO) -> Document:
        """A file as a document that isn't stored yet; rejects unsupported files and invalid names."""
        check_line(file_name, "fileName", most=MOST_NAME_CHARACTERS)
        media_type = media_type_of(file_name, await asyncio.to_thread(_head, file))
        id_, now = DocumentId(new_uuid()), self._clock()
        return Document(id_, agent.id, file_name, media_type, 0, "", DocumentStatus.PROCESSING, now, now)

    async def _keep(self, document: Document, file: BinaryIO) -> Document:
        size, sha256 = await self._files.keep(document.agent_id, document.id, file)
        return replace(document, size=size, sha256=sha256)

    async def get(self, user: User, agent_id: str, document_id: str) -> Document:
        """One document."""
        agent, found = await self._agents.get_open(user, agent_id), None
        if is_uuid(document_id):
            found = await self._store.documents.get(agent.id, DocumentId(document_id.lower()))
        if found is None:
            raise DocumentNotFound
        return found

    async def page(
        self, user: User, agent_id: str, *, before: str | None, offset: int, limit: int
    ) -> Sequence[Document]:
        """An agent's documents, newest first."""
        agent = await self._agents.get_open(user, agent_id)
        return await self._store.documents.page(agent.id, before=before, offset=offset, limit=limit)

    async def passages(
        self, user: User, agent_id: str, document_id: str, *, first: int, limit: int
    ) -> tuple[Document, Sequence[Chunk]]:
        """A document with some of its passages, from a position on."""
        document = await self.get(user, agent_id, document_id)
        return document, await self._store.documents.passages(document, first=first, limit=limit)

    async def retry(self, user: User, agent_id: str, document_id: str) -> Document:
        """Processes a failed document again."""
        agent = await self._agents.get_open(user, agent_id)
        document = await self.get(user, agent_id, document_id)
        retried = await self._store.documents.update(
            document.agent_id,
            document.id,
            lambda current: current.become(DocumentStatus.PROCESSING, self._clock()),
        )
        if retried is None:
            raise DocumentNotFound
        await self._jobs.add(READ_JOB, read_job(retried, agent.owner_id))
        return retried

    async def delete(self, user: User, agent_id: str, document_id: str) -> None:
        """Removes a document from every index, then deletes it."""
        document = await self.get(user, agent_id, document_id)
        # From here on it can't be found or extended; its chunks are deleted a few at a time, so that turns
        # aren't delayed.
        await self._store.documents.update(
            document.agent_id,
            document.id,
            lambda current: replace(
                current, status=DocumentStatus.FAILED, error="It was being deleted.", updated_at=self._clock()
            ),
        )
        await remove_chunks(self._store.documents, document)
        await self._store.documents.delete(document)
        await self._files.remove(document.agent_id, document.id)

    async def search(
        self, user: User, agent_id: str, query: str, *, top_k: int | None, threshold: float | None
    ) -> FoundPassages:
        """Searches an agent's documents, with the agent's settings unless others are given."""
        agent = await self._agents.get_open(user, agent_id)
        return await self._retriever.search(
            agent.id,
            query,
            top_k=top_k or agent.settings.retrieval_top_k,
            threshold=agent.settings.retrieval_threshold if threshold is None else threshold,
        )


def _head(file: BinaryIO) -> bytes:
    file.seek(0)
    head = file.read(HEAD_BYTES)
    file.seek(0)
    return head
