"""Both databases find the same chunks, in the same order, with the same scores."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bench.retrieval.labelled import CHINESE, ENGLISH

from tests.conftest import TEMPLATE
from tests.making import NOW, keep_agent
from tests.postgres import Postgres
from tests.retrieval.embedding import DrawnEmbedder
from threadkeep.domain.agent import Agent
from threadkeep.domain.document import Chunk, Document, DocumentStatus
from threadkeep.domain.ids import AgentId, DocumentId
from threadkeep.ports.documents import ExtractedPart, IndexedChunk
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.search.terms import terms
from threadkeep.storage.documents import chunk_index
from threadkeep.storage.store import Store, open_store

AGENT = AgentId("00000000-0000-7000-8000-000000000001")
DOCUMENT = DocumentId("00000000-0000-7000-8000-000000000002")
QUERIES = 150


def corpus() -> list[str]:
    """Passages in two languages, and words of which some are in nearly every chunk; many are alike."""
    chance = random.Random(5)
    words = [f"word{number}" for number in range(300)]
    made = [
        " ".join(words[int(300 ** chance.random()) - 1] for _ in range(chance.randrange(5, 30)))
        for _ in range(400)
    ]
    passages = [it.passage for it in (*ENGLISH, *CHINESE)]
    return [*made, *passages, *made[:40], *passages[:5]]


def queries() -> list[str]:
    chance = random.Random(6)
    asked = [question for it in (*ENGLISH, *CHINESE) for question in (it.literal, it.paraphrased)]
    while len(asked) < QUERIES:
        count = chance.choice((1, 1, 2, 3, 6, 12))
        asked.append(" ".join(f"word{int(300 ** chance.random()) - 1}" for _ in range(count)))
    return asked


@asynccontextmanager
async def filled(url: str) -> AsyncGenerator[Store]:
    """The corpus in a database."""
    store = await open_store(url, pool_size=2)
    try:
        agent: Agent = await keep_agent(store, id=AGENT)
        document = Document(
            DOCUMENT, agent.id, "a.txt", "text/plain", 1, "-", DocumentStatus.PROCESSING, NOW, NOW
        )
        await store.documents.add(document)
        chunks = [IndexedChunk(Chunk(position, text), terms(text)) for position, text in enumerate(corpus())]
        await store.documents.add_part(document, ExtractedPart(chunks, 1.0), NOW)
        await store.documents.update(agent.id, DOCUMENT, lambda it: it.become(DocumentStatus.READY, NOW))
        waiting = await store.chunks.without_vector(agent.id, "hashed", limit=len(chunks))
        vectors = await DrawnEmbedder().embed([text for _, text in waiting])
        await store.chunks.add_vectors(
            "hashed", [(id_, vector) for (id_, _), vector in zip(waiting, vectors, strict=True)]
        )
        yield store
    finally:
        await store.close()


async def answers(index: DocumentIndex) -> dict[str, list[tuple[str, float]]]:
    """The ids and scores of what each query finds."""
    return {
        query: [
            (hit.chunk_id, hit.score)
            for hit in (await index.search(AGENT, query, top_k=20, threshold=0)).hits
        ]
        for query in queries()
    }


@pytest.mark.parametrize("embedder", [None, DrawnEmbedder()], ids=["words", "fused"])
async def test_order_and_scores_do_not_depend_on_the_database(
    postgres: Postgres, tmp_path: Path, embedder: DrawnEmbedder | None, monkeypatch: pytest.MonkeyPatch
):
    # So few that all ways of finding candidates are taken: rare terms, some of them, and only common ones.
    monkeypatch.setattr(chunk_index, "MOST_POSTINGS", 100)
    async with (
        filled(f"sqlite:///{tmp_path}/data/threadkeep.db") as sqlite,
        filled(postgres.create_database(template=TEMPLATE)) as other,
    ):
        first, second = [await answers(DocumentIndex(store.chunks, embedder)) for store in (sqlite, other)]
    assert first == second
    assert sum(map(bool, first.values())) > 100
    assert sum(len(found) == 20 for found in first.values()) > 30
