"""Documents that are hostile or broken, and a worker or an endpoint that fails."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import httpx
import httpx2
import pytest
from starlette.requests import Request

from tests.conftest import ONLY_SQLITE
from tests.making import keep_agent, keep_document
from tests.retrieval.files import (
    make_contract,
    make_encrypted_pdf,
    make_image_pdf,
    make_pdf,
    make_zip_bomb,
)
from tests.retrieval.sending import send_and_read
from tests.talking import talking
from threadkeep import Settings
from threadkeep.clock import system_clock
from threadkeep.domain.document import DOCX, HEAD_BYTES, PDF, TEXT, DocumentStatus, media_type_of
from threadkeep.domain.errors import InvalidRequest, PayloadTooLarge, StorageUnavailable
from threadkeep.domain.workspace import Workspaces
from threadkeep.handling.uploads import UploadedFiles
from threadkeep.jobs.documents import DocumentJobs
from threadkeep.ports.documents import ExtractedPart, ExtractionBroke, ExtractionFailed
from threadkeep.retrieval.embed import EndpointEmbedder
from threadkeep.retrieval.extractor import ProcessExtractor
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.store import Store
from threadkeep.testing import Say, ScriptedModel, closed_port
from threadkeep.testing.waiting import PATIENCE_S

MEGABYTE = 1024 * 1024


async def extracted(path: Path, media_type: str, **limits: float) -> AsyncGenerator[ExtractedPart]:
    """What a process of its own gets out of a file."""
    with path.open("rb") as file:
        async with aclosing(ProcessExtractor(**limits).extract(file, media_type)) as parts:
            async for part in parts:
                yield part


async def pages_of(path: Path, media_type: str) -> list[int | None]:
    """The pages of a file's chunks."""
    return [it.chunk.page async for part in extracted(path, media_type) for it in part.chunks]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (make_encrypted_pdf(), "password-protected"),
        (make_contract()[:400], "damaged"),
        (make_image_pdf(), "images"),
        (make_zip_bomb, "unpacks to 300 MB"),
        (partial(make_zip_bomb, 100, "word/more.xml"), "unpacks to 100 MB"),
        (b"PK\x03\x04 no archive", "isn't a Word document"),
        (b" \n\t ", "no text"),
    ],
    ids=["encrypted", "truncated", "image-only", "zip-bomb", "much-markup", "broken-archive", "blank"],
)
async def test_file_that_cannot_be_read_says_why(
    tmp_path: Path, content: bytes | Callable[[], bytes], reason: str
):
    content = content if isinstance(content, bytes) else content()
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ExtractionFailed, match=reason):
        await pages_of(path, media_type_of("file", content[:HEAD_BYTES]))


async def test_file_for_which_there_is_no_place_is_refused_for_now(alice: httpx.AsyncClient, tmp_path: Path):
    agent_id = (await alice.post("/api/agents", json={"name": "A"})).json()["id"]
    path = f"/api/agents/{agent_id}/documents"
    files = {"files": ("notes.md", b"# Soup")}
    in_the_way = tmp_path / "data" / "agents"
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("not a folder")
    refused = await alice.post(path, files=files)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, StorageUnavailable.code)
    assert (await alice.get(path)).json()["items"] == []
    in_the_way.unlink()
    assert (await alice.post(path, files=files)).status_code == 202


async def test_page_count_that_lies_is_not_believed(tmp_path: Path):
    path = tmp_path / "file.pdf"
    path.write_bytes(make_pdf(["one", "two"], count=5_000_000))
    assert await pages_of(path, PDF) == [1, 2]


async def test_two_thousand_pages_are_read_to_the_last(tmp_path: Path):
    path = tmp_path / "file.pdf"
    path.write_bytes(make_pdf([f"page {number}" for number in range(1, 2001)]))
    assert (await pages_of(path, PDF))[-1] == 2000


