"""Reads documents in the background: first their text, then their meaning."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from threadkeep.clock import Clock
from threadkeep.domain.document import Document, DocumentStatus
from threadkeep.domain.ids import AgentId, DocumentId, UserId
from threadkeep.jobs.hourly import ORPHANED_S
from threadkeep.jobs.queue import FollowUp, RetryLater
from threadkeep.ports.documents import ExtractionBroke, ExtractionFailed, Extractor
from threadkeep.ports.embedder import Embedder, EmbedderError
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.documents.documents import SqlDocuments
from threadkeep.storage.documents.vector_index import LARGE_COLLECTION, PgVector
from threadkeep.storage.store import Store

log = logging.getLogger("threadkeep.documents")

READ_JOB = "document"
EMBED_JOB = "embed"
TRIES = 2
REMOVED_AT_ONCE = 25
LOOKED_AT_ONCE = 500
EMBEDDED_AT_ONCE = 8
EMBED_FOR_S = 60.0
HARMLESS = "text"
"""Any working embedder accepts it."""
LOOK_AGAIN_MS = 5_000
STALLED_MS = 24 * 60 * 60 * 1000


def read_job(document: Document, owner_id: UserId | None) -> dict[str, str]:
    """The arguments of the job that reads a document for the owner of its agent."""
    return {
        "agent_id": document.agent_id,
        "document_id": document.id,
        "user_id": owner_id or document.agent_id,
    }


def embed_job(agent_id: AgentId, user_id: str) -> dict[str, str]:
    """The arguments of the job that embeds an agent's chunks, which counts as its owner's work."""
    return {"agent_id": agent_id, "user_id": user_id}


class DocumentJobs:
    """The jobs behind documents: extract their text, then embed it."""

    def __init__(
        self,
        store: Store,
        files: FolderDocumentFiles,
        extractor: Extractor,
        embedder: Embedder | None,
        clock: Clock,
        vector_index: PgVector | None = None,
    ) -> None:
        self._store = store
        self._files = files
        self._extractor = extractor
        self._embedder = embedder
        self._clock = clock
        self._vector_index = vector_index
        self._embedding: set[AgentId] = set()

    async def read(self, arguments: Mapping[str, Any]) -> FollowUp | None:
        """Reads a document: ready, or failed with the reason."""
        agent_id, document_id = AgentId(arguments["agent_id"]), DocumentId(arguments["document_id"])
        document = await self._store.documents.get(agent_id, document_id)
        if document is None or document.status is not DocumentStatus.PROCESSING:
            return None
        error, added = None, 0
        for _ in range(TRIES):
            try:
                error = None
                added = await self._read(document)
                break
            except ExtractionFailed as exc:
                error = exc.message
                break
            except ExtractionBroke as exc:
                log.warning("processing document %s was interrupted: %s", document.id, exc.message)
                error = f"{exc.message} Gave up after {TRIES} attempts."
        if error is not None:
            await remove_chunks(self._store.documents, document)
        await self._end(document, error, added)
        if error is not None or self._embedder is None:
            return None
        return FollowUp(EMBED_JOB, embed_job(agent_id, arguments.get("user_id", agent_id)))

    async def _end(self, document: Document, error: str | None, added: int = 0) -> None:
        """Ends reading a document, unless another node has started over and has other chunks so far."""
        status = DocumentStatus.READY if error is None else DocumentStatus.FAILED

        def end(current: Document) -> Document:
            is_open = current.status is DocumentStatus.PROCESSING
            is_whole = error is not None or current.chunk_count == added
            return current.become(status, self._clock(), error=error) if is_open and is_whole else current

        await self._store.documents.update(document.agent_id, document.id, end)

    async def _read(self, document: Document) -> int:
        """Reads a document; returns how many chunks it has."""
        added = 0
        file = await self._files.open(document.agent_id, document.id)
        if file is None:
            raise ExtractionFailed("The file is missing. Upload it again.")
        with file:
            await remove_chunks(self._store.documents, document)  # of an attempt that was interrupted
            async with aclosing(self._extractor.extract(file, document.media_type)) as parts:
                async for part in parts:
                    if not await self._store.documents.add_part(document, part, self._clock()):
                        break
                    added += len(part.chunks)
        return added

    async def embed(self, arguments: Mapping[str, Any]) -> FollowUp | None:
        """Embeds and indexes those chunks of an agent that have no vector yet, for a while at a time."""
        agent_id = AgentId(arguments["agent_id"])
        if self._embedder is None:
            return None
        if agent_id in self._embedding:  # two jobs would embed the same chunks
            return FollowUp(EMBED_JOB, arguments, LOOK_AGAIN_MS)
        self._embedding.add(agent_id)
        try:
            return None if await self._embed(agent_id, self._embedder) else FollowUp(EMBED_JOB, arguments)
        except EmbedderError as exc:
            raise RetryLater(exc.message) from exc
        finally:
            self._embedding.discard(agent_id)

    async def _embed(self, agent_id: AgentId, embedder: Embedder) -> bool:
        """Works for a while; returns whether nothing is left."""
        until = asyncio.get_running_loop().time() + EMBED_FOR_S
        refused: set[int] = set()
        while asyncio.get_running_loop().time() < until:
            waiting = await self._store.chunks.without_vector(agent_id, embedder.name, limit=LOOKED_AT_ONCE)
            waiting = [chunk for chunk in waiting if chunk[0] not in refused]
            if not waiting:
                if refused:  # they are retried after a pause
                    raise RetryLater(f"The embedder rejected {len(refused)} chunks.")
                return not await self._index(agent_id, embedder, until)
            for first in range(0, len(waiting), EMBEDDED_AT_ONCE):
                refused |= await self._embed_some(embedder, waiting[first : first + EMBEDDED_AT_ONCE], until)
        return False

    async def _embed_some(
        self, embedder: Embedder, waiting: Sequence[tuple[int, str]], until: float
    ) -> set[int]:
        """Stores the vectors of some chunks; returns those that were rejected."""
        refused: set[int] = set()
        try:
            await self._keep_vectors(embedder, waiting, until)
        except EmbedderError:
            for chunk in waiting:
                try:
                    await self._keep_vectors(embedder, [chunk], until)
                except EmbedderError as exc:
                    await embedder.embed([HARMLESS])  # fails if it is down and rejects everything
                    log.warning("chunk %d is searchable by keyword only: %s", chunk[0], exc.message)
                    await self._store.chunks.refuse(embedder.name, chunk[0])
                    refused.add(chunk[0])
        return refused

    async def _keep_vectors(
        self, embedder: Embedder, waiting: Sequence[tuple[int, str]], until: float
    ) -> None:
        if asyncio.get_running_loop().time() > until:
            return
        vectors = await embedder.embed([text for _, text in waiting])
        found = [(id_, vector) for (id_, _), vector in zip(waiting, vectors, strict=True)]
        await self._store.chunks.add_vectors(embedder.name, found)

    async def _index(self, agent_id: AgentId, embedder: Embedder, until: float) -> bool:
        """Copies a large collection into the database's own index; returns whether more is left."""
        if self._vector_index is None or agent_id not in await self._vector_index.agents_with_more_chunks(
            LARGE_COLLECTION
        ):
            return False
        while await self._vector_index.follow(agent_id, embedder.name):
            if asyncio.get_running_loop().time() > until:
                return True
        return False

    async def unembedded(self) -> Sequence[AgentId]:
        """Agents whose chunks lack vectors of the current model, or whose vectors a new index may lack."""
        if self._embedder is None:
            return ()
        waiting = await self._store.chunks.waiting(self._embedder.name)
        large = (
            await self._vector_index.agents_with_more_chunks(LARGE_COLLECTION) if self._vector_index else ()
        )
        return list(dict.fromkeys((*waiting, *large)))

    async def embed_jobs(self) -> Sequence[Mapping[str, Any]]:
        """The jobs for those agents' chunks, each for the agent's owner."""
        jobs: list[Mapping[str, Any]] = []
        for agent_id in await self.unembedded():
            agent = await self._store.agents.get(agent_id)
            jobs.append(embed_job(agent_id, (agent and agent.owner_id) or agent_id))
        return jobs

    async def sweep(self) -> None:
        """Fails stalled documents, and removes unreachable ones, which would count against limits forever."""
        now = self._clock()
        for document in await self._store.documents.stalled(now - STALLED_MS):
            await self._end(document, "Processing the file took too many attempts.")
        while gone := await self._store.documents.of_deleted_agents(limit=REMOVED_AT_ONCE):
            for document in gone:
                await remove_chunks(self._store.documents, document)
                await self._store.documents.delete(document)
        while await self._store.documents.note_cleared(
            deleted_before=now - ORPHANED_S * 1000, limit=REMOVED_AT_ONCE
        ):
            pass
        for agent_id in await self._files.agent_ids():
            known = await self._store.documents.ids_of(agent_id)
            await self._files.keep_only(agent_id, known, idle_s=ORPHANED_S)


async def remove_chunks(documents: SqlDocuments, document: Document) -> None:
    """Removes all chunks of a document from every index, a few at a time so as not to delay turns."""
    while await documents.remove_chunks(document, limit=REMOVED_AT_ONCE):
        pass
