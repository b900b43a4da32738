"""Shares: their owner makes, lists and revokes them; everyone with the link reads them, and nobody else."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from tests.browser.long import seed
from tests.conftest import ONLY_SQLITE, SECRET, Api, secret_key_for
from tests.engine.in_memory import InMemoryTools
from tests.http.api.test_files import DIAGRAM, send, upload
from tests.http.api.test_keys import make as make_key
from tests.http.api.test_keys import using
from tests.http.calls import Json, items, new_agent, new_conversation, refusal, stored
from tests.making import keep_turn
from tests.talking import JSON, Talk, talking
from threadkeep import Settings, create_app
from threadkeep.domain.ids import ShareId, new_uuid
from threadkeep.ports.tools import Returned
from threadkeep.services.sharing import shares
from threadkeep.testing import Gate, Say, ScriptedModel, Status, UseTool, Wait, scripted_settings

UNKNOWN = "A" * 43


async def share(client: httpx.AsyncClient, conversation_id: str, **body: Any) -> Json:
    response = await client.post(f"/api/conversations/{conversation_id}/shares", json=body)
    assert response.status_code == 201, response.text
    return response.json()


async def read(client: httpx.AsyncClient, shared: Json, **query: Any) -> Json:
    response = await client.get(f"/api/shares/{shared['token']}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def texts(view: Json) -> list[str]:
    return [part["text"] for message in view["messages"] for part in message["parts"] if "text" in part]


@pytest.fixture
async def conversation(api: Api, alice: httpx.AsyncClient) -> Json:
    """Alice's conversation of one turn."""
    made = await new_conversation(alice, title="Ferries")
    await keep_turn(api.store, await stored(api, made), "When?", "At noon.")
    return made