async def test_reading_that_takes_too_long_is_ended(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("words")
    with pytest.raises(ExtractionFailed, match="took longer than"):
        async for _ in extracted(path, TEXT, most_s=0.01):
            pass


async def test_file_that_takes_too_much_memory_is_refused(tmp_path: Path):
    path = tmp_path / "file.txt"
    with path.open("wb") as file:
        file.truncate(300 * MEGABYTE)
    with pytest.raises(ExtractionFailed, match="more memory"):
        await pages_of(path, TEXT)


async def test_worker_is_small_and_the_first_to_go_where_memory_runs_out(tmp_path: Path):
    path = tmp_path / "file.pdf"
    path.write_bytes(make_pdf([f"page {number} " * 30 for number in range(2000)]))
    async with aclosing(extracted(path, PDF)) as parts:
        await anext(parts)
        (worker,) = [pid for pid in _children() if b"retrieval.extraction_process" in _command(pid)]
        oom_score_adj, limits = (_shown(worker, name).decode() for name in ("oom_score_adj", "limits"))
    assert oom_score_adj.strip() == "1000"
    assert f"Max address space         {512 * MEGABYTE}" in limits


class KilledWorkers:
    """Reads with real workers, the first of which are killed."""

    def __init__(self, kills: int) -> None:
        self.kills = kills
        self.tries = 0

    async def extract(self, file: BinaryIO, media_type: str) -> AsyncGenerator[ExtractedPart]:
        self.tries += 1
        if self.tries <= self.kills:
            # What the real one says of a worker that somebody killed; see the test below.
            raise ExtractionBroke("The process that read the file ended (SIGKILL).")
        async for part in ProcessExtractor().extract(file, media_type):
            yield part


@ONLY_SQLITE
@pytest.mark.parametrize(("kills", "status"), [(1, "ready"), (2, "failed")])
async def test_file_whose_worker_is_killed_is_tried_once_more(
    store: Store, tmp_path: Path, kills: int, status: str
):
    agent = await keep_agent(store)
    document = await keep_document(store, agent.id, "half of a try that broke off", ready=False)
    files = FolderDocumentFiles(Workspaces(tmp_path))
    await files.keep(agent.id, document.id, BytesIO(b"the whole text"))
    extractor = KilledWorkers(kills)
    document_jobs = DocumentJobs(store, files, extractor, None, system_clock)
    await document_jobs.read({"agent_id": agent.id, "document_id": document.id})
    kept = await store.documents.get(agent.id, document.id)
    assert kept
    assert (kept.status, extractor.tries) == (DocumentStatus(status), 2)
    if status == "ready":
        assert kept.chunk_count == 1
    else:
        assert kept.chunk_count == 0
        assert kept.error == "The process that read the file ended (SIGKILL). Gave up after 2 attempts."


async def test_worker_that_is_killed_is_told_as_such(tmp_path: Path):
    path = tmp_path / "file.pdf"
    path.write_bytes(make_pdf([f"page {number} " * 30 for number in range(2000)]))
    parts = extracted(path, PDF)
    await anext(parts)
    (worker,) = [pid for pid in _children() if b"retrieval.extraction_process" in _command(pid)]
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(ExtractionBroke, match="SIGKILL"):
        async for _ in parts:
            pass


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def _command(pid: int) -> bytes:
    return _shown(pid, "cmdline")


def _shown(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


def upload(parts: AsyncIterator[bytes], **headers: str) -> UploadedFiles:
    """A request that sends these parts."""

    async def receive() -> dict[str, object]:
        part = await anext(parts, None)
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return UploadedFiles(
        Request({"type": "http", "method": "POST", "headers": raw}, receive), 10_000, PATIENCE_S
    )


async def test_upload_that_says_it_is_too_large_is_refused_unread():
    async def parts() -> AsyncGenerator[bytes]:
        raise AssertionError("it was read")
        yield b""

    files = upload(parts(), content_type="multipart/form-data; boundary=x", content_length=str(2**30))
    with pytest.raises(PayloadTooLarge):
        async with files.read():
            pass


async def test_upload_that_grows_too_large_is_refused_on_the_way():
    sent = 0

    async def parts() -> AsyncGenerator[bytes]:
        nonlocal sent
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
        while True:
            sent += 1000
            yield b"a" * 1000

    files = upload(parts(), content_type="multipart/form-data; boundary=x")
    with pytest.raises(PayloadTooLarge):
        async with files.read():
            pass
    assert sent <= 11_000


@pytest.mark.parametrize("says_so", [True, False], ids=["declared", "undeclared"])
async def test_gigabyte_is_refused_early_and_leaves_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says_so: bool
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    settings = Settings.load({}, data=tmp_path / "data", gateway="openai", max_upload_bytes=4 * MEGABYTE)
    async with talking(settings) as talk:
        agent_id = (await talk.client.post("/api/agents", json={"name": "Advisor"})).json()["id"]
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(talk.url).port)
        length = f"Content-Length: {2**30}" if says_so else "Transfer-Encoding: chunked"
        writer.write(
            f"POST /api/agents/{agent_id}/documents HTTP/1.1\r\nHost: localhost\r\n{length}\r\n"
            "Content-Type: multipart/form-data; boundary=x\r\n\r\n".encode()
        )
        if not says_so:
            head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
            for part in (head, *(b"a" * MEGABYTE for _ in range(5))):
                writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                await writer.drain()
        # It is answered while nearly all of the gigabyte is still to come.
        response = await reader.readuntil(b"\r\n\r\n")
        assert response.startswith(b"HTTP/1.1 413 ")
        writer.close()
        await writer.wait_closed()
        assert (await talk.client.get(f"/api/agents/{agent_id}/documents")).json()["items"] == []
        assert [*temporary.iterdir(), *(tmp_path / "data").glob("agents/*/documents/*")] == []
        assert not any(str(temporary) in target for target in _open_files())


def _open_files() -> list[str]:
    """What this process holds open, files without a name included."""
    found: list[str] = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it was the list itself
            found.append(str(link.readlink()))
    return found


async def test_upload_that_breaks_off_is_refused():
    async def parts() -> AsyncGenerator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"'

    with pytest.raises(InvalidRequest):
        async with upload(parts(), content_type="multipart/form-data; boundary=x").read() as found:
            if not found:
                raise InvalidRequest("The request contains no file.")


async def test_search_goes_on_by_words_while_the_embedding_endpoint_is_away(store: Store):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "the harbour is closed", "the airport is open")
    embedder = EndpointEmbedder("http://127.0.0.1:9/v1", "sk-secret", "m")
    found = await DocumentIndex(store.chunks, embedder).search(agent.id, "harbour", top_k=5, threshold=0.1)
    await embedder.close()
    assert [hit.text for hit in found.hits] == ["the harbour is closed"]
    assert found.notice
    assert "keyword only" in found.notice
    assert "sk-secret" not in found.notice


