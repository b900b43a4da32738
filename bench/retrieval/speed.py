"""How long a search of 100,000 chunks takes, and reading a document of 300 pages."""

import random
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles

from tests.making import NOW, keep_agent, keep_document
from tests.retrieval.files import make_pdf

from threadkeep.domain.document import PDF, Chunk, Document, DocumentStatus
from threadkeep.domain.ids import AgentId, DocumentId, new_uuid
from threadkeep.ports.documents import ExtractedPart, IndexedChunk
from threadkeep.ports.store import Store
from threadkeep.retrieval.embed import BundledEmbedder, bundled_embedder
from threadkeep.retrieval.extractor import ProcessExtractor
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.retrieval.tokens import terms
from threadkeep.storage.store import open_store

CHUNKS = 100_000
WORDS_A_CHUNK = 60
VOCABULARY = 30_000
SEARCHES = 60
PAGES = 300


def _words(random_: random.Random, count: int) -> str:
    """Words as common as in a language: the n-th as often as one through n."""
    return " ".join(f"word{int(VOCABULARY ** random_.random())}" for _ in range(count))


async def _fill(store: Store, agent_id: AgentId, embedder: BundledEmbedder, random_: random.Random) -> None:
    document = await keep_document(store, agent_id, "first", ready=False)
    for first in range(1, CHUNKS, 500):
        texts = [_words(random_, WORDS_A_CHUNK) for _ in range(500)]
        chunks = [IndexedChunk(Chunk(first + n, text), terms(text)) for n, text in enumerate(texts)]
        await store.documents.add_part(document, ExtractedPart(chunks, 0.5), NOW)
    await store.documents.update(agent_id, document.id, lambda it: it.become(DocumentStatus.READY, NOW))
    while waiting := await store.chunks.without_vector(agent_id, embedder.name, limit=2000):
        vectors = [(id_, _vector(random_)) for id_, _ in waiting]
        await store.chunks.add_vectors(embedder.name, vectors)


def _vector(random_: random.Random) -> bytes:
    numbers = [random_.gauss(0, 1) for _ in range(384)]
    length = sum(number * number for number in numbers) ** 0.5
    return struct.pack("<384e", *(number / length for number in numbers))


async def _time(name: str, search: Callable[[], Awaitable[object]]) -> None:
    took: list[float] = []
    for _ in range(SEARCHES):
        begun = time.perf_counter()
        await search()
        took.append((time.perf_counter() - begun) * 1000)
    print(f"| {name} | {median(took):.1f} | {quantiles(took, n=20)[-1]:.1f} |", flush=True)


async def measure() -> None:
    """Prints the times."""
    random_ = random.Random(7)
    embedder = bundled_embedder()
    assert embedder is not None
    print("| what | median ms | p95 ms |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{Path(folder)}/bench.db")
        agent = await keep_agent(store)
        await _fill(store, agent.id, embedder, random_)
        for name, index in (
            ("words", DocumentIndex(store.chunks, None)),
            ("fused", DocumentIndex(store.chunks, embedder)),
        ):
            await index.search(agent.id, "warm up", top_k=5, threshold=0)

            async def search(index: DocumentIndex = index) -> object:
                return await index.search(agent.id, _words(random_, 6), top_k=5, threshold=0)

            await _time(f"{CHUNKS} chunks, {name}", search)
        await _read(store, agent.id, Path(folder))
        await store.close()
    await embedder.close()


async def _read(store: Store, agent_id: AgentId, folder: Path) -> None:
    """A document of 300 pages, from the file to the index by words."""
    random_ = random.Random(8)
    path = folder / "long.pdf"
    path.write_bytes(make_pdf(["\n".join(_words(random_, 12) for _ in range(40)) for _ in range(PAGES)]))
    id_, status = DocumentId(new_uuid()), DocumentStatus.PROCESSING
    document = await store.documents.add(
        Document(id_, agent_id, "long.pdf", PDF, path.stat().st_size, new_uuid(), status, NOW, NOW)
    )
    begun = time.perf_counter()
    count = 0
    async for part in ProcessExtractor().extract(path, PDF):
        await store.documents.add_part(document, part, NOW)
        count += len(part.chunks)
    print(
        f"\n{PAGES} pages, {count} chunks: read and indexed by words in {time.perf_counter() - begun:.1f} s"
    )