@ONLY_SQLITE
async def test_readers_of_replays_take_turns(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, conversation: Json, monkeypatch: pytest.MonkeyPatch
):
    made = await share(alice, conversation["id"], tools=True)
    at_once, most, make = 0, 0, shares.replayed

    async def counted(*of: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return await make(*of)

    monkeypatch.setattr(shares, "replayed", counted)
    path = f"/api/shares/{made['token']}/replays/2"
    for clients, expected in (((bob,) * 4, 1), ((alice, bob) * 4, shares.READ_AT_ONCE)):
        most = 0
        found = await asyncio.gather(*(client.get(path) for client in clients))
        assert all("At noon." in it.text for it in found)
        assert most == expected


async def test_share_is_read_by_its_link_until_it_is_revoked(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient, conversation: Json
):
    made = await share(alice, conversation["id"])
    assert re.fullmatch(r"/s/[\w-]{43}", made["url"]) and made["url"].endswith(made["token"])
    view = await read(bob, made)
    assert view["title"] == "Ferries" and view["messageCount"] == 2 and view["nextCursor"] is None
    assert [(it["number"], it["role"]) for it in view["messages"]] == [(1, "user"), (2, "assistant")]
    assert texts(view) == ["When?", "At noon."]
    for kept in ("alice", conversation["id"], conversation["agentId"], "scripted"):
        assert kept not in str(view)
    path = f"/api/conversations/{conversation['id']}/shares"
    (listed,) = await items(alice, path)
    assert listed == {name: value for name, value in made.items() if name not in {"url", "token"}}
    assert made["token"] not in str(
        await api.store.shares.of_conversation((await stored(api, conversation)).id)
    )
    refusal(await bob.delete(f"/api/shares/{made['id']}"), 404, "SHARE_NOT_FOUND")
    refusal(await alice.delete(f"/api/shares/{made['token']}"), 404, "SHARE_NOT_FOUND")
    assert (await alice.delete(f"/api/shares/{made['id']}")).status_code == 204
    refusal(await bob.get(f"/api/shares/{made['token']}"), 404, "SHARE_NOT_FOUND")
    refusal(await alice.delete(f"/api/shares/{made['id']}"), 404, "SHARE_NOT_FOUND")
    assert await items(alice, path) == []


async def test_what_comes_after_the_snapshot_does_not_show(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient, conversation: Json
):
    path = f"/api/conversations/{conversation['id']}"
    first = (await items(alice, f"{path}/messages"))[0]
    made = await share(alice, conversation["id"])
    only_asked = await share(alice, conversation["id"], messageId=first["id"])
    await keep_turn(api.store, await stored(api, conversation), "And back?", "At six.")
    await alice.patch(path, json={"title": "Ferries and more"})
    for shared, said in ((made, ["When?", "At noon."]), (only_asked, ["When?"])):
        view = await read(bob, shared)
        assert texts(view) == said and view["title"] == "Ferries"
    assert texts(await read(bob, await share(alice, conversation["id"])))[-1] == "At six."


async def test_share_follows_its_branch_not_the_active_path(talk: Talk, model: ScriptedModel):
    model.script([Say("At noon.")], [Say("At one.")], [Say("At six.")])
    id_ = await talk.titled_conversation()
    first = await talk.ask(id_, "When?")
    shared = await share(talk.client, id_)
    path = f"/api/conversations/{id_}"
    second = (
        await talk.client.post(
            f"{path}/regenerate?wait=true", json={}, headers={"Accept": "application/json"}
        )
    ).json()
    await talk.ask(id_, "And back?")
    off_path = await share(talk.client, id_, messageId=first["id"])
    on_path = await share(talk.client, id_, messageId=second["id"])
    whole = await share(talk.client, id_)
    assert texts(await read(talk.client, shared)) == ["When?", "At noon."]
    assert texts(await read(talk.client, off_path)) == ["When?", "At noon."]
    assert texts(await read(talk.client, on_path)) == ["When?", "At one."]
    view = await read(talk.client, whole, limit=1)
    said = texts(view)
    while view["nextCursor"]:
        view = await read(talk.client, whole, limit=1, cursor=view["nextCursor"])
        said += texts(view)
    assert said == ["When?", "At one.", "And back?", "At six."]
    refused = await talk.client.get(f"/api/shares/{shared['token']}", params={"cursor": "AAAA"})
    refusal(refused, 422, "INVALID_REQUEST", "cursor")


async def test_shares_hide_and_return_with_their_conversation(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient, conversation: Json
):
    made = await share(alice, conversation["id"])
    path = f"/api/conversations/{conversation['id']}"
    await alice.delete(path)
    refusal(await bob.get(f"/api/shares/{made['token']}"), 404, "SHARE_NOT_FOUND")
    refusal(await alice.post(f"{path}/shares", json={}), 404, "CONVERSATION_NOT_FOUND")
    await alice.post(f"{path}/restore")
    assert texts(await read(bob, made)) == ["When?", "At noon."]
    await alice.delete(f"{path}?purge=true")
    refusal(await bob.get(f"/api/shares/{made['token']}"), 404, "SHARE_NOT_FOUND")


@ONLY_SQLITE
async def test_guessed_and_expired_links_open_nothing(
    api: Api,
    alice: httpx.AsyncClient,
    bob: httpx.AsyncClient,
    conversation: Json,
    monkeypatch: pytest.MonkeyPatch,
):
    path = f"/api/conversations/{conversation['id']}/shares"
    past = {"expiresAt": "2020-01-01T00:00:00Z"}
    refusal(await alice.post(path, json=past), 422, "INVALID_REQUEST", "expiresAt")
    made = await share(alice, conversation["id"], expiresAt="2999-01-01T00:00:00Z")
    assert (await read(bob, made))["expiresAt"] == "2999-01-01T00:00:00.000Z"
    wrong = "B" if made["token"][0] == "A" else "A"
    for token in (
        UNKNOWN,
        made["token"][:-1],
        made["token"] + "A",
        wrong + made["token"][1:],
        made["id"],
        "%00",
    ):
        refusal(await bob.get(f"/api/shares/{token}"), 404, "SHARE_NOT_FOUND")
        refusal(await bob.get(f"/api/shares/{token}/files/{new_uuid()}"), 404, "SHARE_NOT_FOUND")
    services = await api.app.services()
    monkeypatch.setattr(services.shares, "_clock", lambda: 32_503_680_000_000)  # the year 3000
    refusal(await bob.get(f"/api/shares/{made['token']}"), 404, "SHARE_NOT_FOUND")
    assert len(await items(alice, path)) == 1  # its owner sees that it has expired


@ONLY_SQLITE
async def test_what_is_being_written_or_missing_is_not_shared(talk: Talk, model: ScriptedModel):
    gate = Gate()
    id_ = await talk.titled_conversation()
    path = f"/api/conversations/{id_}/shares"
    refusal(await talk.client.post(path, json={}), 404, "MESSAGE_NOT_FOUND")
    model.script([Wait(gate), Say("At noon.")])
    turn_id = await talk.begin(id_)
    error = refusal(await talk.client.post(path, json={}), 409, "TURN_IN_PROGRESS")
    assert error["details"] == {"turnId": turn_id}
    gate.open()
    await talk.events(turn_id)
    other = await talk.titled_conversation()
    theirs = (await talk.messages(id_))[0]["id"]
    for message_id in (theirs, new_uuid(), "no-uuid"):
        body = {"messageId": message_id}
        refusal(
            await talk.client.post(f"/api/conversations/{other}/shares", json=body), 404, "MESSAGE_NOT_FOUND"
        )


async def test_images_and_tools_are_shared_as_the_owner_chose(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    async def look(arguments: Mapping[str, Any]) -> AsyncGenerator[Returned]:
        yield Returned("ok", "A ferry.")

    tools.add(look=look)
    model.script([UseTool("look", id="t1")], [Say("It shows a ferry.")], [Say("Another.")])
    id_ = await talk.titled_conversation(model="gpt-4o", settings={"tools": {"test.look": {"access": "ask"}}})
    diagram, unshared = await upload(talk.client, ("ferry.png", DIAGRAM), ("notes.txt", b"Mine."))
    paused = (await send(talk, id_, "What is it?", diagram["id"])).json()
    (request,) = paused["approvals"]
    approval = f"/api/turns/{request['turnId']}/approvals/{request['requestId']}"
    await talk.client.post(approval, json={"action": "allow"})
    await talk.events(request["turnId"])
    whole, said = await share(talk.client, id_, tools=True), await share(talk.client, id_)
    await send(talk, id_, "And this?", unshared["id"])
    view = await read(talk.client, whole)
    (call,) = [part for part in view["messages"][1]["parts"] if part["type"] == "tool_call"]
    assert call["result"] == "A ferry." and "approval" not in call
    without = await read(talk.client, said)
    assert "tool_call" not in str(without["messages"])
    assert (view["tools"], without["tools"]) == (True, False)
    replays = f"/api/shares/{whole['token']}/replays"
    replay = await talk.client.get(f"{replays}/2")
    assert replay.headers["cache-control"] == "private, no-store"
    events = replay.json()["events"]
    assert [it["type"] for it in events] == [
        "turn_start", "iteration_start", "tool_call", "tool_result", "iteration_start", "text", "done",
    ]  # fmt: skip
    assert events[3]["result"] == "A ferry." and events[5]["text"] == "It shows a ferry."
    for kept in (request["turnId"], request["requestId"], id_, "gpt-4o"):
        assert kept not in replay.text
    for number in ("1", "3", "0", "-1", "1" * 5000, "two"):
        refusal(await talk.client.get(f"{replays}/{number}"), 404, "MESSAGE_NOT_FOUND")
    refusal(await talk.client.get(f"/api/shares/{said['token']}/replays/2"), 404, "MESSAGE_NOT_FOUND")
    for shared in (whole, said):
        (file,) = [part for part in view["messages"][0]["parts"] if part["type"] == "file"]
        files = f"/api/shares/{shared['token']}/files"
        original = await talk.client.get(f"{files}/{file['fileId']}")
        assert original.content == DIAGRAM and original.headers["cache-control"] == "private, no-store"
        preview = await talk.client.get(f"{files}/{file['fileId']}", params={"preview": True})
        assert preview.headers["content-disposition"] == "inline"
        refusal(await talk.client.get(f"{files}/{unshared['id']}"), 404, "FILE_NOT_FOUND")
        refusal(await talk.client.get(f"{files}/no-uuid"), 404, "FILE_NOT_FOUND")


@ONLY_SQLITE
async def test_replay_ends_as_the_reply_ended_and_names_nothing_else(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    async def look(arguments: Mapping[str, Any]) -> AsyncGenerator[Returned]:
        yield Returned("ok", "A ferry. " * 2000)

    tools.add(look=look)
    id_ = await talk.titled_conversation(settings={"toolResultTokens": 100, "tools": {"*": {}}})
    gate = Gate()
    refused = Status(400, "The account of harbour-gpu-7 is empty.")
    model.script([UseTool("look", id="t1"), Wait(gate)], [refused])
    turn = await talk.begin(id_)
    await gate.reached()
    body = {"content": "Hurry.", "whenBusy": "steer"}
    await talk.client.post(f"/api/conversations/{id_}/messages", json=body, headers=JSON)
    gate.open()
    events = await talk.events(turn)
    (steering,) = [it["message_id"] for it in events if it["type"] == "user_message"]
    assert "harbour-gpu-7" in events[-1]["message"]
    stopping = Gate()
    model.script([Say("At "), Wait(stopping)])
    stopped = await talk.begin(id_)
    await stopping.reached()
    assert (await talk.client.post(f"/api/conversations/{id_}/abort")).is_success
    await talk.events(stopped)
    made = await share(talk.client, id_, tools=True)
    shared = await talk.client.get(f"/api/shares/{made['token']}")
    ends = {it["number"]: it["status"] for it in shared.json()["messages"] if it["role"] == "assistant"}
    assert list(ends.values()) == ["FAILED", "CANCELLED"]
    failed, cancelled = [
        await talk.client.get(f"/api/shares/{made['token']}/replays/{number}") for number in ends
    ]
    assert failed.json()["events"][-1]["type"] == "error"
    assert failed.json()["events"][-1]["code"] == events[-1]["code"]
    assert cancelled.json()["events"][-1]["status"] == "CANCELLED"
    assert "Hurry." in failed.text
    for shown in (shared, failed, cancelled):
        assert steering not in shown.text and "harbour-gpu-7" not in shown.text
        assert '"refs"' not in shown.text


@asynccontextmanager
async def serving(database_url: str, tmp_path: Path, sharing: str) -> AsyncGenerator[Api]:
    settings = Settings.load(
        {},
        data=tmp_path / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        jwt_secret=SECRET,
        gateway="openai",
        embedding_url="off",
        sharing=sharing,
    )
    app = create_app(settings)
    async with app.lifespan():
        yield Api(app, (await app.services()).store, [])


@ONLY_SQLITE
async def test_operator_decides_who_opens_shares(database_url: str, tmp_path: Path):
    async with serving(database_url, tmp_path, "users") as api:
        alice = api.as_user("alice")
        conversation = await new_conversation(alice, title="Ferries")
        await keep_turn(api.store, await stored(api, conversation), "When?", "# Times\n\nAt **noon**.[^1]")
        made = await share(alice, conversation["id"])
        path, page = f"/api/shares/{made['token']}", made["url"]
        refusal(await api.client().get(path), 401, "UNAUTHENTICATED")
        shown = (await api.client().get(page)).text
        assert "Ferries" not in shown and "noon" not in shown
    async with serving(database_url, tmp_path, "anyone") as api:
        assert texts(await read(api.client(), made)) == ["When?", "# Times\n\nAt **noon**.[^1]"]
        refusal(
            await api.client().get(f"/api/conversations/{conversation['id']}/shares"), 401, "UNAUTHENTICATED"
        )
        refusal(await api.client().delete(f"/api/shares/{made['id']}"), 401, "UNAUTHENTICATED")
        shown = (await api.client().get(page)).text
        assert "<title>Ferries</title>" in shown and 'content="When? Times At noon."' in shown
        assert "og:" not in (await api.client().get(f"/s/{UNKNOWN}")).text
    async with serving(database_url, tmp_path, "off") as api:
        alice = api.as_user("alice")
        refusal(await alice.get(path), 404, "SHARE_NOT_FOUND")
        refused = await alice.post(f"/api/conversations/{conversation['id']}/shares", json={})
        refusal(refused, 403, "FORBIDDEN")
        assert (await alice.delete(f"/api/shares/{made['id']}")).status_code == 204


@ONLY_SQLITE
@pytest.mark.parametrize("is_kept", [True, False])
async def test_anonymous_preview_costs_the_same_for_every_share(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
):
    """Also for one of an earlier version, from its second reader on."""
    plain, read_texts = shares.plain_text, list[int]()

    def noting(text: str) -> str:
        read_texts.append(len(text))
        return plain(text)

    monkeypatch.setattr(shares, "plain_text", noting)
    async with serving(database_url, tmp_path, "anyone") as api:
        alice, keeping = api.as_user("alice"), api.store.shares
        conversation = await new_conversation(alice, title="Ferries")
        await keep_turn(api.store, await stored(api, conversation), "When?", "At **noon**. " * 50_000)
        made = await share(alice, conversation["id"])
        assert read_texts == [shares.MOST_PREVIEW_SOURCE]
        if not is_kept:
            await keeping.keep_preview(ShareId(made["id"]), cast("str", None))
            assert 'content="When? At noon.' in (await api.client().get(made["url"])).text
        read_texts.clear()
        monkeypatch.setattr(api.store.messages, "page", None)
        monkeypatch.setattr(keeping, "find", None)
        for _ in range(3):
            assert 'content="When? At noon.' in (await api.client().get(made["url"])).text
        assert not read_texts


@ONLY_SQLITE
async def test_key_shares_within_its_scope_and_agents(api: Api, alice: httpx.AsyncClient, conversation: Json):
    path = f"/api/conversations/{conversation['id']}/shares"
    reader, writer = using(api, await make_key(alice, "read")), using(api, await make_key(alice, "chat"))
    refusal(await reader.post(path, json={}), 403, "FORBIDDEN")
    made = await share(writer, conversation["id"])
    assert texts(await read(reader, made)) == ["When?", "At noon."]
    refusal(await reader.delete(f"/api/shares/{made['id']}"), 403, "FORBIDDEN")
    other = using(api, await make_key(alice, "chat", agents=[(await new_agent(alice))["id"]]))
    refusal(await other.get(path), 404, "CONVERSATION_NOT_FOUND")
    refusal(await other.delete(f"/api/shares/{made['id']}"), 404, "SHARE_NOT_FOUND")
    assert (await writer.delete(f"/api/shares/{made['id']}")).status_code == 204


async def test_conversation_of_ten_thousand_messages_is_shared(tmp_path: Path, model: ScriptedModel):
    (id_,) = seed(tmp_path / "data", 10_000, branches=50)
    async with talking(scripted_settings(model, data=tmp_path / "data", embedding_url="off")) as talk:
        made = await share(talk.client, id_)
        assert made["messageCount"] == 9_900
        view = await read(talk.client, made, limit=200)
        assert [it["number"] for it in view["messages"]] == [*range(1, 201)]
        view = await read(talk.client, made, limit=200, cursor=view["nextCursor"])
        assert view["messages"][-1]["number"] == 400
