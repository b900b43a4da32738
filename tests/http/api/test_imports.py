"""Users import the exports of other products themselves: followed, stopped, repeated, and refused."""

import asyncio
import json
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.contract.test_import_runs import make_run, make_silent
from tests.files.making import encode, photograph
from tests.http.api.test_keys import make as make_key
from tests.http.api.test_keys import using
from tests.http.calls import Json, items, new_agent, refusal
from tests.imports.foreign import branched, chatgpt, claude, said
from tests.imports.test_own import export_everything
from threadkeep import Settings
from threadkeep.domain.caps import TurnCaps
from threadkeep.imports import user_import as service
from threadkeep.imports.confined import UploadedExports
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.reassignment import make_searchable
from threadkeep.testing import until


def in_json(*conversations: Any) -> bytes:
    return json.dumps(conversations).encode()


def in_zip(**files: bytes) -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return written.getvalue()


def numbered(number: int) -> Json:
    """A conversation of ChatGPT with one question."""
    return chatgpt({"q": (None, said("user", f"Question {number}?"))}, "q", conversation_id=f"c{number}",
                   title=f"Talk {number}")  # fmt: skip


async def begin(client: httpx.AsyncClient, name: str, content: bytes, **query: str) -> httpx.Response:
    return await client.post("/api/imports", files={"files": (name, content)}, params=query)


async def ended(client: httpx.AsyncClient, begun: httpx.Response) -> Json:
    """An import when it has ended."""
    assert begun.status_code == 202, begun.text
    path = f"/api/imports/{begun.json()['id']}"

    async def has_ended() -> bool:
        return (await client.get(path)).json()["status"] != "RUNNING"

    await until(has_ended)
    return (await client.get(path)).json()


async def failure(client: httpx.AsyncClient, content: bytes, name: str = "export.zip") -> str:
    """Why a file isn't imported, however late that turns out."""
    begun = await begin(client, name, content)
    if begun.status_code == 202:
        run = await ended(client, begun)
        assert (run["status"], run["error"]["code"]) == ("FAILED", "UNSUPPORTED_IMPORT")
        assert run["imported"] == 0
        return run["error"]["reason"]
    return refusal(begun, 422, "UNSUPPORTED_IMPORT", "files")["details"]["reason"]


async def test_export_is_imported_once_with_the_chosen_agent_and_can_be_found(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice)
    flawed = chatgpt({}, None, conversation_id="")
    file = in_zip(conversations__json=in_json(branched(), numbered(2), flawed), chat__html=b"<html>")
    run = await ended(alice, await begin(alice, "我的导出.zip", file, agentId=agent["id"]))
    assert (run["status"], run["fileName"], run["agentId"]) == ("COMPLETED", "我的导出.zip", agent["id"])
    assert (run["found"], run["done"], run["size"]) == (3, 3, len(file))
    assert (run["imported"], run["messages"], run["alreadyThere"], run["leftOut"]) == (2, 8, 0, 1)
    (problem,) = run["problems"]
    assert "conversation 3 'Leases'" in problem["what"] and "conversation_id" in problem["why"]
    listed = await items(alice, f"/api/agents/{agent['id']}/conversations")
    assert [it["title"] for it in run["conversations"]] == ["Leases", "Talk 2"]
    assert {it["id"] for it in listed} == {it["id"] for it in run["conversations"]}
    (hit,) = (await alice.get("/api/search", params={"q": "deposit"})).json()["items"]
    assert hit["conversationId"] == run["conversations"][0]["id"]

    again = await ended(alice, await begin(alice, "again.zip", file))
    assert (again["imported"], again["alreadyThere"], again["conversations"]) == (0, 2, [])
    assert [it["fileName"] for it in await items(alice, "/api/imports")] == ["again.zip", "我的导出.zip"]

    theirs = await ended(bob, await begin(bob, "conversations.json", in_json(branched())))
    assert theirs["imported"] == 1 and theirs["conversations"][0]["id"] != run["conversations"][0]["id"]
    refusal(await bob.get(f"/api/imports/{run['id']}"), 404, "IMPORT_NOT_FOUND")
    refusal(await bob.post(f"/api/imports/{run['id']}/stop"), 404, "IMPORT_NOT_FOUND")
    refusal(await begin(bob, "a.json", in_json(claude()), agentId=agent["id"]), 404, "AGENT_NOT_FOUND")


