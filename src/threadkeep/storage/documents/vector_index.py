"""The vectors of large collections in pgvector, if PostgreSQL has it: an index in the database finds them.

The database's administrator decides about extensions, so this is used where it exists (`CREATE EXTENSION
vector`, 0.7 or later), and nothing is missing without it. Each large collection has its own index, which
holds nothing of others; it is created while the collection is still empty here and grows with it, so that
no step takes long.
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from math import isnan

from threadkeep.domain.ids import AgentId
from threadkeep.storage.database.connector import Database, Plan, Query, Statement
from threadkeep.storage.documents.chunk_index import COLLECTION, Collection, SqlChunkIndex

LARGE_COLLECTION = 20_000
"""Above this number of chunks, a query isn't compared with all vectors."""


FOLLOWED_AT_ONCE = 500
# How many neighbours the index looks at, and finds at most.
LOOKED_AT = 200
CREATION_LOCK = 0x6E65_6172  # "near": one process creates the tables, the others wait for it

# The schema of pgvector, if it is recent enough to have `halfvec`.
_EXTENSION = Statement(
    """SELECT quote_ident(home.nspname) FROM pg_extension AS extension
    JOIN pg_namespace AS home ON home.oid = extension.extnamespace
    JOIN pg_type AS kind ON kind.typnamespace = home.oid AND kind.typname = 'halfvec'
    WHERE extension.extname = 'vector'"""
)
_LOCK = Statement("SELECT pg_advisory_xact_lock(:key)")
# For `_LAST`, where copying continues.
_BY_COLLECTION = Statement(
    "CREATE INDEX IF NOT EXISTS tk_near_by_collection ON tk_near (collection, space, seq)"
)
# Which collections have been copied completely.
_CREATE_FOLLOWED = Statement(
    """CREATE TABLE IF NOT EXISTS tk_near_followed (
        collection bigint NOT NULL REFERENCES tk_collections (number) ON DELETE CASCADE,
        space bigint NOT NULL,
        PRIMARY KEY (collection, space))"""
)
# Only agents' collections have chunks; users' have messages.
_WITH_MORE_CHUNKS = Statement(
    "SELECT agent_id FROM tk_collections WHERE agent_id IS NOT NULL AND chunk_count > :more_than"
)
_LAST = Statement("SELECT COALESCE(MAX(seq), 0) FROM tk_near WHERE collection = :number AND space = :space")
# A search uses the index only when all vectors have been copied. The collection may have been deleted
# meanwhile; then nothing is marked.
_MARK = Statement(
    """INSERT INTO tk_near_followed (collection, space)
    SELECT number, :space FROM tk_collections WHERE number = :number ON CONFLICT DO NOTHING"""
)
_IS_FOLLOWED = Statement("SELECT 1 FROM tk_near_followed WHERE collection = :number AND space = :space")
# Holds for the connection, and each search may get another one.
_LOOK_FURTHER = Statement(f"SELECT set_config('hnsw.ef_search', '{LOOKED_AT}', FALSE)")


async def vector_index_on(database: Database, chunks: SqlChunkIndex) -> "PgVector | None":
    """The index in a database that has the extension."""
    if database.dialect != "postgres":
        return None
    rows = await database.fetch(_EXTENSION())
    if not rows:
        return None
    home = rows[0][0]
    await database.write(lambda: _create(home))
    return PgVector(database, chunks, home)


def _create(home: str) -> Plan[None]:
    yield _LOCK(key=CREATION_LOCK)
    # `space` identifies the embedder: vectors of two can't be compared.
    yield Statement(
        f"""CREATE TABLE IF NOT EXISTS tk_near (
            chunk_id bigint NOT NULL PRIMARY KEY REFERENCES tk_vectors (chunk_id) ON DELETE CASCADE,
            seq bigint NOT NULL,
            collection bigint NOT NULL,
            space bigint NOT NULL,
            vector {home}.halfvec NOT NULL)"""
    )()
    yield _BY_COLLECTION()
    yield _CREATE_FOLLOWED()


