"""Vectors of large collections in pgvector, which the tests' own PostgreSQL has."""

from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import psycopg
import pytest

from tests.conftest import TEMPLATE
from tests.making import keep_agent, keep_document
from tests.postgres import Postgres, PostgresServer
from tests.retrieval.embedding import DrawnEmbedder, document_jobs_with
from threadkeep.domain.agent import Agent
from threadkeep.jobs import documents as documents_module
from threadkeep.jobs.documents import DocumentJobs
from threadkeep.retrieval import index as index_module
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.documents import vector_index as vector_index_module
from threadkeep.storage.documents.chunk_index import Candidates
from threadkeep.storage.documents.vector_index import PgVector, vector_index_on
from threadkeep.storage.store import Store, open_database, store_on

CHUNKS, SMALL = 120, 3


@cache
def pgvector_runs() -> bool:
    """Whether this processor can run the extension of the tests' server; where it cannot, the server crashes.

    Tried in a server of its own: a crash ends all connections.
    """
    with PostgresServer() as server, psycopg.connect(server.create_database(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE tried (vector halfvec(3))")
        connection.execute("CREATE INDEX ON tried USING hnsw (vector halfvec_ip_ops)")
        try:
            connection.execute("INSERT INTO tried VALUES ('[1,2,3]'), ('[4,5,6]')")
            connection.execute("SELECT vector <#> '[7,8,9]' FROM tried ORDER BY 1")
        except psycopg.OperationalError:
            return False
    return True


@pytest.fixture
def url(postgres: Postgres) -> str:
    """A database whose operator has created the extension."""
    if not pgvector_runs():
        pytest.skip("the pgvector of the tests' server needs instructions that this processor does not have")
    url = postgres.create_database(template=TEMPLATE)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    return url


@pytest.fixture(params=[None, "own"])
async def database(url: str, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """It, with our tables where all are, and in a schema of their own."""
    database = await open_database(url, schema=request.param, pool_size=2)
    yield database
    await database.close()


@pytest.fixture(autouse=True)
def large_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is otherwise a hundred thousand chunks."""
    for module in (documents_module, index_module):
        monkeypatch.setattr(module, "LARGE_COLLECTION", 50)
    monkeypatch.setattr(vector_index_module, "FOLLOWED_AT_ONCE", 32)


async def filled(store: Store, near: PgVector, folder: Path, count: int) -> tuple[Agent, DocumentJobs]:
    agent = await keep_agent(store)
    await keep_document(store, agent.id, *(f"text {number}" for number in range(count)))
    document_jobs = document_jobs_with(DrawnEmbedder(), store, folder, near)
    assert await document_jobs.embed({"agent_id": agent.id}) is None
    return agent, document_jobs


async def asked(store: Store, agent: Agent) -> Candidates:
    found = await store.chunks.candidates(agent.id, ["text"], limit=5)
    assert found
    return found


async def count_of(database: Database) -> int:
    ((count,),) = await database.fetch(Statement("SELECT COUNT(*) FROM tk_near")())
    return count


async def test_large_collection_is_searched_by_the_index_with_the_same_result(
    database: Database, tmp_path: Path
):
    store = await store_on(database)
    near = await vector_index_on(database, store.chunks)
    assert near
    agent, _ = await filled(store, near, tmp_path, CHUNKS)
    await filled(store, near, tmp_path, CHUNKS)  # of somebody else
    embedder = DrawnEmbedder()
    indexed = DocumentIndex(store.chunks, embedder, vector_index=near)
    exact = DocumentIndex(store.chunks, embedder)
    for number in range(20):
        query = f"question {number}"
        hits = [
            (await index.search(agent.id, query, top_k=5, threshold=0)).hits for index in (indexed, exact)
        ]
        assert [hit.chunk_id for hit in hits[0]] == [hit.chunk_id for hit in hits[1]]
        for ours, theirs in zip(*hits, strict=True):
            assert ours.score == pytest.approx(theirs.score, abs=0.001)  # 16 bits, rounded to four digits
    candidates = await asked(store, agent)
    vector = await embedder.embed_query("question")
    found = await near.nearest(candidates.collection, "drawn", vector, limit=3, others=candidates.chunk_ids)
    assert found
    assert set(candidates.chunk_ids) <= set(found)
    assert len(found) <= 3 + len(candidates.chunk_ids)


async def test_index_is_used_for_the_nearest(database: Database, tmp_path: Path):
    store = await store_on(database)
    near = await vector_index_on(database, store.chunks)
    assert near
    agent, _ = await filled(store, near, tmp_path, CHUNKS)
    number = (await asked(store, agent)).collection.number
    rows = await database.fetch(
        Statement("SELECT indexdef FROM pg_indexes WHERE tablename = 'tk_near' AND indexdef LIKE '%hnsw%'")()
    )
    assert [f"collection = {number}" in row[0] for row in rows] == [True]


async def test_small_collection_is_not_taken_over(database: Database, tmp_path: Path):
    store = await store_on(database)
    near = await vector_index_on(database, store.chunks)
    assert near
    agent, document_jobs = await filled(store, near, tmp_path, SMALL)
    assert await count_of(database) == 0
    assert await document_jobs.unembedded() == []
    candidates = await asked(store, agent)
    assert await near.nearest(candidates.collection, "drawn", b"\0\0", limit=3, others=()) is None


async def test_extension_that_comes_later_takes_over_what_is_there_and_chunks_that_go_leave_it(
    database: Database, tmp_path: Path
):
    store = await store_on(database)
    agent = await keep_agent(store)
    document = await keep_document(store, agent.id, *(f"text {number}" for number in range(CHUNKS)))
    before = document_jobs_with(DrawnEmbedder(), store, tmp_path)
    assert await before.embed({"agent_id": agent.id}) is None
    near = await vector_index_on(database, store.chunks)
    assert near
    after = document_jobs_with(DrawnEmbedder(), store, tmp_path, near)
    collection = (await asked(store, agent)).collection
    vector = await DrawnEmbedder().embed_query("question")
    assert await near.nearest(collection, "drawn", vector, limit=3, others=()) is None
    assert await after.unembedded() == [agent.id]
    assert await after.embed({"agent_id": agent.id}) is None
    assert await count_of(database) == CHUNKS
    assert await near.nearest(collection, "drawn", vector, limit=3, others=())
    assert await near.nearest(collection, "another", vector, limit=3, others=()) is None
    while await store.documents.remove_chunks(document, limit=50):
        pass
    assert await count_of(database) == 0
    assert await near.nearest(collection, "drawn", vector, limit=3, others=()) == {}


async def test_without_the_extension_nothing_is_made(postgres: Postgres):
    database = await open_database(postgres.create_database(template=TEMPLATE), pool_size=1)
    try:
        assert await vector_index_on(database, (await store_on(database)).chunks) is None
        tables = await database.fetch(
            Statement("SELECT tablename FROM pg_tables WHERE tablename LIKE 'tk_near%'")()
        )
        assert list(tables) == []
    finally:
        await database.close()
