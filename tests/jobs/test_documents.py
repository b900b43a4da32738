"""Documents get their vectors, whatever the embedding endpoint is up to meanwhile."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from tests.making import ALICE, keep_agent, keep_document
from tests.retrieval.embedding import document_jobs_with
from threadkeep.bootstrap import Runtime, adapters
from threadkeep.domain.user import User
from threadkeep.domain.workspace import Workspaces
from threadkeep.handling.services import Services
from threadkeep.jobs import queue as jobs_module
from threadkeep.jobs.documents import EMBED_JOB, read_job
from threadkeep.jobs.queue import FollowUp, Jobs, RetryLater
from threadkeep.loops import Loops
from threadkeep.ports.embedder import EmbedderError
from threadkeep.retrieval.embed import EndpointEmbedder
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.settings import Settings
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.jobs import SqlJobs
from threadkeep.storage.store import Store
from threadkeep.testing.waiting import until


class Endpoint:
    """An embedding endpoint that is away until it is said to be back."""

    def __init__(self) -> None:
        self.is_away = True
        self.requests = 0

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        if self.is_away:
            if self.requests % 2:
                raise httpx2.ConnectError("refused", request=request)
            return httpx2.Response(503, text="later")
        count = len(httpx2.Response(200, content=request.content).json()["input"])
        data = [{"index": index, "embedding": [1.0, 0.0]} for index in range(count)]
        return httpx2.Response(200, json={"data": data})


async def test_documents_get_their_vectors_when_the_endpoint_is_back_without_anybody_doing_anything(
    store: Store, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_module, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(jobs_module, "FIRST_PAUSE_MS", 0)
    endpoint = Endpoint()
    embedder = EndpointEmbedder("http://endpoint/v1", None, "m")
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(endpoint.respond))
    monkeypatch.setattr(embedder, "_client", client)
    agent = await keep_agent(store)
    await keep_document(store, agent.id, *(f"text {number}" for number in range(20)))
    document_jobs = document_jobs_with(embedder, store, tmp_path)
    jobs = Jobs(SqlJobs(database), {EMBED_JOB: document_jobs.embed}, Loops())

    async def has_tried_for_an_hour() -> bool:
        return endpoint.requests > 30  # with pauses of up to five minutes, more than two

    async def is_known() -> bool:
        return not await store.chunks.without_vector(agent.id, "m", limit=1)

    try:
        await jobs.add(EMBED_JOB, {"agent_id": agent.id})
        await until(has_tried_for_an_hour)
        assert not await is_known()
        endpoint.is_away = False
        await until(is_known)
    finally:
        await jobs.close()
        await embedder.close()
    assert len(await store.chunks.vectors(agent.id, "m", after=0, limit=50)) == 20


class PickyEmbedder:
    """Takes every text but those with a certain word; none while it is away."""

    def __init__(self, name: str = "m") -> None:
        self.name = name
        self.is_away = False
        self.refused: list[str] = []

    def understands(self, text: str) -> bool:
        return True

    async def embed_query(self, query: str) -> bytes:
        return b"\0\x3c\0\0"

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        if self.is_away:
            raise EmbedderError("Couldn't connect to the embedding server.")
        if bad := [text for text in texts if "unspeakable" in text]:
            self.refused += bad
            raise EmbedderError("The embedding server returned status 400.")
        return [await self.embed_query(text) for text in texts]

    async def close(self) -> None:
        pass


async def test_text_that_the_endpoint_always_refuses_is_left_to_its_words_and_holds_up_nobody(
    store: Store, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_module, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(jobs_module, "FIRST_PAUSE_MS", 0)
    agent = await keep_agent(store)
    texts = [f"plain harbour {number}" for number in range(20)]
    await keep_document(store, agent.id, "an unspeakable lighthouse", *texts)
    embedder = PickyEmbedder()
    document_jobs = document_jobs_with(embedder, store, tmp_path)
    jobs = Jobs(SqlJobs(database), {EMBED_JOB: document_jobs.embed}, Loops())

    async def is_done() -> bool:
        return not await document_jobs.unembedded() and not await database.fetch(
            Statement("SELECT 1 FROM tk_jobs")()
        )

    try:
        await jobs.add(EMBED_JOB, {"agent_id": agent.id})
        await until(is_done)
        vectors = await store.chunks.vectors(agent.id, "m", after=0, limit=50)
        assert len(vectors) == len(texts)
        tried = len(embedder.refused)
        await jobs.add(EMBED_JOB, {"agent_id": agent.id})
        await until(is_done)
        assert len(embedder.refused) == tried
    finally:
        await jobs.close()
    # It counts by its words alone, as it would without any vectors, and so passes the usual threshold.
    found = await DocumentIndex(store.chunks, embedder).search(
        agent.id, "lighthouse", top_k=50, threshold=0.3
    )
    assert "an unspeakable lighthouse" in [hit.text for hit in found.hits]
    # Another model may take it.
    other = document_jobs_with(PickyEmbedder("n"), store, tmp_path)
    assert await other.unembedded() == [agent.id]


async def test_endpoint_that_goes_away_has_refused_nobody(store: Store, tmp_path: Path):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "one", "two")
    embedder = PickyEmbedder()
    embedder.is_away = True
    document_jobs = document_jobs_with(embedder, store, tmp_path)
    for _ in range(5):
        with pytest.raises(RetryLater):
            await document_jobs.embed({"agent_id": agent.id})
    embedder.is_away = False
    assert await document_jobs.embed({"agent_id": agent.id}) is None
    assert len(await store.chunks.vectors(agent.id, "m", after=0, limit=5)) == 2


class SizedEmbedder(PickyEmbedder):
    """A model that is exchanged for one with longer vectors, under the same name."""

    size = 2

    async def embed_query(self, query: str) -> bytes:
        return b"\0\x3c" + b"\0\0" * (self.size - 1)


async def test_model_exchanged_behind_its_endpoint_breaks_no_search(store: Store, tmp_path: Path):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "harbour one")
    embedder = SizedEmbedder()
    document_jobs = document_jobs_with(embedder, store, tmp_path)
    assert await document_jobs.embed({"agent_id": agent.id}) is None
    index = DocumentIndex(store.chunks, embedder)
    assert len((await index.search(agent.id, "harbour", top_k=5, threshold=0.3)).hits) == 1
    embedder.size = 4
    await keep_document(store, agent.id, "harbour two", "harbour three")
    assert await document_jobs.embed({"agent_id": agent.id}) is None
    for which in (index, DocumentIndex(store.chunks, embedder)):
        found = await which.search(agent.id, "harbour", top_k=5, threshold=0.3)
        assert {hit.text for hit in found.hits} == {"harbour one", "harbour two", "harbour three"}


async def test_new_model_reads_everything_anew_after_the_start_and_words_find_it_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    settings = Settings.load({}, data=tmp_path / "data", embedding_url="http://endpoint/v1")

    async def started(embedder: PickyEmbedder) -> tuple[Runtime, Services]:
        def build(settings: Settings) -> PickyEmbedder:
            return embedder

        monkeypatch.setattr(adapters, "build_embedder", build)
        runtime = Runtime(settings, is_local=False)
        return runtime, await runtime.services()

    async def is_read(services: Services, name: str) -> bool:
        return len(await services.store.chunks.vectors(agent.id, name, after=0, limit=9)) == 2

    runtime, services = await started(PickyEmbedder("old"))
    agent = await keep_agent(services.store)
    await keep_document(services.store, agent.id, "the harbour is closed", "the airport is open")
    await runtime.close()
    runtime, services = await started(PickyEmbedder("old"))
    await until(lambda: is_read(services, "old"))
    await runtime.close()
    away = PickyEmbedder("new")
    away.is_away = True
    runtime, services = await started(away)
    owner = User(agent.owner_id or ALICE)
    found = await services.documents.search(owner, agent.id, "harbour", top_k=5, threshold=None)
    assert [hit.text for hit in found.hits] == ["the harbour is closed"]
    await runtime.close()
    runtime, services = await started(PickyEmbedder("new"))
    await until(lambda: is_read(services, "new"))
    await runtime.close()


class HeldEmbedder:
    """Answers when it is let."""

    name = "m"

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []
        self.may_answer = asyncio.Event()

    def understands(self, text: str) -> bool:
        return True

    async def embed_query(self, query: str) -> bytes:
        raise EmbedderError("Nobody asks.")

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        self.asked.append(texts)
        await self.may_answer.wait()
        return [b"\0\0" for _ in texts]

    async def close(self) -> None:
        pass


async def test_two_jobs_for_one_agent_do_not_read_the_same_chunks_twice(store: Store, tmp_path: Path):
    embedder = HeldEmbedder()
    document_jobs = document_jobs_with(embedder, store, tmp_path)
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "one", "two")
    arguments = {"agent_id": agent.id}
    first = asyncio.create_task(document_jobs.embed(arguments))

    async def has_begun() -> bool:
        return bool(embedder.asked)

    await until(has_begun)
    later = await document_jobs.embed(arguments)
    assert isinstance(later, FollowUp)
    assert (later.kind, later.arguments) == (EMBED_JOB, arguments)
    assert later.delay_ms > 0
    embedder.may_answer.set()
    assert await first is None
    assert embedder.asked == [["one", "two"]]
    assert await document_jobs.embed(arguments) is None


async def test_vectors_of_one_owners_documents_count_as_that_owners_work(store: Store, tmp_path: Path):
    """Else a thousand agents of one user, each with a document, would hold up another's one."""
    agent = await keep_agent(store)
    document = await keep_document(store, agent.id, "text", ready=False)
    document_jobs = document_jobs_with(PickyEmbedder(), store, tmp_path)
    path = Workspaces(tmp_path).of(agent.id) / "documents" / document.id
    path.parent.mkdir(parents=True)
    path.write_text("text")
    following = await document_jobs.read(read_job(document, agent.owner_id))
    assert following is not None
    assert (following.kind, following.arguments["user_id"]) == (EMBED_JOB, agent.owner_id)
    assert list(await document_jobs.embed_jobs()) == [following.arguments]  # so it is one job and not two
