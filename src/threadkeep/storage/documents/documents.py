"""Documents in the database, and the chunks they are searched by."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from threadkeep.domain.document import Chunk, Document, DocumentStatus
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import LAST_UUID, AgentId, DocumentId, UserId
from threadkeep.ports.documents import ExtractedPart
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.file_rows import FILE_BYTES
from threadkeep.storage.terms import collection_of, json_text, numbered, reserve
from threadkeep.storage.text_bytes import text_bytes_of

CheckRoom = Callable[[int, int], None]
"""Rejects documents if a user's agents have this many documents or bytes."""


_COLUMNS = """id, agent_id, file_name, media_type, size, sha256, status, created_at, updated_at, progress,
    chunk_count, error"""
# An agent keeps each content once. If it has this one already, no row comes back and `_BY_CONTENT` finds the
# document that has it.
_ADD = Statement(
    f"""INSERT INTO tk_documents ({_COLUMNS})
    VALUES (:id, :agent_id, :file_name, :media_type, :size, :sha256, :status, :created_at, :updated_at,
        :progress, :chunk_count, :error)
    ON CONFLICT (agent_id, sha256) DO NOTHING RETURNING id"""
)
_BY_CONTENT = Statement(
    f"SELECT {_COLUMNS} FROM tk_documents WHERE agent_id = :agent_id AND sha256 = :sha256"
)
_BY_ID = f"SELECT {_COLUMNS} FROM tk_documents WHERE id = :id AND agent_id = :agent_id"
# By agent, too: another agent's document is not found. `_LOCK` lets one change at a time read it and write it
# back with `_UPDATE`.
_GET = Statement(_BY_ID)
_LOCK = Statement(_BY_ID, locks="FOR UPDATE")
# Newest first, since ids begin with the time.
PAGE = Statement(
    f"""SELECT {_COLUMNS} FROM tk_documents WHERE agent_id = :agent_id AND id < :before
    ORDER BY id DESC LIMIT :limit OFFSET :offset"""
)
# Decides whether the agent gets the tool that searches its documents.
HAS_READY = Statement("SELECT 1 FROM tk_documents WHERE agent_id = :agent_id AND status = 'ready' LIMIT 1")
_UPDATE = Statement(
    """UPDATE tk_documents SET status = :status, progress = :progress, chunk_count = :chunk_count,
        error = :error, updated_at = :updated_at
    WHERE id = :id"""
)
# The chunks have been removed before, a few at a time.
_DELETE = Statement("DELETE FROM tk_documents WHERE id = :id")
# Adding chunks renews `updated_at`, so these have made no progress since `:before`. They become failed.
_STALLED = Statement(
    f"SELECT {_COLUMNS} FROM tk_documents WHERE status = 'processing' AND updated_at < :before"
)
# SQLite reads the tables of a CROSS JOIN in this order.
_OF_DELETED_AGENTS = Statement(
    """SELECT document.id, document.agent_id, document.file_name, document.media_type, document.size,
        document.sha256, document.status, document.created_at, document.updated_at, document.progress,
        document.chunk_count, document.error
    FROM tk_agents AS agent CROSS JOIN tk_documents AS document
    WHERE agent.deleted_at > 0 AND NOT agent.is_cleared AND document.agent_id = agent.id LIMIT :limit"""
)
# Not just deleted: an upload may be on its way.
_NOTE_CLEARED = Statement(
    """UPDATE tk_agents SET is_cleared = TRUE, description = '', system_prompt = '', settings = '{}'
    WHERE id IN (
        SELECT agent.id FROM tk_agents AS agent
        WHERE agent.deleted_at < :before AND NOT agent.is_cleared
            AND NOT EXISTS (SELECT 1 FROM tk_documents WHERE tk_documents.agent_id = agent.id)
        ORDER BY agent.deleted_at LIMIT :limit)
    RETURNING id"""
)
# Additions to a user's documents wait here for each other; the user's turns do not wait.
_LOCK_OWNER = Statement(
    """SELECT tk_users.id FROM tk_agents JOIN tk_users ON tk_users.id = tk_agents.owner_id
    WHERE tk_agents.id = :agent_id""",
    locks="FOR NO KEY UPDATE OF tk_users",
)
# What counts against the owner's limits, over all of their agents, even deleted ones that still have
# documents.
OWNED = Statement(
    """SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS bigint) FROM tk_documents
    WHERE agent_id IN (SELECT id FROM tk_agents WHERE owner_id = :owner_id AND NOT is_cleared)"""
)
# Compared with the files on disk, to find those that no document names.
_IDS = Statement("SELECT id FROM tk_documents WHERE agent_id = :agent_id")

