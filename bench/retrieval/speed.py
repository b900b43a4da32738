"""How long a search of 100,000 chunks takes."""

import random
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.making import NOW, keep_agent, keep_document

from bench.measure import Effort
from bench.table import Times
from bench.words import words
from threadkeep.domain.document import Chunk, DocumentStatus
from threadkeep.domain.ids import AgentId
from threadkeep.ports.documents import ExtractedPart, IndexedChunk
from threadkeep.ports.store import Store
from threadkeep.retrieval.embed import BundledEmbedder, bundled_embedder
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.retrieval.tokens import terms
from threadkeep.storage.store import open_store

WORDS_A_CHUNK = 60
SEARCHES = 100
WORDS_AIM_MS, FUSED_AIM_MS = 10, 50


async def _fill(
    store: Store, agent_id: AgentId, embedder: BundledEmbedder, chance: random.Random, count: int
) -> None:
    document = await keep_document(store, agent_id, "first", ready=False)
    for first in range(1, count, 500):
        texts = [words(chance, WORDS_A_CHUNK) for _ in range(500)]
        chunks = [IndexedChunk(Chunk(first + n, text), terms(text)) for n, text in enumerate(texts)]
        await store.documents.add_part(document, ExtractedPart(chunks, 0.5), NOW)
    await store.documents.update(agent_id, document.id, lambda it: it.become(DocumentStatus.READY, NOW))
    while waiting := await store.chunks.without_vector(agent_id, embedder.name, limit=2000):
        vectors = [(id_, _vector(chance)) for id_, _ in waiting]
        await store.chunks.add_vectors(embedder.name, vectors)


def _vector(chance: random.Random) -> bytes:
    numbers = [chance.gauss(0, 1) for _ in range(384)]
    length = sum(number * number for number in numbers) ** 0.5
    return struct.pack("<384e", *(number / length for number in numbers))


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """Queries of six words, by words alone and fused with meaning (the query's vector included)."""
    chance = random.Random(7)
    embedder = bundled_embedder()
    assert embedder is not None, "the extra `documents` and the weights are needed"
    lines: list[Times] = []
    with tempfile.TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        store = await open_store(f"sqlite:///{Path(folder)}/bench.db")
        agent = await keep_agent(store)
        await _fill(store, agent.id, embedder, chance, effort.chunks)
        for name, index, aim in (
            ("by words", DocumentIndex(store.chunks, None), WORDS_AIM_MS),
            ("fused", DocumentIndex(store.chunks, embedder), FUSED_AIM_MS),
        ):
            took: list[float] = []
            cpu: list[float] = []
            for _ in range(10 + SEARCHES):
                query = words(chance, 6)
                used, begun = time.process_time(), time.perf_counter()
                await index.search(agent.id, query, top_k=5, threshold=0)
                took.append((time.perf_counter() - begun) * 1000)
                cpu.append((time.process_time() - used) * 1000)
            lines.append(Times(f"search of {effort.chunks:,} chunks, {name}", took[10:], aim=aim))
            lines.append(Times("the same, processor time", cpu[10:]))
        await store.close()
    await embedder.close()
    return lines
