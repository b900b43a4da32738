"""Documents get their vectors, whatever the embedding endpoint is up to meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx
import pytest

from tests.making import keep_agent, keep_document
from threadkeep.domain.workspace import Workspaces
from threadkeep.ports.embedder import EmbedderError
from threadkeep.ports.store import Store
from threadkeep.retrieval.embed import EndpointEmbedder
from threadkeep.retrieval.extractor import ProcessExtractor
from threadkeep.services import jobs as jobs_module
from threadkeep.services import system_clock
from threadkeep.services.jobs import Jobs, Next
from threadkeep.services.reading import EMBED_JOB, Reading
from threadkeep.storage.database import Database
from threadkeep.storage.jobs import SqlJobs


class Endpoint:
    """An embedding endpoint that is away until it is said to be back."""

    def __init__(self) -> None:
        self.is_away = True
        self.requests = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.is_away:
            if self.requests % 2:
                raise httpx.ConnectError("refused", request=request)
            return httpx.Response(503, text="later")
        count = len(httpx.Response(200, content=request.content).json()["input"])
        data = [{"index": index, "embedding": [1.0, 0.0]} for index in range(count)]
        return httpx.Response(200, json={"data": data})


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    while not await is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_documents_get_their_vectors_when_the_endpoint_is_back_without_anybody_doing_anything(
    store: Store, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_module, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(jobs_module, "FIRST_PAUSE_MS", 0)
    endpoint = Endpoint()
    embedder = EndpointEmbedder("http://endpoint/v1", None, "m")
    client = httpx.AsyncClient(transport=httpx.MockTransport(endpoint.answer))
    monkeypatch.setattr(embedder, "_client", client)
    agent = await keep_agent(store)
    await keep_document(store, agent.id, *(f"text {number}" for number in range(20)))
    reading = Reading(store, Workspaces(tmp_path), ProcessExtractor(), embedder, system_clock)
    jobs = Jobs(SqlJobs(database), {EMBED_JOB: reading.embed})

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
    reading = Reading(store, Workspaces(tmp_path), ProcessExtractor(), embedder, system_clock)
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "one", "two")
    arguments = {"agent_id": agent.id}
    first = asyncio.create_task(reading.embed(arguments))

    async def has_begun() -> bool:
        return bool(embedder.asked)

    await until(has_begun)
    later = await reading.embed(arguments)
    assert isinstance(later, Next)
    assert (later.kind, later.arguments) == (EMBED_JOB, arguments)
    assert later.delay_ms > 0
    embedder.may_answer.set()
    assert await first is None
    assert embedder.asked == [["one", "two"]]
    assert await reading.embed(arguments) is None