# Nothing is added to a document that is being removed, nor out of order: a node that stalled may still be
# reading it when another one has started over.
_ADVANCE = Statement(
    """UPDATE tk_documents SET chunk_count = chunk_count + :chunks, progress = :progress, updated_at = :now
    WHERE id = :id AND status = 'processing' AND chunk_count = :position RETURNING id"""
)
# Tells why `_ADVANCE` changed nothing: another node is ahead, or the document is no longer being read. A part
# without chunks asks only this.
_IS_PROCESSING = Statement("SELECT 1 FROM tk_documents WHERE id = :id AND status = 'processing'")
# Runs when no chunk is left, whatever the count says by then.
_START_OVER = Statement("UPDATE tk_documents SET chunk_count = 0 WHERE id = :id AND chunk_count <> 0")
# Counts removed chunks, some at a time. For the collection, `_GROW` does the same with negative numbers.
_SHRINK = Statement("UPDATE tk_documents SET chunk_count = chunk_count - :chunks WHERE id = :id")
_GROW = Statement(
    """UPDATE tk_collections SET chunk_count = chunk_count + :chunks, term_count = term_count + :terms,
        removals = removals + :removals
    WHERE number = :number"""
)
# `terms` is what the full-text index reads; `term_count` includes repetitions.
_ADD_CHUNK = Statement(
    """INSERT INTO tk_chunks (id, document_id, position, page, heading, text, term_count, terms)
    VALUES (:id, :document_id, :position, :page, :heading, :text, :term_count, :terms)"""
)
# Sorted, so that concurrent counts do not deadlock.
_COUNT = Statement(
    """INSERT INTO tk_terms (collection, term, chunks)
    SELECT :number, key, value FROM json_each(:counts) WHERE TRUE
    ON CONFLICT (collection, term) DO UPDATE SET chunks = tk_terms.chunks + excluded.chunks""",
    postgres="""INSERT INTO tk_terms (collection, term, chunks)
    SELECT :number, key, CAST(value AS bigint) FROM json_each_text(CAST(:counts AS json)) ORDER BY key
    ON CONFLICT (collection, term) DO UPDATE SET chunks = tk_terms.chunks + excluded.chunks""",
)
# Deletes the counts that a removal has brought down to zero.
_FORGET_TERMS = Statement(
    """DELETE FROM tk_terms WHERE collection = :number AND chunks <= 0
        AND term IN (SELECT key FROM json_each(:counts))""",
    postgres="""DELETE FROM tk_terms WHERE collection = :number AND chunks <= 0
        AND term IN (SELECT key FROM json_each_text(CAST(:counts AS json)))""",
)
# The next chunks to remove, with the terms that have to be subtracted from the counts.
_SOME_CHUNKS = Statement(
    """SELECT id, term_count, terms FROM tk_chunks WHERE document_id = :document_id
    ORDER BY position LIMIT :limit"""
)
# What a reader of the document sees, in its order.
PASSAGES = Statement(
    """SELECT position, text, page, heading FROM tk_chunks
    WHERE document_id = :document_id AND position >= :first ORDER BY position LIMIT :limit"""
)
# Its vector goes by cascade.
_DELETE_CHUNK = Statement("DELETE FROM tk_chunks WHERE id = :id")


