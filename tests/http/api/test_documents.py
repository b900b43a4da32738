"""Documents: sent, read in the background, searched, deleted."""

from pathlib import Path

import httpx
import pytest

from tests.conftest import ONLY_SQLITE
from tests.http.calls import items, new_agent, refusal
from tests.retrieval.files import CONTRACT, make_contract, make_docx
from tests.retrieval.sending import read, search, send, send_and_read


@pytest.fixture
async def agent_id(alice: httpx.AsyncClient) -> str:
    return (await new_agent(alice))["id"]


def files_of(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "data" / "agents").rglob("documents/*") if path.is_file()]


async def test_document_is_read_in_the_background_and_found(alice: httpx.AsyncClient, agent_id: str):
    (document,) = await send(alice, agent_id, **{CONTRACT: make_contract()})
    assert (document["status"], document["fileName"]) == ("processing", CONTRACT)
    document = await read(alice, document)
    assert (document["status"], document["progress"], document["chunkCount"]) == ("ready", 1.0, 3)
    assert document["error"] is None
    best = (await search(alice, agent_id, "合同违约条款是什么？"))[0]
    assert (best["source"], best["page"], best["documentId"]) == (CONTRACT, 2, document["id"])
    assert "违约金" in best["text"]
    assert 0.3 <= best["score"] <= 1
    text = f"/api/agents/{agent_id}/documents/{document['id']}/passages"
    whole = (await alice.get(text)).json()
    assert [it["position"] for it in whole["items"]] == [0, 1, 2] and whole["total"] == 3
    position = int(best["chunkId"].rpartition(":")[2])
    part = (await alice.get(text, params={"fromPosition": position, "limit": 1})).json()["items"]
    assert [(it["chunkId"], it["text"]) for it in part] == [(best["chunkId"], best["text"])]
    assert (await alice.get(text, params={"fromPosition": -1})).status_code == 422


@ONLY_SQLITE
async def test_every_kind_of_file_is_read(alice: httpx.AsyncClient, agent_id: str):
    documents = await send_and_read(
        alice,
        agent_id,
        lease__docx=make_docx(
            [("Rent", "The tenant pays on the first of the month."), ("Pets", "Cats only.")]
        ),
        page__html="<html><head><title>x</title><script>var zebra</script></head>"
        "<body><h2>Opening hours</h2><p>We open at <b>nine</b>.</p></body></html>",
        notes__md="# Recipes\n\nBoil the noodles.\n\n## Soup\n\nAdd ginger.",
        plain__txt="The quick brown fox.",
        people__csv="name,city\nAda,London\n王伟,北京\n",
        latin__txt="Où est la bibliothèque ?".encode("utf-16"),
        chinese__txt="退货政策：七天无理由退货。".encode("gb18030"),
    )
    assert [(it["fileName"], it["error"]) for it in documents if it["status"] != "ready"] == []
    for query, source, heading, text in (
        ("cats", "lease.docx", "Pets", "Cats only."),
        ("two months deposit", "lease.docx", "Pets", "Deposit | two months"),
        ("opening hours", "page.html", "Opening hours", "We open at nine."),
        ("ginger soup", "notes.md", "Soup", "Add ginger."),
        ("brown foxes", "plain.txt", None, "The quick brown fox."),
        ("王伟", "people.csv", None, "name: 王伟; city: 北京"),
        ("bibliotheque", "latin.txt", None, "Où est la bibliothèque ?"),
        ("无理由退货", "chinese.txt", None, "七天无理由退货"),
    ):
        best = (await search(alice, agent_id, query, threshold=0))[0]
        assert (best["source"], best["heading"]) == (source, heading), query
        assert text in best["text"]
    assert await search(alice, agent_id, "zebra") == []


async def test_same_file_again_is_the_same_document(alice: httpx.AsyncClient, agent_id: str, tmp_path: Path):
    first, again, other = await send(
        alice, agent_id, a__txt="same words", b__txt="same words", c__txt="other"
    )
    assert first["id"] == again["id"] != other["id"]
    (later,) = await send_and_read(alice, agent_id, d__txt="same words")
    assert later["id"] == first["id"]
    assert [it["fileName"] for it in await items(alice, f"/api/agents/{agent_id}/documents")] == [
        "c.txt",
        "a.txt",
    ]
    assert {path.name for path in files_of(tmp_path)} == {first["id"], other["id"]}


async def test_deleted_document_is_gone_from_every_index(
    alice: httpx.AsyncClient, agent_id: str, tmp_path: Path
):
    (document,) = await send_and_read(alice, agent_id, **{CONTRACT: make_contract()})
    path = f"/api/agents/{agent_id}/documents/{document['id']}"
    assert (await alice.delete(path)).status_code == 204
    assert await search(alice, agent_id, "合同", threshold=0) == []
    refusal(await alice.get(path), 404, "DOCUMENT_NOT_FOUND")
    refusal(await alice.delete(path), 404, "DOCUMENT_NOT_FOUND")
    assert files_of(tmp_path) == []
    (again,) = await send_and_read(alice, agent_id, **{CONTRACT: make_contract()})
    assert again["id"] != document["id"]
    assert len(await search(alice, agent_id, "合同", threshold=0)) == 3


async def test_failed_document_says_why_and_can_be_retried(alice: httpx.AsyncClient, agent_id: str):
    (document,) = await send_and_read(alice, agent_id, bad__pdf=b"%PDF-1.4 nothing more")
    assert (document["status"], document["progress"]) == ("failed", 0.0)
    assert document["error"] == "The PDF is damaged."
    path = f"/api/agents/{agent_id}/documents/{document['id']}"
    again = await alice.post(f"{path}/retry")
    assert (again.status_code, again.json()["status"], again.json()["error"]) == (202, "processing", None)
    assert (await read(alice, again.json()))["status"] == "failed"


