"""Conversations over HTTP."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, items, new_agent, new_conversation, refusal, stored
from tests.http.direct import run_sql
from tests.making import all_messages, keep_turn
from threadkeep.domain.ids import new_uuid

FIELDS = {
    *("id", "agentId", "domainId", "userId", "title", "status", "isMain", "metadata", "activeTurnId"),
    *("pinned", "startedAt", "createdAt", "updatedAt", "lastMessageAt", "messageCount"),
}


async def every_response_for(client: httpx.AsyncClient, path: str) -> list[httpx.Response]:
    """The responses of every route of one conversation but `restore` and purging."""
    return [
        await client.get(path),
        await client.patch(path, json={"title": "x"}),
        await client.delete(path),
        await client.post(f"{path}/session"),
        await client.get(f"{path}/messages"),
        await client.post(f"{path}/messages", json={"content": "x"}),
        await client.get(f"{path}/context"),
    ]


# Making


async def test_conversation_is_created_read_renamed_and_deleted(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    made = await alice.post(f"/api/agents/{agent['id']}/conversations", json={"title": "合同咨询"})
    assert made.status_code == 201
    conversation = made.json()
    assert conversation["domainId"] == conversation["agentId"] == agent["id"]
    path = f"/api/conversations/{conversation['id']}"
    detail = (await alice.get(path)).json()
    assert detail["title"] == "合同咨询"
    assert detail["messages"] == []
    renamed = await alice.patch(path, json={"title": "新"})
    assert renamed.json()["title"] == "新"
    assert renamed.json()["updatedAt"] == conversation["updatedAt"]
    assert (await alice.delete(path)).status_code == 204
    refusal(await alice.get(path), 404, "CONVERSATION_NOT_FOUND")


@pytest.mark.parametrize("noun", ["agents", "domains"])
async def test_new_conversation_has_every_field_and_says_where_it_is(alice: httpx.AsyncClient, noun: str):
    agent = await new_agent(alice)
    metadata = {"项目": "A", "tags": ["x", None, 1.5], "nested": {"deep": True}}
    made = await alice.post(
        f"/api/{noun}/{agent['id']}/conversations", json={"title": " 合同 ", "metadata": metadata}
    )
    conversation = made.json()
    assert conversation.keys() == FIELDS | {"sessionId"}
    assert made.headers["location"] == f"/api/conversations/{conversation['id']}"
    assert conversation["userId"] == "alice"
    assert conversation["title"] == "合同"
    assert conversation["metadata"] == metadata
    assert (conversation["status"], conversation["isMain"]) == ("active", False)
    assert conversation["activeTurnId"] is conversation["lastMessageAt"] is None
    assert conversation["messageCount"] == 0
    assert conversation["startedAt"] == conversation["createdAt"] == conversation["updatedAt"]
    assert len(conversation["sessionId"]) >= 43
    detail = (await alice.get(made.headers["location"])).json()
    assert detail == conversation | {"messages": [], "nextCursor": None, "summary": None, "queued": []}


@ONLY_SQLITE
async def test_conversation_can_be_made_without_a_body(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    conversation = (await alice.post(f"/api/agents/{agent['id']}/conversations")).json()
    assert conversation["title"] is None
    assert conversation["metadata"] == {}


async def test_any_number_of_further_conversations_can_be_made(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    made = await asyncio.gather(*(new_conversation(alice, agent["id"], title="same") for _ in range(20)))
    assert len({it["id"] for it in made}) == len({it["sessionId"] for it in made}) == 20
    assert not any(it["isMain"] for it in made)


async def test_main_conversation_is_made_once_and_found_ever_after(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    made = await alice.put(f"/api/agents/{agent['id']}/conversation")
    assert made.status_code == 201
    assert made.json()["isMain"] is True
    for noun in ("agents", "domains"):
        found = await alice.put(f"/api/{noun}/{agent['id']}/conversation")
        assert found.status_code == 200
        assert found.json() == made.json()
        assert found.headers["location"] == f"/api/conversations/{made.json()['id']}"
    others = await bob.put(f"/api/agents/{agent['id']}/conversation")
    assert others.status_code == 201
    assert others.json()["id"] != made.json()["id"]


@pytest.mark.usefixtures("crowded")
async def test_two_hundred_parallel_gets_or_creates_make_one_conversation(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}/conversation"
    responses = await asyncio.gather(*(alice.put(path) for _ in range(200)))
    assert sorted(response.status_code for response in responses) == [200] * 199 + [201]
    assert len({response.json()["id"] for response in responses}) == 1
    assert len(await items(alice, "/api/conversations")) == 1


async def test_agent_in_single_mode_has_the_main_conversation_only(alice: httpx.AsyncClient):
    agent = await new_agent(alice, settings={"conversationMode": "single"})
    path = f"/api/agents/{agent['id']}/conversations"
    responses = [await alice.post(path, json={"title": f"t{number}"}) for number in range(3)]
    assert [response.status_code for response in responses] == [201, 200, 200]
    assert len({response.json()["id"] for response in responses}) == 1
    assert all(response.json()["isMain"] for response in responses)
    assert (await alice.put(f"/api/agents/{agent['id']}/conversation")).json() == responses[0].json()
    assert len(await items(alice, path)) == 1


async def test_same_idempotency_key_never_creates_a_second_conversation(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}/conversations"
    headers = {"Idempotency-Key": "one"}
    made = await asyncio.gather(*(alice.post(path, json={"title": "T"}, headers=headers) for _ in range(5)))
    assert sorted(it.status_code for it in made) == [200, 200, 200, 200, 201]
    (id_,) = {it.json()["id"] for it in made}
    assert len({it.headers["location"] for it in made}) == 1
    assert len(await items(alice, path)) == 1
    other = await alice.post(path, json={"title": "Another"}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    await alice.patch(f"/api/conversations/{id_}", json={"title": "Renamed"})
    assert (await alice.post(path, json={"title": "T"}, headers=headers)).json()["title"] == "Renamed"
    await alice.delete(f"/api/conversations/{id_}")
    gone = await alice.post(path, json={"title": "T"}, headers=headers)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "CONVERSATION_NOT_FOUND")


@ONLY_SQLITE
async def test_malformed_conversation_is_refused_with_the_field_named(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}/conversations"
    cases: list[tuple[Any, str | None]] = [
        ({"title": ""}, "title"),
        ({"title": " \n\u3000\u200b"}, "title"),
        ({"title": "题" * 201}, "title"),
        ({"title": 1}, "title"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"x": "y" * 16 * 1024}}, "metadata"),
        ({"isMain": True}, "isMain"),
        ({"status": "archived"}, "status"),
        ([], None),
        ("x", None),
    ]
    for body, param in cases:
        refusal(await alice.post(path, json=body), 422, "INVALID_REQUEST", param)
    assert await items(alice, path) == []
    assert (await new_conversation(alice, path.split("/")[3], title="题" * 200))["title"] == "题" * 200


# Listing


async def test_list_is_ordered_by_the_latest_activity(api: Api, alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    old, middle, new = [await new_conversation(alice, agent["id"]) for _ in range(3)]
    later = (await stored(api, new)).updated_at + 10
    await keep_turn(api.store, await stored(api, old), "?", "!", now=later)
    for path in ("/api/conversations", f"/api/agents/{agent['id']}/conversations"):
        listed = await items(alice, path, limit=1)
        assert [it["id"] for it in listed] == [old["id"], new["id"], middle["id"]]
        assert listed[0]["messageCount"] == 2
        assert listed[0]["lastMessageAt"] == listed[0]["updatedAt"] > old["updatedAt"]
        assert all(it.keys() == FIELDS for it in listed)


async def test_list_of_an_agent_has_only_its_own_conversations(alice: httpx.AsyncClient):
    first, second = await new_agent(alice), await new_agent(alice)
    talks = {agent["id"]: await new_conversation(alice, agent["id"]) for agent in (first, second)}
    for agent_id, talk in talks.items():
        for path in (
            f"/api/agents/{agent_id}",
            f"/api/domains/{agent_id}",
            f"/api/agents/{agent_id.upper()}",
        ):
            assert [it["id"] for it in await items(alice, f"{path}/conversations")] == [talk["id"]]
    assert len(await items(alice, "/api/conversations")) == 2


async def test_lists_show_nobody_elses_conversations(alice: httpx.AsyncClient, bob: httpx.AsyncClient):
    agent = await new_agent(alice, visibility="public")
    await new_conversation(alice, agent["id"])
    assert await items(bob, "/api/conversations") == []
    assert await items(bob, f"/api/agents/{agent['id']}/conversations") == []


async def test_list_is_filtered_by_status(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    kept, *put_away = [await new_conversation(alice, agent["id"]) for _ in range(3)]
    for talk in put_away:
        response = await alice.patch(f"/api/conversations/{talk['id']}", json={"status": "archived"})
        assert response.json()["status"] == "archived"
    for path in ("/api/conversations", f"/api/agents/{agent['id']}/conversations"):
        archived = await items(alice, path, status="archived", limit=1)
        assert [it["id"] for it in archived] == [it["id"] for it in reversed(put_away)]
        assert [it["id"] for it in await items(alice, path, status="active")] == [kept["id"]]
        assert len(await items(alice, path)) == 3
        refusal(await alice.get(path, params={"status": "purged"}), 422, "INVALID_REQUEST", "status")
    back = await alice.patch(f"/api/conversations/{kept['id']}", json={"status": "active"})
    assert back.json()["status"] == "active"


async def test_pinned_conversations_can_be_listed_alone_and_keep_their_place(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    talks = [await new_conversation(alice, agent["id"]) for _ in range(4)]
    assert not any(talk["pinned"] for talk in talks)
    pinned, rest = [talks[2], talks[0]], [talks[3], talks[1]]
    for talk in pinned:
        response = await alice.patch(f"/api/conversations/{talk['id']}", json={"pinned": True})
        assert (response.json()["pinned"], response.json()["updatedAt"]) == (True, talk["updatedAt"])
    await alice.patch(f"/api/conversations/{talks[0]['id']}", json={"status": "archived"})
    for path in ("/api/conversations", f"/api/agents/{agent['id']}/conversations"):
        for wanted, expected in (("true", pinned), ("false", rest)):
            listed = await items(alice, path, pinned=wanted, limit=1)
            assert [it["id"] for it in listed] == [it["id"] for it in expected]
        assert [it["id"] for it in await items(alice, path)] == [it["id"] for it in reversed(talks)]
        archived = await items(alice, path, pinned="true", status="archived")
        assert [(it["id"], it["pinned"]) for it in archived] == [(talks[0]["id"], True)]
        refusal(await alice.get(path, params={"pinned": "maybe"}), 422, "INVALID_REQUEST", "pinned")
    assert (await alice.get(f"/api/conversations/{talks[0]['id']}")).json()["pinned"] is True
    await alice.patch(f"/api/conversations/{talks[0]['id']}", json={"pinned": False})
    assert [it["id"] for it in await items(alice, "/api/conversations", pinned="true")] == [talks[2]["id"]]


# The session


@ONLY_SQLITE
async def test_session_id_is_shown_on_create_detail_and_rotation_only(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    path = f"/api/conversations/{conversation['id']}"
    assert (await alice.get(path)).json()["sessionId"] == conversation["sessionId"]
    without = [
        (await alice.patch(path, json={"title": "x"})).json(),
        (await alice.post(f"{path}/restore")).json(),
        *await items(alice, "/api/conversations"),
        *await items(alice, f"/api/agents/{conversation['agentId']}/conversations"),
    ]
    assert all(it.keys() == FIELDS for it in without)


async def test_session_id_can_be_replaced(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice, title="t", metadata={"a": 1})
    path = f"/api/conversations/{conversation['id']}"
    rotated = (await alice.post(f"{path}/session")).json()
    assert rotated["sessionId"] != conversation["sessionId"]
    assert rotated == conversation | {"sessionId": rotated["sessionId"]}
    assert (await alice.get(path)).json()["sessionId"] == rotated["sessionId"]


# Changing


async def test_rename_does_not_move_a_conversation(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    talks = [await new_conversation(alice, agent["id"]) for _ in range(3)]
    for talk in talks:
        changes = {"title": f"new {talk['id']}", "status": "archived", "metadata": {"a": 1}}
        changed = (await alice.patch(f"/api/conversations/{talk['id']}", json=changes)).json()
        assert changed["updatedAt"] == talk["updatedAt"]
        assert {name: changed[name] for name in changes} == changes
    listed = await items(alice, "/api/conversations")
    assert [it["id"] for it in listed] == [talk["id"] for talk in reversed(talks)]


async def test_title_can_be_forgotten(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice, title="mine")
    path = f"/api/conversations/{conversation['id']}"
    assert (await alice.patch(path, json={})).json()["title"] == "mine"
    assert (await alice.patch(path, json={"title": None})).json()["title"] is None
    assert (await alice.get(path)).json()["title"] is None


@ONLY_SQLITE
async def test_malformed_change_is_refused_and_changes_nothing(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice, title="mine", metadata={"a": 1})
    path = f"/api/conversations/{conversation['id']}"
    before = (await alice.get(path)).json()
    cases: list[tuple[Json, str]] = [
        ({"title": ""}, "title"),
        ({"title": "\u200b \n"}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": ["x"]}, "title"),
        ({"status": "deleted"}, "status"),
        ({"status": None}, "status"),
        ({"pinned": None}, "pinned"),
        ({"pinned": "yes"}, "pinned"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"big": "x" * 17_000}}, "metadata"),
        ({"sessionId": "guessable"}, "sessionId"),
        ({"userId": "bob"}, "userId"),
        ({"isMain": True}, "isMain"),
    ]
    for patch, param in cases:
        body: Json = {"metadata": {"b": 2}, "status": "archived"} | patch
        refusal(await alice.patch(path, json=body), 422, "INVALID_REQUEST", param)
    refusal(await alice.patch(path, json=[]), 422, "INVALID_REQUEST")
    assert (await alice.get(path)).json() == before


async def test_metadata_is_merged_and_null_removes(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice, metadata={"a": 1, "b": {"c": 2, "d": 3}, "e": [1]})
    path = f"/api/conversations/{conversation['id']}"

    async def patched(metadata: Any) -> Any:
        response = await alice.patch(path, json={"metadata": metadata})
        assert response.json()["metadata"] == (await alice.get(path)).json()["metadata"]
        return response.json()["metadata"]

    assert await patched({}) == {"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}
    assert await patched({"a": None, "b": {"c": None, "x": "新"}, "e": [2, None]}) == {
        "b": {"d": 3, "x": "新"},
        "e": [2, None],
    }
    assert await patched({"b": "flat", "nothing": None}) == {"b": "flat", "e": [2, None]}
    assert await patched({"b": {"n": {"gone": None}}}) == {"b": {"n": {}}, "e": [2, None]}
    assert await patched(None) == {}


async def test_metadata_has_a_limit_that_patches_cannot_creep_over(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice, metadata={"a": "x" * 8_000})
    path = f"/api/conversations/{conversation['id']}"
    assert (await alice.patch(path, json={"metadata": {"b": "x" * 8_000}})).status_code == 200
    over = await alice.patch(path, json={"metadata": {"c": "x" * 1_000}})
    refusal(over, 422, "INVALID_REQUEST", "metadata")
    assert (await alice.get(path)).json()["metadata"].keys() == {"a", "b"}
    # The bytes of the whole count: `{"a":""}` and 16,376 letters are 16 KB.
    exact = {"metadata": {"b": None, "a": "x" * 16_376}}
    assert (await alice.patch(path, json=exact)).status_code == 200
    refusal(
        await alice.patch(path, json={"metadata": {"a": "题" * 6_000}}), 422, "INVALID_REQUEST", "metadata"
    )


async def test_deeply_nested_metadata_is_kept_or_refused_and_never_unreadable(alice: httpx.AsyncClient):
    agent_id = (await new_agent(alice))["id"]
    path = f"/api/agents/{agent_id}/conversations"
    for opening, closing in (('{"a":', "}"), ("[", "]")):
        for depth in (90, 120, 500, *range(940, 1000, 6), 5_000, 8_000):
            deep = f'{{"metadata":{{"m":{opening * depth}1{closing * depth}}}}}'
            made = await alice.post(path, content=deep)
            assert made.status_code == (201 if depth == 90 else 422), (depth, made.text)
            if depth != 90:
                refusal(made, 422, "INVALID_REQUEST")
                continue
            one = f"/api/conversations/{made.json()['id']}"
            assert (await alice.get(one)).json()["metadata"] == made.json()["metadata"]
            assert (await alice.patch(one, content=deep)).json()["metadata"] == made.json()["metadata"]
    assert len(await items(alice, path)) == 2


async def test_of_many_parallel_changes_none_is_lost(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    path = f"/api/conversations/{conversation['id']}"
    await asyncio.gather(*(alice.patch(path, json={"metadata": {f"k{n}": n}}) for n in range(20)))
    assert (await alice.get(path)).json()["metadata"] == {f"k{n}": n for n in range(20)}


# Deleting, restoring, purging


async def test_deleted_conversation_gives_404_on_every_route(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    path = f"/api/conversations/{conversation['id']}"
    assert (await alice.delete(path)).status_code == 204
    for response in await every_response_for(alice, path):
        refusal(response, 404, "CONVERSATION_NOT_FOUND")
    assert await items(alice, "/api/conversations") == []
    assert await items(alice, f"/api/agents/{conversation['agentId']}/conversations") == []


async def test_deleted_conversations_are_listed_until_they_are_restored_or_purged(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    talks = [await new_conversation(alice, agent["id"], title=f"t{number}") for number in range(4)]
    await alice.patch(f"/api/conversations/{talks[0]['id']}", json={"status": "archived", "pinned": True})
    for talk in (talks[2], talks[0], talks[1]):
        await alice.delete(f"/api/conversations/{talk['id']}")
        await asyncio.sleep(0.002)  # so that no two are deleted at the same moment
    theirs = await new_conversation(bob, agent["id"])
    await bob.delete(f"/api/conversations/{theirs['id']}")
    for path in ("/api/conversations", f"/api/agents/{agent['id']}/conversations"):
        listed = await items(alice, path, status="deleted", limit=1)
        assert [it["title"] for it in listed] == ["t1", "t0", "t2"]
        assert [it["title"] for it in await items(alice, path)] == ["t3"]
    for it in listed:
        assert it.keys() == {*FIELDS, "deletedAt", "purgeAt"}
        assert it["status"] == "deleted"
        kept = datetime.fromisoformat(it["purgeAt"]) - datetime.fromisoformat(it["deletedAt"])
        assert kept == timedelta(days=30)
        for response in await every_response_for(alice, f"/api/conversations/{it['id']}"):
            refusal(response, 404, "CONVERSATION_NOT_FOUND")
    restored = (await alice.post(f"/api/conversations/{talks[0]['id']}/restore")).json()
    assert restored.keys() == FIELDS
    assert (restored["status"], restored["pinned"]) == ("archived", True)
    purged = await alice.delete(f"/api/conversations/{talks[2]['id']}", params={"purge": "true"})
    assert purged.status_code == 204
    left = await items(alice, "/api/conversations", status="deleted")
    assert [it["title"] for it in left] == ["t1"]
    refusal(await alice.post(f"/api/conversations/{talks[2]['id']}/restore"), 404, "CONVERSATION_NOT_FOUND")


async def test_deleted_conversations_with_a_deleted_agent_are_listed(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    path = f"/api/agents/{agent['id']}/conversations"
    talk = await new_conversation(alice, agent["id"])
    await alice.delete(f"/api/conversations/{talk['id']}")
    await alice.delete(f"/api/agents/{agent['id']}")
    assert [it["id"] for it in await items(alice, path, status="deleted")] == [talk["id"]]
    assert [it["id"] for it in await items(alice, "/api/conversations", status="deleted")] == [talk["id"]]
    await alice.delete(f"/api/conversations/{talk['id']}", params={"purge": "true"})
    refusal(await alice.get(path, params={"status": "deleted"}), 404, "AGENT_NOT_FOUND")


async def test_restored_conversation_is_as_it_was(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice, title="t", metadata={"a": 1})
    await keep_turn(api.store, await stored(api, conversation), "谁？", "我。")
    path = f"/api/conversations/{conversation['id']}"
    before = (await alice.get(path)).json()
    await alice.delete(path)
    restored = await alice.post(f"{path}/restore")
    assert restored.status_code == 200
    assert restored.json().keys() == FIELDS
    assert (await alice.get(path)).json() == before
    assert len(before["messages"]) == 2


async def test_restoring_what_is_not_deleted_changes_nothing(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    main = (await alice.put(f"/api/agents/{agent['id']}/conversation")).json()
    path = f"/api/conversations/{main['id']}"
    before = (await alice.get(path)).json()
    assert (await alice.post(f"{path}/restore")).json()["isMain"] is True
    assert (await alice.get(path)).json() == before


async def test_deleting_the_main_conversation_lets_a_new_one_be_made(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}/conversation"
    first = (await alice.put(path)).json()
    await alice.delete(f"/api/conversations/{first['id']}")
    second = await alice.put(path)
    assert second.status_code == 201
    assert second.json()["id"] != first["id"]
    restored = (await alice.post(f"/api/conversations/{first['id']}/restore")).json()
    assert restored["isMain"] is False
    assert (await alice.put(path)).json()["id"] == second.json()["id"]
    assert len(await items(alice, "/api/conversations")) == 2


async def test_main_conversation_restored_before_a_new_one_is_made_is_main_again(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}/conversation"
    main = (await alice.put(path)).json()
    await alice.delete(f"/api/conversations/{main['id']}")
    assert (await alice.post(f"/api/conversations/{main['id']}/restore")).json()["isMain"] is True
    found = await alice.put(path)
    assert (found.status_code, found.json()["id"]) == (200, main["id"])


@pytest.mark.parametrize("deleted_before", [False, True])
async def test_purge_removes_every_row_for_good(
    api: Api, alice: httpx.AsyncClient, database_url: str, deleted_before: bool
):
    conversation = await new_conversation(alice)
    kept = await new_conversation(alice)
    for talk in (conversation, kept):
        await keep_turn(api.store, await stored(api, talk), "?", "!")
    path = f"/api/conversations/{conversation['id']}"
    if deleted_before:
        await alice.delete(path)
    assert (await alice.delete(path, params={"purge": "true"})).status_code == 204
    for response in await every_response_for(alice, path):
        refusal(response, 404, "CONVERSATION_NOT_FOUND")
    refusal(await alice.post(f"{path}/restore"), 404, "CONVERSATION_NOT_FOUND")
    refusal(await alice.delete(path, params={"purge": "true"}), 404, "CONVERSATION_NOT_FOUND")
    for table in ("tk_messages", "tk_turns"):
        rows = run_sql(database_url, f"SELECT DISTINCT conversation_id FROM {table}")
        assert [str(row[0]) for row in rows] == [kept["id"]]


@ONLY_SQLITE
async def test_purge_parameter_must_be_a_truth_value(alice: httpx.AsyncClient):
    path = f"/api/conversations/{(await new_conversation(alice))['id']}"
    for query, param in (("purge=maybe", "purge"), ("purge=", "purge"), ("force=true", "force")):
        refusal(await alice.delete(f"{path}?{query}"), 422, "INVALID_REQUEST", param)
    assert (await alice.delete(f"{path}?purge=false")).status_code == 204
    assert (await alice.post(f"{path}/restore")).status_code == 200


async def test_id_that_is_no_uuid_or_does_not_exist_is_not_found(alice: httpx.AsyncClient):
    for id_ in (new_uuid(), "1", "null", "%00", "..%2f..", "é", "a" * 5_000, "' OR 1=1 --"):
        for response in await every_response_for(alice, f"/api/conversations/{id_}"):
            assert response.status_code == 404, (id_, response.text)
    refusal(await alice.get(f"/api/conversations/{new_uuid()}"), 404, "CONVERSATION_NOT_FOUND")


async def test_ids_are_taken_in_capital_letters_too(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    path = f"/api/conversations/{conversation['id'].upper()}"
    assert (await alice.get(path)).json()["id"] == conversation["id"]
    assert (await alice.patch(path, json={"title": "x"})).json()["id"] == conversation["id"]
    assert (await alice.delete(path)).status_code == 204
    assert (await alice.post(f"{path}/restore")).json()["id"] == conversation["id"]


async def test_conversation_is_created_and_listed_by_its_agent(alice: httpx.AsyncClient):
    agents = [await new_agent(alice) for _ in range(2)]
    body, headers = {"agentId": agents[0]["id"].upper(), "title": "Trip"}, {"Idempotency-Key": "trip"}
    made, again = [await alice.post("/api/conversations", json=body, headers=headers) for _ in range(2)]
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() == again.json()
    assert made.headers["location"] == f"/api/conversations/{made.json()['id']}"
    below = await alice.post(
        f"/api/agents/{agents[0]['id']}/conversations", json={"title": "Trip"}, headers=headers
    )
    assert below.json()["id"] == made.json()["id"], "the same request in its other form"
    other = await new_conversation(alice, agents[1]["id"])
    assert {it["id"] for it in await items(alice, "/api/conversations")} == {made.json()["id"], other["id"]}
    of_one = await items(alice, "/api/conversations", agentId=agents[0]["id"].upper())
    assert [it["id"] for it in of_one] == [made.json()["id"]]
    refusal(await alice.get(f"/api/conversations?agentId={new_uuid()}"), 404, "AGENT_NOT_FOUND")
    refusal(await alice.post("/api/conversations", json={"agentId": new_uuid()}), 404, "AGENT_NOT_FOUND")
    refusal(await alice.post("/api/conversations", json={}), 422, "INVALID_REQUEST", "agentId")


# The detail


@pytest.mark.parametrize("turns", [24, 25, 26, 60])
async def test_detail_has_the_latest_50_and_leads_to_all_older_ones(
    api: Api, alice: httpx.AsyncClient, turns: int
):
    conversation = await new_conversation(alice)
    talk = await stored(api, conversation)
    for number in range(turns):
        talk = await keep_turn(api.store, talk, f"question {number}", f"answer {number}")
    path = f"/api/conversations/{conversation['id']}"
    detail = (await alice.get(path)).json()
    assert detail["messageCount"] == 2 * turns
    seqs = [message["seq"] for message in detail["messages"]]
    assert seqs == list(range(1, 2 * turns + 1))[-50:]
    if turns <= 25:
        assert detail["nextCursor"] is None
        return
    older = await items(alice, f"{path}/messages", cursor=detail["nextCursor"], limit=7)
    whole = older[::-1] + detail["messages"]
    assert [message["seq"] for message in whole] == list(range(1, 2 * turns + 1))
    assert [message["content"] for message in whole[:2]] == ["question 0", "answer 0"]
    expected = [message.id for message in await all_messages(api.store, replace(talk))]
    assert [message["id"] for message in whole] == expected


async def test_purge_of_a_deleted_conversation_spares_one_that_was_restored_meanwhile(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    conversation = await new_conversation(alice, title="Tea")
    path = f"/api/conversations/{conversation['id']}"
    if_deleted = {"purge": "true", "ifDeleted": "true"}
    refusal(await alice.delete(path, params={"ifDeleted": "true"}), 422, "INVALID_REQUEST", "ifDeleted")
    await alice.delete(path)
    await alice.post(f"{path}/restore")  # in another tab, while the question was open
    refusal(await alice.delete(path, params=if_deleted), 412, "PRECONDITION_FAILED")
    assert (await alice.get(path)).json()["title"] == "Tea"
    await alice.delete(path)
    refusal(await bob.delete(path, params=if_deleted), 404, "CONVERSATION_NOT_FOUND")
    assert (await alice.delete(path, params=if_deleted)).status_code == 204
    refusal(await alice.post(f"{path}/restore"), 404, "CONVERSATION_NOT_FOUND")
    refusal(await alice.delete(path, params=if_deleted), 404, "CONVERSATION_NOT_FOUND")