class SqlDocuments:
    """The documents of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, document: Document) -> Document:
        """Stores a new document; returns the existing one if the agent already has the same file."""
        return await self._database.write(lambda: _add(document))

    async def add_all(self, documents: Sequence[Document], check_room: CheckRoom) -> Sequence[Document]:
        """Does the same with documents of one agent, all or none.

        `check_room` receives the owner's totals including them; nobody else adds documents meanwhile.
        """
        return await self._database.write(lambda: _add_all(documents, check_room))

    async def get(self, agent_id: AgentId, document_id: DocumentId) -> Document | None:
        """One document of an agent."""
        rows = await self._database.fetch(_GET(id=document_id, agent_id=agent_id))
        return _document(rows[0]) if rows else None

    async def page(
        self, agent_id: AgentId, *, before: str | None, offset: int, limit: int
    ) -> Sequence[Document]:
        """An agent's documents, newest first."""
        rows = await self._database.fetch(
            PAGE(agent_id=agent_id, before=before or LAST_UUID, offset=offset, limit=limit)
        )
        return [_document(row) for row in rows]

    async def passages(self, document: Document, *, first: int, limit: int) -> Sequence[Chunk]:
        """A document's chunks from a position on, in order."""
        rows = await self._database.fetch(PASSAGES(document_id=document.id, first=first, limit=limit))
        return [Chunk(*row) for row in rows]

    async def has_ready(self, agent_id: AgentId) -> bool:
        """Whether an agent has any searchable document."""
        return bool(await self._database.fetch(HAS_READY(agent_id=agent_id)))

    async def update(
        self, agent_id: AgentId, document_id: DocumentId, change: Callable[[Document], Document]
    ) -> Document | None:
        """Reads, changes and writes status, progress, count and error exclusively."""
        return await self._database.write(lambda: _update(agent_id, document_id, change))

    async def add_part(self, document: Document, part: ExtractedPart, now: int) -> bool:
        """Adds the next chunks to a document and to its agent's index; False if it is no longer wanted.

        Raises StorageConflict if they are not the next: another node reads the document, too.
        """
        return await self._database.write(lambda: _add_part(document, part, now))

    async def remove_chunks(self, document: Document, *, limit: int) -> int:
        """Removes some chunks of a document from every index; returns how many, 0 if none are left."""
        return await self._database.write(lambda: _remove_chunks(document, limit))

    async def delete(self, document: Document) -> None:
        """Removes a document."""
        await self._database.execute(_DELETE(id=document.id))

    async def stalled(self, before: int) -> Sequence[Document]:
        """Documents in progress that have shown no sign of life since a time."""
        return [_document(row) for row in await self._database.fetch(_STALLED(before=before))]

    async def of_deleted_agents(self, *, limit: int) -> Sequence[Document]:
        """Documents whose agent is deleted: nobody can search or delete them any more."""
        return [_document(row) for row in await self._database.fetch(_OF_DELETED_AGENTS(limit=limit))]

    async def note_cleared(self, *, deleted_before: int, limit: int) -> bool:
        """Notes for some deleted agents that none of their documents is left; False once all are noted."""
        return bool(await self._database.execute(_NOTE_CLEARED(before=deleted_before, limit=limit)))

    async def ids_of(self, agent_id: AgentId) -> set[DocumentId]:
        """The ids of all documents of an agent, to find orphaned files."""
        return {id_ for (id_,) in await self._database.fetch(_IDS(agent_id=agent_id))}


def document_totals(owner_id: UserId) -> Plan[tuple[int, int]]:
    """How many documents the agents of an owner have, and how many bytes."""
    ((documents, size),) = yield OWNED(owner_id=owner_id)
    return documents, size