@ONLY_SQLITE
async def test_ready_document_is_not_retried(alice: httpx.AsyncClient, agent_id: str):
    (document,) = await send_and_read(alice, agent_id, a__txt="words")
    path = f"/api/agents/{agent_id}/documents/{document['id']}/retry"
    refusal(await alice.post(path), 409, "ILLEGAL_TRANSITION", "status")


async def test_documents_of_a_public_agent_are_its_owners_alone(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent_id = (await new_agent(alice, visibility="public"))["id"]
    (document,) = await send_and_read(alice, agent_id, a__txt="secret words")
    path = f"/api/agents/{agent_id}/documents"
    for response in (
        await bob.get(path),
        await bob.get(f"{path}/{document['id']}"),
        await bob.delete(f"{path}/{document['id']}"),
        await bob.post(f"{path}/{document['id']}/retry"),
        await bob.post(path, files={"files": ("b.txt", "words")}),
        await bob.get(f"/api/agents/{agent_id}/search", params={"q": "secret"}),
    ):
        refusal(response, 403, "FORBIDDEN")


async def test_agents_do_not_find_each_others_documents(alice: httpx.AsyncClient, agent_id: str):
    other_id = (await new_agent(alice))["id"]
    (document,) = await send_and_read(alice, agent_id, a__txt="elephants in the room")
    await send_and_read(alice, other_id, b__txt="giraffes in the garden")
    assert len(await search(alice, agent_id, "elephants")) == 1
    # Giraffes are near in meaning, so they may be found, once they have been read for it; nothing else is.
    found = await search(alice, other_id, "elephants", threshold=0)
    assert {hit["source"] for hit in found} <= {"b.txt"}
    refusal(await alice.get(f"/api/agents/{other_id}/documents/{document['id']}"), 404, "DOCUMENT_NOT_FOUND")


async def test_search_follows_the_agents_settings_and_the_query(alice: httpx.AsyncClient):
    agent_id = (await new_agent(alice, settings={"retrievalTopK": 2, "retrievalThreshold": 0}))["id"]
    await send_and_read(
        alice, agent_id, **{f"n{number}__txt": f"lighthouse number {number}" for number in range(4)}
    )
    assert len(await search(alice, agent_id, "lighthouse")) == 2
    assert len(await search(alice, agent_id, "lighthouse", topK=3)) == 3
    assert await search(alice, agent_id, "lighthouse", threshold=1) == []
    scores = [hit["score"] for hit in await search(alice, agent_id, "lighthouse", topK=4)]
    assert scores == sorted(scores, reverse=True)


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.txt", b""), ("picture.pdf", b"\x89PNG\r\n\x1a\n\0\0"), ("app.exe", b"MZ"), ("a.txt", b"a\0b")],
)
async def test_file_that_cannot_be_read_is_refused_with_all_that_came_with_it(
    alice: httpx.AsyncClient, agent_id: str, tmp_path: Path, name: str, content: bytes
):
    files = [("files", ("good.txt", b"words")), ("files", (name, content))]
    response = await alice.post(f"/api/agents/{agent_id}/documents", files=files)
    error = refusal(response, 422, "UNSUPPORTED_DOCUMENT", "fileName")
    assert name in error["message"]
    assert await items(alice, f"/api/agents/{agent_id}/documents") == []
    assert files_of(tmp_path) == []


@ONLY_SQLITE
async def test_content_counts_more_than_the_ending(alice: httpx.AsyncClient, agent_id: str):
    (document,) = await send_and_read(alice, agent_id, contract__txt=make_contract())
    assert (document["status"], document["mediaType"]) == ("ready", "application/pdf")


@ONLY_SQLITE
async def test_body_that_is_no_form_is_refused(alice: httpx.AsyncClient, agent_id: str):
    path = f"/api/agents/{agent_id}/documents"
    refusal(await alice.post(path, json={}), 422, "INVALID_REQUEST", "Content-Type")
    refusal(await alice.post(path, files={"field": (None, "no file")}), 422, "INVALID_REQUEST", "files")
    headers = {"Content-Type": "multipart/form-data"}
    refusal(await alice.post(path, content=b"--", headers=headers), 422, "INVALID_REQUEST")
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    refusal(await alice.post(path, content=b"garbage", headers=headers), 422, "INVALID_REQUEST")
    files = [("files", (f"{number}.txt", "words")) for number in range(51)]
    refusal(await alice.post(path, files=files), 422, "INVALID_REQUEST")


@ONLY_SQLITE
async def test_name_of_a_file_is_only_its_last_part(alice: httpx.AsyncClient, agent_id: str, tmp_path: Path):
    for sent in ("../../etc/passwd.txt", "C:\\Users\\me\\passwd.txt"):
        response = await alice.post(
            f"/api/agents/{agent_id}/documents", files={"files": (sent, f"words of {sent}")}
        )
        assert response.json()["items"][0]["fileName"] == "passwd.txt"
    assert len(files_of(tmp_path)) == 2


@ONLY_SQLITE
@pytest.mark.parametrize(
    "body",
    [b"--x\r\n" + b"a" * 2_000_000, b"--x\r\nA: " + b"a" * 2_000_000, b"--x\r\n" + b"A: a\r\n" * 300_000],
    ids=["name", "value", "many"],
)
async def test_headers_of_a_file_that_never_end_are_refused(
    alice: httpx.AsyncClient, agent_id: str, body: bytes
):
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    response = await alice.post(f"/api/agents/{agent_id}/documents", content=body, headers=headers)
    refusal(response, 422, "INVALID_REQUEST")
