"""How long a search of 100,000 chunks takes where PostgreSQL has pgvector; how its index grows."""

import time
from collections.abc import Sequence

import psycopg

from bench.databases import loaded_postgres
from bench.measure import Effort
from bench.retrieval.speed import FUSED_AIM, Chunks, searches
from bench.table import Times
from threadkeep.domain.ids import AgentId, new_uuid
from threadkeep.retrieval.embed import bundled_embedder
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.storage.documents.vector_index import FOLLOWED_AT_ONCE, LARGE_COLLECTION, vector_index_on
from threadkeep.storage.store import open_database, store_on


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """The index grows as in the product, some vectors at a time; then the searches of the other bench."""
    if "postgres" not in databases:
        return ()
    embedder = bundled_embedder()
    assert embedder is not None, "the extra `documents` and the weights are needed"
    agent_id, count = AgentId(new_uuid()), max(effort.chunks, LARGE_COLLECTION + FOLLOWED_AT_ONCE)
    async with loaded_postgres(Chunks(agent_id, count, embedder.name)) as url:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("CREATE EXTENSION vector")
        database = await open_database(url)
        store = await store_on(database)
        index = await vector_index_on(database, store.chunks)
        assert index is not None
        grown: list[float] = []
        more = True
        while more:
            begun = time.perf_counter()
            more = await index.follow(agent_id, embedder.name)
            grown.append((time.perf_counter() - begun) * 1000 / FOLLOWED_AT_ONCE)
        took, cpu = await searches(DocumentIndex(store.chunks, embedder, vector_index=index), agent_id)
        await database.close()
    await embedder.close()
    return [
        Times.of(f"pgvector: one of {count:,} vectors comes into the index", grown[:-1]),
        Times.of(f"pgvector: search of {count:,} chunks, fused", took, aim=FUSED_AIM),
        Times.of("the same, processor time here", cpu),
    ]