def _add_all(fresh: Sequence[Document], check_room: CheckRoom) -> Plan[list[Document]]:
    owners = yield _LOCK_OWNER(agent_id=fresh[0].agent_id)
    added: list[Document] = []
    for document in fresh:
        kept = yield from _add(document)
        added.append(kept)
    is_more = any(new.id == it.id for new, it in zip(fresh, added, strict=True))
    for (owner_id,) in owners if is_more else ():
        documents, document_bytes = yield from document_totals(owner_id)
        ((file_bytes,),) = yield FILE_BYTES(user_id=owner_id)
        check_room(documents, document_bytes + file_bytes + (yield from text_bytes_of(owner_id)))
    return added


def _add(document: Document) -> Plan[Document]:
    if (yield _ADD(**_values(document))):
        return document
    (row,) = yield _BY_CONTENT(agent_id=document.agent_id, sha256=document.sha256)
    return _document(row)


def _update(
    agent_id: AgentId, document_id: DocumentId, change: Callable[[Document], Document]
) -> Plan[Document | None]:
    rows = yield _LOCK(id=document_id, agent_id=agent_id)
    if not rows:
        return None
    changed = change(_document(rows[0]))
    yield _UPDATE(**_values(changed))
    return changed


def _add_part(document: Document, part: ExtractedPart, now: int) -> Plan[bool]:
    chunks = part.chunks
    if not chunks:
        return bool((yield _IS_PROCESSING(id=document.id)))
    position = chunks[0].chunk.position
    advanced = yield _ADVANCE(
        id=document.id, position=position, chunks=len(chunks), progress=part.progress, now=now
    )
    if not advanced:
        if (yield _IS_PROCESSING(id=document.id)):
            raise StorageConflict("Another node reads this document.")
        return False
    number = yield from collection_of(document.agent_id, "agent_id")
    term_count = sum(len(it.terms) for it in chunks)
    yield _GROW(number=number, chunks=len(chunks), terms=term_count, removals=0)
    first_id = yield from reserve("chunks", len(chunks))
    counts: Counter[str] = Counter()
    for id_, (chunk, terms) in enumerate(((it.chunk, it.terms) for it in chunks), first_id):
        counts.update(set(terms))
        yield _ADD_CHUNK(
            id=id_,
            document_id=document.id,
            position=chunk.position,
            page=chunk.page,
            heading=chunk.heading,
            text=chunk.text,
            term_count=len(terms),
            terms=" ".join(numbered(number, terms)),
        )
    yield _COUNT(number=number, counts=json_text(counts))
    return True


def _remove_chunks(document: Document, limit: int) -> Plan[int]:
    number = yield from collection_of(document.agent_id, "agent_id")
    rows = yield _SOME_CHUNKS(document_id=document.id, limit=limit)
    if not rows:
        yield _START_OVER(id=document.id)
        return 0
    yield _SHRINK(id=document.id, chunks=len(rows))
    yield _GROW(number=number, chunks=-len(rows), terms=-sum(row[1] for row in rows), removals=1)
    counts: Counter[str] = Counter()
    before = len(f"{number}x")
    for id_, _, terms in rows:
        counts.subtract({term[before:] for term in terms.split(" ") if term})
        yield _DELETE_CHUNK(id=id_)
    yield _COUNT(number=number, counts=json_text(counts))
    yield _FORGET_TERMS(number=number, counts=json_text(counts))
    return len(rows)


def _values(document: Document) -> dict[str, Any]:
    return {name: getattr(document, name) for name in Document.__slots__}


def _document(row: Row) -> Document:
    (
        id_, agent_id, file_name, media_type, size, sha256, status, created_at, updated_at, progress,
        chunk_count, error,
    ) = row  # fmt: skip
    return Document(
        id=id_,
        agent_id=agent_id,
        file_name=file_name,
        media_type=media_type,
        size=size,
        sha256=sha256,
        status=DocumentStatus(status),
        created_at=created_at,
        updated_at=updated_at,
        progress=progress,
        chunk_count=chunk_count,
        error=error,
    )