async def test_turn_tells_that_the_embedding_endpoint_is_away_and_goes_on(
    tmp_path: Path, model: ScriptedModel
):
    model.script([Say("Closed. [1]")])
    with closed_port() as url:
        settings = Settings.load(
            {},
            data=tmp_path / "data",
            gateway="openai",
            gateway_url=model.url,
            model="scripted",
            embedding_url=f"{url}/v1",
        )
        async with talking(settings) as talk:
            conversation = await talk.conversation(settings={"retrievalMode": "auto"})
            agent_id = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
            await send_and_read(talk.client, agent_id, news__txt="The harbour is closed.")
            turn_id = await talk.begin(conversation, "Is the harbour open?")
            events = await talk.events(turn_id)
    notices = [event["message"] for event in events if event.get("code") == "RETRIEVAL_DEGRADED"]
    assert notices == ["Searched documents by keyword only: Couldn't connect to the embedding server."]
    assert [hit["text"] for event in events for hit in event.get("hits", ())] == ["The harbour is closed."]
    assert events[-1]["type"] == "done"


@ONLY_SQLITE
async def test_endpoint_that_responds_with_nonsense_is_no_hit(store: Store, monkeypatch: pytest.MonkeyPatch):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "the harbour is closed")
    for response in (
        httpx2.Response(500, text="no"),
        httpx2.Response(200, text="no json"),
        httpx2.Response(200, json={"data": []}),
        httpx2.Response(200, json={"data": [{"index": 0, "embedding": []}]}),
    ):
        embedder = EndpointEmbedder("http://localhost/v1", None, "m")
        transport = httpx2.MockTransport(lambda request, response=response: response)
        monkeypatch.setattr(embedder, "_client", httpx2.AsyncClient(transport=transport))
        found = await DocumentIndex(store.chunks, embedder).search(agent.id, "harbour", top_k=5, threshold=0)
        assert len(found.hits) == 1
        assert found.notice
        await embedder.close()


def test_kinds_are_told_by_content():
    assert media_type_of("a.txt", b"%PDF-1.7") == PDF
    assert media_type_of("a.pdf", b"PK\x03\x04") == DOCX
