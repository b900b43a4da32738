"""How long a search of 100,000 chunks takes."""

import math
import random
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.data import AGENT_COLUMNS, NOW, Batch, Values
from bench.databases import LARGE_DATABASES
from bench.measure import Effort
from bench.table import Aim, Times
from bench.words import words
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.retrieval.embed import bundled_embedder
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.search.terms import terms
from threadkeep.storage.store import open_store
from threadkeep.storage.terms import numbered

WORDS_A_CHUNK = 120
"""About a thousand characters, which is how documents are split."""
CHUNKS_A_BATCH = 5_000
DIMENSIONS = 384
NUMBERS_DRAWN = 200_000
SEARCHES = 200
WARM_UP = 20
WORDS_AIM, FUSED_AIM = Aim("≤", 10, "P95"), Aim("≤", 50, "P95")

DOCUMENT_COLUMNS = """id agent_id file_name media_type size sha256 status progress chunk_count created_at
    updated_at"""


@dataclass(frozen=True, slots=True)
class Chunks:
    """One agent with one large document."""

    agent_id: AgentId
    count: int
    embedder: str

    def batches(self) -> Iterator[Batch]:
        """Everything, in an order that foreign keys allow."""
        owner, document_id = UserId("owner"), new_uuid()
        agent = (self.agent_id, owner, "Measured", "", "assistant", "", "private", "{}", False, 1, NOW, NOW)
        kept = (document_id, self.agent_id, "a.txt", "text/plain", 1, "-", "ready", 1.0, self.count, NOW, NOW)
        yield Batch("tk_users", "id created_at", [(owner, NOW)])
        yield Batch("tk_agents", AGENT_COLUMNS, [agent])
        yield Batch("tk_documents", DOCUMENT_COLUMNS, [kept])
        chance = random.Random(7)
        drawn = [chance.gauss(0, 1) for _ in range(NUMBERS_DRAWN)]
        in_chunks: Counter[str] = Counter()
        term_count = 0
        for first in range(1, self.count + 1, CHUNKS_A_BATCH):
            rows: list[Values] = []
            for id_ in range(first, min(first + CHUNKS_A_BATCH, self.count + 1)):
                text = words(chance, WORDS_A_CHUNK)
                found = terms(text)
                in_chunks.update(set(found))
                term_count += len(found)
                rows.append((id_, document_id, id_, text, len(found), " ".join(numbered(1, found))))
            yield Batch("tk_chunks", "id document_id position text term_count terms", rows)
            vectors = [(row[0], row[0], self.embedder, _vector(chance, drawn)) for row in rows]
            yield Batch("tk_vectors", "chunk_id seq embedder vector", vectors)
        collection = (1, self.agent_id, self.count, term_count)
        yield Batch("tk_collections", "number agent_id chunk_count term_count", [collection])
        counted = [(1, term, count) for term, count in in_chunks.items()]
        yield Batch("tk_terms", "collection term chunks", counted)
        yield Batch("tk_counters", "name value", [("chunks", self.count), ("vectors", self.count)])


def _vector(chance: random.Random, drawn: Sequence[float]) -> bytes:
    """A piece of what was drawn, of length 1. Without numpy, which reads its settings when it is imported."""
    first = chance.randrange(len(drawn) - DIMENSIONS)
    numbers = drawn[first : first + DIMENSIONS]
    length = math.hypot(*numbers)
    return struct.pack(f"<{DIMENSIONS}e", *(number / length for number in numbers))


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """Queries of six words, by words alone and fused with meaning (the query's vector included)."""
    embedder = bundled_embedder()
    assert embedder is not None, "the extra `documents` and the weights are needed"
    lines: list[Times] = []
    for database, loaded in LARGE_DATABASES.items():
        if database not in databases:
            continue
        agent_id = AgentId(new_uuid())
        async with loaded(Chunks(agent_id, effort.chunks, embedder.name)) as url:
            store = await open_store(url)
            for name, index, aim in (
                ("by words", DocumentIndex(store.chunks, None), WORDS_AIM),
                ("fused", DocumentIndex(store.chunks, embedder), FUSED_AIM),
            ):
                took, cpu = await searches(index, agent_id)
                lines.append(
                    Times.of(
                        f"{database}: search of {effort.chunks:,} chunks, {name}",
                        took,
                        aim=aim,
                    )
                )
                lines.append(Times.of("the same, processor time here", cpu))
            await store.close()
    await embedder.close()
    return lines


async def searches(index: DocumentIndex, agent_id: AgentId) -> tuple[list[float], list[float]]:
    """Milliseconds that each search took, and of this process's processor time."""
    chance = random.Random(8)
    took: list[float] = []
    cpu: list[float] = []
    for _ in range(WARM_UP + SEARCHES):
        query = words(chance, 6)
        used, begun = time.process_time(), time.perf_counter()
        await index.search(agent_id, query, top_k=5, threshold=0)
        took.append((time.perf_counter() - begun) * 1000)
        cpu.append((time.process_time() - used) * 1000)
    return took[WARM_UP:], cpu[WARM_UP:]