class PgVector:
    """A vector index in the database, for large collections; not every database has one."""

    def __init__(self, database: Database, chunks: SqlChunkIndex, home: str) -> None:
        self._database = database
        self._chunks = chunks
        self._home = home
        self._add = Statement(
            f"""INSERT INTO tk_near (chunk_id, seq, collection, space, vector)
            SELECT kept.chunk_id, kept.seq, :number, :space, CAST(given.vector AS {home}.halfvec)
            FROM unnest(CAST(:seqs AS bigint[]), CAST(:vectors AS text[])) AS given (seq, vector)
            JOIN tk_vectors AS kept ON kept.seq = given.seq
            FOR SHARE OF kept
            ON CONFLICT (chunk_id) DO UPDATE SET seq = excluded.seq, collection = excluded.collection,
                space = excluded.space, vector = excluded.vector"""
        )

    async def agents_with_more_chunks(self, more_than: int) -> Sequence[AgentId]:
        """The agents that have more chunks than this."""
        return [id_ for (id_,) in await self._database.fetch(_WITH_MORE_CHUNKS(more_than=more_than))]

    async def follow(self, agent_id: AgentId, embedder: str) -> bool:
        """Indexes some more of an agent's vectors; returns whether there may be more."""
        found = await self._database.fetch(COLLECTION(agent_id=agent_id))
        if not found:
            return False
        number, space = Collection(*found[0]).number, _space(embedder)
        ((last,),) = await self._database.fetch(_LAST(number=number, space=space))
        rows = await self._chunks.vectors(agent_id, embedder, after=last, limit=FOLLOWED_AT_ONCE)
        if rows:
            await self._database.execute(self._index(number, space, _dimensions(rows[0][2])))
            vectors = [_text(vector) for _, _, vector in rows]
            seqs = [seq for seq, _, _ in rows]
            await self._database.execute(self._add(number=number, space=space, seqs=seqs, vectors=vectors))
        if len(rows) == FOLLOWED_AT_ONCE:
            return True
        await self._database.execute(_MARK(number=number, space=space))
        return False

    async def nearest(
        self, collection: Collection, embedder: str, query: bytes, *, limit: int, others: Sequence[int]
    ) -> Mapping[int, float] | None:
        """The cosine of the nearest chunks, and of these others; None if not all of them are here yet."""
        return await self._database.read(
            lambda: self._nearest(collection.number, _space(embedder), query, limit, others)
        )

    def _nearest(
        self, number: int, space: int, query: bytes, limit: int, others: Sequence[int]
    ) -> Plan[Mapping[int, float] | None]:
        if not (yield _IS_FOLLOWED(number=number, space=space)):
            return None
        yield _LOOK_FURTHER()
        kind = f"{self._home}.halfvec({_dimensions(query)})"
        # In a subquery, the text is parsed once, not for every row.
        wanted = f"(SELECT CAST(CAST(:query AS text) AS {kind}))"
        apart = f"CAST(vector AS {kind}) OPERATOR({self._home}.<=>) {wanted}"
        # Literal numbers: a partial index is used only if the query itself states its condition.
        here = f"collection = {number} AND space = {space}"
        near = yield Statement(
            f"SELECT chunk_id, 1 - ({apart}) FROM tk_near WHERE {here} ORDER BY {apart} LIMIT :limit"
        )(query=_text(query), limit=limit)
        asked = yield Statement(
            # By id: the planner may believe that a collection has fewer rows than were asked for.
            f"""SELECT chunk_id, 1 - ({apart}) FROM (
                SELECT * FROM tk_near WHERE chunk_id = ANY(CAST(:others AS bigint[])) OFFSET 0) AS other
            WHERE {here}"""
        )(query=_text(query), others=list(others))
        # An all-zero vector has no direction: its cosine is NaN.
        return {id_: cosine for id_, cosine in (*near, *asked) if not isnan(cosine)}

    def _index(self, number: int, space: int, dimensions: int) -> Query:
        return Statement(
            f"""CREATE INDEX IF NOT EXISTS tk_near_{number}_{space} ON tk_near
            USING hnsw (CAST(vector AS {self._home}.halfvec({dimensions})) {self._home}.halfvec_cosine_ops)
            WHERE collection = {number} AND space = {space}"""
        )()


def _space(embedder: str) -> int:
    return int.from_bytes(hashlib.sha256(embedder.encode()).digest()[:4])


def _dimensions(vector: bytes) -> int:
    return len(vector) // 2


def _text(vector: bytes) -> str:
    """A vector in pgvector's syntax; five digits are all that 16 bits hold."""
    return f"[{','.join(f'{number:.5g}' for number in struct.unpack(f'<{len(vector) // 2}e', vector))}]"