async def test_import_is_followed_and_stopped_and_what_is_imported_stays(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    second, goes_on = asyncio.Event(), asyncio.Event()
    added: list[Any] = []

    async def pausing(*given: Any) -> None:
        added.append(given)
        if len(added) == 2:
            second.set()
            await goes_on.wait()
        await make_searchable(*given)

    monkeypatch.setattr(service, "make_searchable", pausing)
    monkeypatch.setattr("threadkeep.imports.runs.NOTE_EVERY_S", 0.01)
    begun = await begin(alice, "export.json", in_json(*map(numbered, range(5))))
    await second.wait()
    path = f"/api/imports/{begun.json()['id']}"

    async def has_done_one() -> bool:
        return (await alice.get(path)).json()["done"] == 1

    await until(has_done_one)
    now = (await alice.get(path)).json()
    assert (now["status"], now["found"], now["done"], now["imported"]) == ("RUNNING", 5, 1, 1)
    error = refusal(await begin(alice, "b.json", in_json(claude())), 409, "IMPORT_IN_PROGRESS")
    assert error["details"] == {"importId": now["id"]}
    assert (await alice.post(f"{path}/stop")).status_code == 200
    goes_on.set()
    run = await ended(alice, begun)
    assert (run["status"], run["imported"], run["error"]) == ("STOPPED", 2, None)
    assert len(await items(alice, "/api/conversations")) == 2
    rest = await ended(alice, await begin(alice, "export.json", in_json(*map(numbered, range(5)))))
    assert (rest["imported"], rest["alreadyThere"]) == (3, 2)


async def test_import_ends_as_it_did_whatever_fails_around_it(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    runs: Any = (await api.app.services()).import_runs

    async def failing(*_: Any) -> None:
        raise ConnectionError("nobody listens")

    monkeypatch.setattr(runs._user_events, "publish", failing)
    run = await ended(alice, await begin(alice, "a.json", in_json(numbered(1))))
    assert (run["status"], run["imported"]) == ("COMPLETED", 1)


async def test_import_whose_upload_outlasts_the_server_is_refused(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    runs: Any = (await api.app.services()).import_runs
    opening = UploadedExports.open

    def closing(*given: Any) -> Any:
        runs._is_closing = True
        return opening(*given)

    monkeypatch.setattr(UploadedExports, "open", closing)
    refusal(await begin(alice, "a.json", in_json(numbered(1))), 503, "SHUTTING_DOWN")
    (run,) = await items(alice, "/api/imports")
    assert run["status"] == "INTERRUPTED"


async def test_wrong_files_are_named(api: Api, alice: httpx.AsyncClient):
    whole = in_zip(conversations__json=in_json(branched()))
    encrypted = bytearray(whole)
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[whole.index(signature) + at] |= 1
    found = {
        "a PDF": await failure(alice, b"%PDF-1.7\n", "a.pdf"),
        "HTML": await failure(alice, b"<!DOCTYPE html>", "chat.html"),
        "another archive": await failure(alice, in_zip(readme__txt=b"Hello")),
        "another JSON": await failure(alice, b'{"name": "x"}', "package.json"),
        "broken JSON": await failure(alice, b'[{"mapping": {', "conversations.json"),
        "an empty file": await failure(alice, b"", "conversations.json"),
        "an empty list": await failure(alice, b"[]", "conversations.json"),
        "an empty export": await failure(alice, in_zip(conversations__json=b"[]")),
        "a cut archive": await failure(alice, whole[: len(whole) // 2]),
        "a damaged archive": await failure(alice, whole.replace(b"PK\x01\x02", b"PK\x01\x03")),
        "a password": await failure(alice, bytes(encrypted)),
    }
    assert found == {
        "a PDF": "not_an_export",
        "HTML": "not_an_export",
        "another archive": "not_an_export",
        "another JSON": "not_an_export",
        "broken JSON": "not_an_export",
        "an empty file": "not_an_export",
        "an empty list": "empty",
        "an empty export": "empty",
        "a cut archive": "damaged",
        "a damaged archive": "damaged",
        "a password": "encrypted",
    }
    assert await items(alice, "/api/conversations") == []
    two = [("files", ("a.json", b"[]")), ("files", ("b.json", b"[]"))]
    refusal(await alice.post("/api/imports", files=two), 422, "INVALID_REQUEST", "files")
    refusal(await alice.post("/api/imports", content=b"[]"), 422, "INVALID_REQUEST", "Content-Type")


async def test_import_has_limits(api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch):
    runs: Any = (await api.app.services()).import_runs
    bomb = in_zip(conversations__json=b"[" + b" " * 3_000_000 + b"]")
    repetition = in_zip(conversations__json=b'[{"title":"' + b'\\"' * 15_000_000 + b'"}]')
    assert await failure(alice, repetition) == "too_large"
    directory = in_zip(conversations__json=in_json(branched()), **{f"f{n}": b"" for n in range(200)})
    limits = {"unpacked_bytes": 1_000_000, "directory_bytes": 5_000, "conversations": 2}
    for name, most in limits.items():
        object.__setattr__(runs.exports.limits, name, most)
    assert await failure(alice, bomb) == "too_large"
    assert await failure(alice, directory) == "too_large"
    assert await failure(alice, in_json(*map(numbered, range(3)))) == "too_large"
    object.__setattr__(runs.exports.limits, "conversation_bytes", 500)
    long = numbered(1) | {"title": "x" * 600}
    run = await ended(alice, await begin(alice, "a.json", in_json(long, numbered(2))))
    assert (run["imported"], run["problems"][0]["why"]) == (1, "it is larger than 500 bytes")
    assert run["problems"][0]["reason"] == "too_large"
    object.__setattr__(runs.exports.limits, "conversation_bytes", 50_000)
    object.__setattr__(runs.exports.limits, "message_parts", 2)
    run = await ended(alice, await begin(alice, "a.json", in_json(claude(), numbered(3))))
    assert run["problems"][0]["why"] == "one of its messages has more than 2 parts"
    assert (run["imported"], run["problems"][0]["reason"]) == (1, "too_large")
    object.__setattr__(runs.exports.limits, "message_parts", None)
    monkeypatch.setattr(runs, "exports", replace(runs.exports, most_bytes=2_000))
    refusal(await begin(alice, "a.json", b"[" + b" " * 3_000), 413, "PAYLOAD_TOO_LARGE")
    monkeypatch.setattr(runs, "_allowances", LocalAllowances(TurnCaps(uploads_per_minute=1)))
    await ended(alice, await begin(alice, "a.json", in_json(numbered(5))))
    refusal(await begin(alice, "a.json", in_json(numbered(5))), 429, "RATE_LIMITED")


@ONLY_SQLITE
async def test_files_of_an_import_count_like_uploads(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    talk = chatgpt({"q": (None, said("user", pointer, "What is it?"))}, "q")
    house = encode(photograph(64, 48), "PNG")
    file = in_zip(**{"conversations__json": in_json(talk, numbered(2)), "file-1-house.png": house})
    runs: Any = (await api.app.services()).import_runs
    caps = runs._caps
    object.__setattr__(runs.exports.limits, "directory_bytes", 1_000)  # that of the list: files may be larger
    object.__setattr__(caps, "bytes", 2_000)
    run = await ended(alice, await begin(alice, "export.zip", file))
    assert (run["imported"], run["files"], run["leftOut"]) == (1, 0, 1)
    assert "the limit, THREADKEEP_USER_BYTES, is 2 KB." in run["problems"][0]["why"]
    object.__setattr__(caps, "bytes", 0)
    run = await ended(alice, await begin(alice, "export.zip", file))
    assert (run["imported"], run["files"], run["alreadyThere"]) == (1, 1, 1)


@ONLY_SQLITE
async def test_text_of_an_import_counts_with_what_the_user_has(api: Api, alice: httpx.AsyncClient):
    runs: Any = (await api.app.services()).import_runs
    object.__setattr__(runs._caps, "bytes", 26_000)

    def long(number: int) -> Json:
        return chatgpt({"q": (None, said("user", "渡" * 4_000))}, "q", conversation_id=f"c{number}")

    run = await ended(alice, await begin(alice, "a.json", in_json(long(1), long(2), long(3), numbered(4))))
    assert (run["status"], run["imported"], run["leftOut"]) == ("COMPLETED", 3, 1)
    assert "the limit, THREADKEEP_USER_BYTES, is 25.4 KB." in run["problems"][0]["why"]
    assert run["problems"][0]["reason"] == "over_quota"
    run = await ended(alice, await begin(alice, "b.json", in_json(long(5))))  # counted from what is stored
    assert (run["status"], run["imported"], run["error"]["code"]) == ("FAILED", 0, "LIMIT_NOT_ALLOWED")
    assert "the limit, THREADKEEP_USER_BYTES, is 25.4 KB." in run["error"]["message"]
    for it in await items(alice, "/api/conversations"):
        await alice.delete(f"/api/conversations/{it['id']}", params={"purge": True})
    run = await ended(alice, await begin(alice, "b.json", in_json(long(5))))
    assert (run["status"], run["imported"]) == ("COMPLETED", 1)


@ONLY_SQLITE
async def test_own_export_brings_conversations_and_nothing_that_has_rules(
    api: Api, alice: httpx.AsyncClient, tmp_path: Path
):
    elsewhere = Settings.load({}, data=tmp_path / "elsewhere", secret_key="k" * 32)
    await export_everything(elsewhere, tmp_path / "alice.zip")
    agent = await new_agent(alice, name="Imported")
    content = (tmp_path / "alice.zip").read_bytes()
    run = await ended(alice, await begin(alice, "alice.zip", content, agentId=agent["id"]))
    assert (run["status"], run["found"], run["imported"], run["leftOut"]) == ("COMPLETED", 3, 3, 0)
    (default,) = [it for it in await items(alice, "/api/agents") if it["isDefault"]]
    listed = await items(alice, "/api/conversations")
    assert sorted(it["agentId"] for it in listed) == sorted([agent["id"], agent["id"], default["id"]])
    assert len([it for it in await items(alice, "/api/agents") if it["ownerId"] == "alice"]) == 1
    assert await items(alice, f"/api/agents/{agent['id']}/memories") == []
    assert (await alice.get("/api/me/instructions")).json()["text"] == ""
    assert await items(alice, "/api/briefings") == []


async def test_run_of_a_dead_node_is_shown_as_interrupted(api: Api, alice: httpx.AsyncClient):
    run = make_run()
    await api.store.import_runs.begin(run, most=10)
    refusal(await begin(alice, "a.json", in_json(claude())), 409, "IMPORT_IN_PROGRESS")
    await make_silent(api.store, run.id)
    (listed,) = await items(alice, "/api/imports")
    assert (listed["id"], listed["status"]) == (run.id, "INTERRUPTED")
    assert (await ended(alice, await begin(alice, "a.json", in_json(claude()))))["imported"] == 1


async def test_server_that_ends_interrupts_imports(api: Api, alice: httpx.AsyncClient, monkeypatch: Any):
    is_in, goes_on = asyncio.Event(), asyncio.Event()

    async def waiting(*given: Any) -> None:
        is_in.set()
        await goes_on.wait()

    monkeypatch.setattr(service, "make_searchable", waiting)
    begun = await begin(alice, "a.json", in_json(*map(numbered, range(3))))
    await is_in.wait()
    closing = asyncio.create_task((await api.app.services()).import_runs.close())
    await asyncio.sleep(0)
    goes_on.set()
    await closing
    run = await ended(alice, begun)
    assert (run["status"], run["imported"]) == ("INTERRUPTED", 1)
    refusal(await begin(alice, "a.json", in_json(claude())), 503, "SHUTTING_DOWN")


async def test_nothing_is_added_for_a_user_who_was_deleted_meanwhile(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    is_in, goes_on = asyncio.Event(), asyncio.Event()

    async def waiting(*given: Any) -> None:
        is_in.set()
        await goes_on.wait()

    monkeypatch.setattr(service, "make_searchable", waiting)
    await begin(alice, "a.json", in_json(*map(numbered, range(3))))
    await is_in.wait()
    runs: Any = (await api.app.services()).import_runs
    (_, task) = next(iter(runs._running.values()))
    assert (await alice.delete("/api/users/alice")).status_code == 204
    goes_on.set()
    await task
    assert await items(api.as_new_user("alice"), "/api/conversations") == []


async def test_keys_for_chat_import_and_limited_ones_do_not(api: Api, alice: httpx.AsyncClient):
    file = in_json(numbered(1))
    refusal(await begin(using(api, await make_key(alice, "read")), "a.json", file), 403, "FORBIDDEN")
    agent = await new_agent(alice)
    limited = using(api, await make_key(alice, "chat", agents=[agent["id"]]))
    refusal(await begin(limited, "a.json", file, agentId=agent["id"]), 403, "FORBIDDEN")
    refusal(await limited.get("/api/imports"), 403, "FORBIDDEN")
    chat = using(api, await make_key(alice, "chat", "read"))
    assert (await ended(chat, await begin(chat, "a.json", file)))["imported"] == 1
