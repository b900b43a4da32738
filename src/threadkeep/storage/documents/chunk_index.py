"""The index of all chunks, by terms and by vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import msgspec

from threadkeep.domain.ids import AgentId
from threadkeep.ports.retriever import Hit
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.terms import json_text, match_all, numbered, reserve


@dataclass(frozen=True, slots=True)
class Collection:
    """Statistics of all of an agent's chunks."""

    number: int
    chunk_count: int
    term_count: int
    removals: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate chunks for a query: how common its terms are, and which chunks have the rare ones."""

    collection: Collection
    frequencies: Mapping[str, int]
    chunk_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """How often a chunk has each of the requested terms, and how many terms it has in total."""

    chunk_id: int
    counts: Mapping[str, int]
    term_count: int


# A term that more chunks contain says little; it is not looked up if rarer ones are available.
MOST_POSTINGS = 12_000
MOST_TRIES = 3
"""How often to retry a chunk that an embedder rejects while accepting others."""

_decode_ids = msgspec.json.Decoder(list[int]).decode

# A search weighs terms by these counts; `removals` shows when vectors in memory are outdated.
COLLECTION = Statement(
    "SELECT number, chunk_count, term_count, removals FROM tk_collections WHERE agent_id = :agent_id"
)
# How many chunks have each term: the rarer a term, the more it weighs.
FREQUENCIES = Statement(
    """SELECT term, chunks FROM tk_terms WHERE collection = :number AND chunks > 0
        AND term IN (SELECT value FROM json_each(:terms))""",
    postgres="""SELECT term, chunks FROM tk_terms WHERE collection = :number AND chunks > 0
        AND term IN (SELECT json_array_elements_text(CAST(:terms AS json)))""",
    page_columns="term, chunks",
)
# The chunks with each of some terms, in one query. The application ranks them, for both databases alike:
# `ts_rank` ignores rarity, and SQLite's GROUP BY sorts, which takes three times as long as counting here.
HOLDERS = Statement(
    """SELECT (SELECT json_group_array(found.rowid) FROM tk_chunk_terms AS found
        WHERE found.tk_chunk_terms MATCH asked.value)
    FROM json_each(:queries) AS asked ORDER BY asked.key""",
    postgres="""SELECT (SELECT CAST(COALESCE(json_agg(found.id), '[]') AS text) FROM tk_chunks AS found
        WHERE array_to_tsvector(string_to_array(found.terms, ' ')) @@ CAST(asked.value AS tsquery))
    FROM json_array_elements_text(CAST(:queries AS json)) WITH ORDINALITY AS asked (value, place)
    ORDER BY asked.place""",
)
# In index order, so that the scan ends at the limit.
COMMON = Statement(
    """SELECT rowid FROM tk_chunk_terms WHERE tk_chunk_terms MATCH :query ORDER BY rowid LIMIT :limit""",
    postgres="""SELECT id FROM tk_chunks
    WHERE array_to_tsvector(string_to_array(terms, ' ')) @@ CAST(:query AS tsquery)
    ORDER BY id LIMIT :limit""",
    page_columns="rowid",
)
# What chunks are ranked by, of documents that are ready: one value with a line per chunk, which costs half of
# what rows or JSON do.
_LINE = "chunk.id || ' ' || chunk.term_count || ' ' || chunk.terms || ' '"
TERMS = Statement(
    f"""SELECT group_concat({_LINE}, char(10))
    FROM tk_chunks AS chunk JOIN tk_documents AS document ON document.id = chunk.document_id
    WHERE chunk.id IN (SELECT value FROM json_each(:ids)) AND document.status = 'ready'""",
    postgres=f"""SELECT string_agg({_LINE}, chr(10))
    FROM tk_chunks AS chunk JOIN tk_documents AS document ON document.id = chunk.document_id
    WHERE chunk.id = ANY(CAST(CAST(:ids AS text) AS bigint[])) AND document.status = 'ready'""",
)
# The chunks that a search shows, of documents that are ready.
CHUNKS = Statement(
    """SELECT chunk.id, chunk.document_id, chunk.position, document.file_name, chunk.page,
        chunk.heading, chunk.text
    FROM tk_chunks AS chunk JOIN tk_documents AS document ON document.id = chunk.document_id
    WHERE chunk.id IN (SELECT value FROM json_each(:ids)) AND document.status = 'ready'""",
    postgres="""SELECT chunk.id, chunk.document_id, chunk.position, document.file_name, chunk.page,
        chunk.heading, chunk.text
    FROM tk_chunks AS chunk JOIN tk_documents AS document ON document.id = chunk.document_id
    WHERE chunk.id = ANY(CAST(CAST(:ids AS text) AS bigint[])) AND document.status = 'ready'""",
    page_columns="id, document_id, position, file_name, page, heading, text",
)
# Starts from the agent's chunks: this reads a whole collection.
_VECTORS = """SELECT vector.seq, chunk.id, vector.vector FROM tk_documents AS document
    JOIN tk_chunks AS chunk ON chunk.document_id = document.id
    JOIN tk_vectors AS vector ON vector.chunk_id = chunk.id
    WHERE document.agent_id = :agent_id AND vector.embedder = :embedder AND vector.seq > :after
    ORDER BY vector.seq LIMIT :limit"""
VECTORS = Statement(_VECTORS)
# Starts from the newest vectors and checks their agent, not from all the agent's chunks.
NEWER_VECTORS = Statement(
    """SELECT vector.seq, chunk.id, vector.vector FROM tk_vectors AS vector
    CROSS JOIN tk_chunks AS chunk ON chunk.id = vector.chunk_id
    CROSS JOIN tk_documents AS document ON document.id = chunk.document_id
    WHERE vector.seq > :after AND vector.embedder = :embedder AND document.agent_id = :agent_id
    ORDER BY vector.seq LIMIT :limit""",
    postgres=_VECTORS,
)
# The last number for any agent: a search that has read up to it has nothing to read.
_NEWEST_VECTOR = Statement("SELECT value FROM tk_counters WHERE name = 'vectors'")
# A vector of another embedder does not count, and a chunk that this one has refused too often no longer
# waits.
_WAITS = """NOT EXISTS (SELECT 1 FROM tk_vectors AS vector
        WHERE vector.chunk_id = chunk.id AND vector.embedder = :embedder)
    AND NOT EXISTS (SELECT 1 FROM tk_refused_chunks AS refused WHERE refused.chunk_id = chunk.id
        AND refused.embedder = :embedder AND refused.tries >= :most_tries)"""
WITHOUT_VECTOR = Statement(
    f"""SELECT chunk.id, chunk.heading, chunk.text FROM tk_documents AS document
    JOIN tk_chunks AS chunk ON chunk.document_id = document.id
    WHERE document.agent_id = :agent_id AND document.status = 'ready' AND {_WAITS}
    LIMIT :limit"""
)
WAITING = Statement(
    f"""SELECT DISTINCT document.agent_id FROM tk_documents AS document
    WHERE document.status = 'ready' AND EXISTS (
        SELECT 1 FROM tk_chunks AS chunk WHERE chunk.document_id = document.id AND {_WAITS})"""
)
# Counts a chunk that an embedder did not take.
_REFUSE = Statement(
    """INSERT INTO tk_refused_chunks AS known (chunk_id, embedder, tries)
    SELECT id, CAST(:embedder AS text), 1 FROM tk_chunks WHERE id = :chunk_id
    ON CONFLICT (chunk_id) DO UPDATE SET embedder = excluded.embedder,
        tries = CASE WHEN known.embedder = excluded.embedder THEN known.tries + 1 ELSE 1 END""",
    postgres="""INSERT INTO tk_refused_chunks AS known (chunk_id, embedder, tries)
    SELECT id, CAST(:embedder AS text), 1 FROM tk_chunks WHERE id = :chunk_id FOR SHARE
    ON CONFLICT (chunk_id) DO UPDATE SET embedder = excluded.embedder,
        tries = CASE WHEN known.embedder = excluded.embedder THEN known.tries + 1 ELSE 1 END""",
)
# A vector of another embedder is replaced. The chunk may be gone; on PostgreSQL it is locked, so that it
# stays until the commit.
_ADD_VECTOR = Statement(
    """INSERT INTO tk_vectors (chunk_id, seq, embedder, vector)
    SELECT id, :seq, :embedder, :vector FROM tk_chunks WHERE id = :chunk_id
    ON CONFLICT (chunk_id) DO UPDATE
        SET seq = excluded.seq, embedder = excluded.embedder, vector = excluded.vector""",
    postgres="""INSERT INTO tk_vectors (chunk_id, seq, embedder, vector)
    SELECT id, :seq, CAST(:embedder AS text), CAST(:vector AS bytea) FROM tk_chunks
    WHERE id = :chunk_id FOR SHARE
    ON CONFLICT (chunk_id) DO UPDATE
        SET seq = excluded.seq, embedder = excluded.embedder, vector = excluded.vector""",
)


class SqlChunkIndex:
    """The index of all chunks. Only returns chunks of ready documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def candidates(self, agent_id: AgentId, terms: Sequence[str], *, limit: int) -> Candidates | None:
        """Chunks of an agent that have some of the terms, most of the rare ones first; None without any."""
        return await self._database.read(lambda: self._candidates(agent_id, terms, limit))

    async def term_counts(
        self, collection: Collection, chunk_ids: Sequence[int], terms: Sequence[str]
    ) -> Sequence[ChunkTerms]:
        """How often each of these chunks contains the terms."""
        ((text,),) = await self._database.fetch(TERMS(ids=self._ids(chunk_ids)))
        # Each stored term has its collection's number before it and a space after it.
        kept = [
            (term, f"{name} ") for term, name in zip(terms, numbered(collection.number, terms), strict=True)
        ]
        lines = (line.split(" ", 2) for line in text.split("\n")) if text else ()
        return [
            ChunkTerms(
                int(id_), {term: count for term, name in kept if (count := found.count(name))}, int(length)
            )
            for id_, length, found in lines
        ]

    async def chunks(self, chunk_ids: Sequence[int]) -> Sequence[tuple[int, Hit]]:
        """The chunks with these ids, in any order, not yet scored."""
        rows = await self._database.fetch(CHUNKS(ids=self._ids(chunk_ids)))
        return [
            (id_, Hit(f"{document_id}:{position}", document_id, file_name, page, heading, text, 0.0))
            for id_, document_id, position, file_name, page, heading, text in rows
        ]

    async def vectors(
        self, agent_id: AgentId, embedder: str, *, after: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        """The vectors of an agent's chunks in order of arrival: number, chunk, 16-bit floats."""
        return await self._vectors(VECTORS, agent_id, embedder, after, limit)

    async def newer_vectors(
        self, agent_id: AgentId, embedder: str, *, after: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        """The same; its cost depends on the number of newer vectors of all agents, not on the total."""
        return await self._vectors(NEWER_VECTORS, agent_id, embedder, after, limit)

    async def _vectors(
        self, statement: Statement, agent_id: AgentId, embedder: str, after: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        rows = await self._database.fetch(
            statement(agent_id=agent_id, embedder=embedder, after=after, limit=limit)
        )
        return [(seq, id_, bytes(vector)) for seq, id_, vector in rows]

    async def newest_vector(self) -> int:
        """The number of the last vector added for any agent."""
        rows = await self._database.fetch(_NEWEST_VECTOR())
        return rows[0][0] if rows else 0

    async def waiting(self, embedder: str) -> Sequence[AgentId]:
        """The agents with chunks that have no vector of this embedder yet."""
        rows = await self._database.fetch(WAITING(embedder=embedder, most_tries=MOST_TRIES))
        return [agent_id for (agent_id,) in rows]

    async def without_vector(
        self, agent_id: AgentId, embedder: str, *, limit: int
    ) -> Sequence[tuple[int, str]]:
        """Chunks, with their text, that have no vector of this embedder yet and weren't refused often."""
        rows = await self._database.fetch(
            WITHOUT_VECTOR(agent_id=agent_id, embedder=embedder, limit=limit, most_tries=MOST_TRIES)
        )
        return [(id_, f"{heading}\n{text}" if heading else text) for id_, heading, text in rows]

    async def refuse(self, embedder: str, chunk_id: int) -> None:
        """Notes that the embedder rejected a chunk but accepted others."""
        await self._database.execute(_REFUSE(embedder=embedder, chunk_id=chunk_id))

    async def add_vectors(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Stores vectors of chunks; skips deleted chunks."""
        await self._database.write(lambda: _add_vectors(embedder, vectors))

    def _candidates(self, agent_id: AgentId, terms: Sequence[str], limit: int) -> Plan[Candidates | None]:
        rows = yield COLLECTION(agent_id=agent_id)
        if not rows or not rows[0][1]:
            return None
        collection = Collection(*rows[0])
        rows = yield FREQUENCIES(number=collection.number, terms=json_text(terms))
        found: dict[str, int] = dict(rows)  # pyright: ignore[reportArgumentType]
        # In query order: floating-point sums depend on the order.
        frequencies = {term: found[term] for term in terms if term in found}
        if not frequencies:
            return Candidates(collection, {}, ())
        if weights := self._weights(collection, frequencies):
            rows = yield HOLDERS(queries=json_text(list(weights)))
            holders = [_decode_ids(ids) for (ids,) in rows]
            return Candidates(collection, frequencies, _heaviest(holders, [*weights.values()], limit))
        # Even the rarest term is common: chunks that contain all.
        rows = yield COMMON(query=self._match(collection, sorted(frequencies)), limit=limit)
        return Candidates(collection, frequencies, [row[0] for row in rows])

    def _weights(self, collection: Collection, frequencies: dict[str, int]) -> dict[str, float]:
        """The queries to run and their weights: the rarest terms, up to MOST_POSTINGS entries in total."""
        rare: list[str] = []
        room = MOST_POSTINGS
        for term in sorted(frequencies, key=lambda term: (frequencies[term], term)):
            room -= frequencies[term]
            if room < 0:
                break
            rare.append(term)
        return {
            self._match(collection, [term]): log(1 + collection.chunk_count / frequencies[term])
            for term in rare
        }

    def _match(self, collection: Collection, terms: Sequence[str]) -> str:
        return match_all(self._database.dialect, numbered(collection.number, terms))

    def _ids(self, chunk_ids: Sequence[int]) -> str:
        inner = ",".join(map(str, chunk_ids))
        return f"[{inner}]" if self._database.dialect == "sqlite" else f"{{{inner}}}"


def _heaviest(holders: Sequence[Sequence[int]], weights: Sequence[float], limit: int) -> list[int]:
    """The chunks with the greatest total weight; ties in order of id."""
    worth: dict[int, float] = {}
    weight_of = worth.get
    for ids, weight in zip(holders, weights, strict=True):
        for id_ in ids:
            worth[id_] = weight_of(id_, 0.0) + weight
    least = sorted(worth.values(), reverse=True)[:limit][-1]
    best = sorted((-weight, id_) for id_, weight in worth.items() if weight >= least)
    return [id_ for _, id_ in best[:limit]]


def _add_vectors(embedder: str, vectors: Sequence[tuple[int, bytes]]) -> Plan[None]:
    # The counter stays locked until the commit, so that numbers become visible in order: a reader that has
    # read up to one has missed none.
    first = yield from reserve("vectors", len(vectors))
    for seq, (chunk_id, vector) in enumerate(vectors, first):
        yield _ADD_VECTOR(chunk_id=chunk_id, seq=seq, embedder=embedder, vector=vector)
