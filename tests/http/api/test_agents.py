"""Agents over HTTP: who makes, sees, changes and deletes them."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, SECRET, Api
from tests.http.calls import items, new_agent, new_conversation, refusal
from tests.http.direct import run_sql
from threadkeep import Settings, create_app
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.workspace import AGENTS

DEFAULT_SETTINGS: dict[str, Any] = {
    "retrievalTopK": 5,
    "retrievalThreshold": 0.3,
    "retrievalMode": "tool",
    "contextMessages": 20,
    "contextThoughts": False,
    "maxMessageChars": 10000,
    "maxIterations": 12,
    "generationTimeoutS": 300,
    "conversationMode": "multiple",
    "compactionThreshold": 40,
    "autoCompact": False,
    "temperature": None,
    "maxTokens": None,
    "toolResultTokens": 32_000,
    "mcpServers": {},
    "onCrash": "continue",
    "approvalTimeoutS": 604_800,
    "askUser": False,
    "clientTools": True,
    "userInstructions": True,
    "deleteAfterDays": 0,
    "tools": {},
    "models": [],
    "fallbackModels": [],
    "budgetMonth": "0.00",
    "starters": [],
    "icon": "letter",
    "color": "auto",
    "agents": [],
    "output": None,
}
WHOLE: dict[str, Any] = {
    "name": "法律顾问",
    "description": "懂合同",
    "primaryRoleId": "lawyer",
    "systemPrompt": "Be brief. 要简短。",
    "model": "some-model",
    "visibility": "public",
    "settings": {
        "retrievalTopK": 7,
        "retrievalThreshold": 0.5,
        "retrievalMode": "auto",
        "contextMessages": 0,
        "contextThoughts": True,
        "maxMessageChars": 0,
        "maxIterations": 3,
        "generationTimeoutS": 1.5,
        "conversationMode": "single",
        "compactionThreshold": 10,
        "autoCompact": True,
        "temperature": 0.7,
        "maxTokens": 500,
        "toolResultTokens": 9_000,
        "mcpServers": {},
        "onCrash": "interrupt",
        "approvalTimeoutS": 0,
        "askUser": True,
        "clientTools": False,
        "userInstructions": False,
        "deleteAfterDays": 45,
        "tools": {
            "*": {"access": "ask"},
            "web.*": {"effect": "idempotent"},
            "web.search.v2": {"access": "allow", "effect": "read"},
        },
        "models": ["other-model", "*"],
        "fallbackModels": ["third-model", "other-model"],
        "budgetMonth": "12.50",
        "starters": ["违约金是多少？", "Compare two contracts"],
        "icon": "scale",
        "color": "violet",
        "agents": [],
        "output": {"type": "object"},
    },
}
SHOWN_TO_ALL = {
    "id", "name", "description", "starters", "icon", "color", "ownerId", "visibility", "isDefault",
    "createdAt", "updatedAt", "engine", "readOnly",
}  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def admin(api: Api) -> httpx.AsyncClient:
    return api.as_user("root", admin=True)


async def default_agent(client: httpx.AsyncClient) -> dict[str, Any]:
    (agent,) = (agent for agent in await items(client, "/api/agents") if agent["isDefault"])
    return agent


# Making and reading


@pytest.mark.parametrize("noun", ["agents", "domains"])
async def test_agent_is_made_and_read_back_with_every_field(alice: httpx.AsyncClient, noun: str):
    made = await alice.post(f"/api/{noun}", json=WHOLE)
    assert made.status_code == 201
    agent = made.json()
    assert {name: agent[name] for name in WHOLE} == WHOLE
    assert agent["ownerId"] == "alice"
    assert agent["isDefault"] is False
    assert agent["version"] == 1
    assert agent["id"][14] == "7"
    assert TIME.fullmatch(agent["createdAt"])
    assert agent["updatedAt"] == agent["createdAt"]
    for path in (f"/api/agents/{agent['id']}", f"/api/domains/{agent['id'].upper()}"):
        read = await alice.get(path)
        assert read.status_code == 200
        assert read.json() == agent
        assert read.headers["etag"] == made.headers["etag"] == '"1"'


@ONLY_SQLITE
async def test_agent_needs_only_a_name(alice: httpx.AsyncClient):
    agent = (await alice.post("/api/agents", json={"name": "  顾问 "})).json()
    assert agent["name"] == "顾问"
    assert agent["description"] == agent["systemPrompt"] == ""
    assert agent["primaryRoleId"] == "assistant"
    assert agent["model"] is None
    assert agent["visibility"] == "private"
    assert agent["settings"] == DEFAULT_SETTINGS


@ONLY_SQLITE
async def test_malformed_agent_is_refused_with_the_field_named(alice: httpx.AsyncClient):
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": " \n\u3000\u200b"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": None}, "name"),
        ({"name": 1}, "name"),
        ({"name": "x", "description": "x" * 2001}, "description"),
        ({"name": "x", "settings": {"starters": ["x"] * 7}}, "settings.starters"),
        ({"name": "x", "settings": {"starters": [" "]}}, "settings.starters"),
        ({"name": "x", "settings": {"icon": "dragon"}}, "settings.icon"),
        ({"name": "x", "settings": {"color": "#ff0000"}}, "settings.color"),
        ({"name": "x", "systemPrompt": "x" * 100_001}, "systemPrompt"),
        ({"name": "x", "primaryRoleId": " "}, "primaryRoleId"),
        ({"name": "x", "model": ""}, "model"),
        ({"name": "x", "visibility": "secret"}, "visibility"),
        ({"name": "x", "ownerId": "bob"}, "ownerId"),
        ({"name": "x", "isDefault": True}, "isDefault"),
        ({"name": "x", "settings": []}, "settings"),
        ({"name": "x", "settings": {"foo": 1}}, "settings.foo"),
        ({"name": "x", "settings": {"retrievalTopK": 0}}, "settings.retrievalTopK"),
        ({"name": "x", "settings": {"retrievalThreshold": 1.1}}, "settings.retrievalThreshold"),
        ({"name": "x", "settings": {"retrievalMode": "never"}}, "settings.retrievalMode"),
        ({"name": "x", "settings": {"contextMessages": -1}}, "settings.contextMessages"),
        ({"name": "x", "settings": {"contextThoughts": 1}}, "settings.contextThoughts"),
        ({"name": "x", "settings": {"temperature": "hot"}}, "settings.temperature"),
        ({"name": "x", "settings": {"maxTokens": 0}}, "settings.maxTokens"),
        ({"name": "x", "settings": {"onCrash": "cry"}}, "settings.onCrash"),
        ({"name": "x", "settings": {"approvalTimeoutS": -1}}, "settings.approvalTimeoutS"),
        ({"name": "x", "settings": {"askUser": "yes"}}, "settings.askUser"),
    ]
    for body, param in cases:
        refusal(await alice.post("/api/agents", json=body), 422, "INVALID_REQUEST", param)
    assert [agent["name"] for agent in await items(alice, "/api/agents")] == ["Assistant"]


async def test_list_shows_own_and_public_agents_oldest_first(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, admin: httpx.AsyncClient
):
    own = await new_agent(alice, name="own")
    await new_agent(bob, name="bob's secret")
    public = await new_agent(bob, name="public", visibility="public")
    deleted = await new_agent(alice, name="deleted")
    await alice.delete(f"/api/agents/{deleted['id']}")
    for noun in ("agents", "domains"):
        listed = await items(alice, f"/api/{noun}")
        assert [agent["name"] for agent in listed] == ["Assistant", "own", "public"]
    assert listed[1] == {name: value for name, value in own.items() if name != "mcpServers"}
    assert listed[2] == {name: public[name] for name in SHOWN_TO_ALL}
    assert [agent["name"] for agent in await items(admin, "/api/agents")] == ["Assistant", "public"]


# Who sees what


async def test_others_see_name_description_and_owner_of_a_public_agent_only(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, **WHOLE)
    seen = await bob.get(f"/api/agents/{agent['id']}")
    assert seen.json() == {name: agent[name] for name in SHOWN_TO_ALL}
    assert "brief" not in seen.text


@pytest.mark.parametrize(("noun", "code"), [("agents", "AGENT_NOT_FOUND"), ("domains", "DOMAIN_NOT_FOUND")])
async def test_private_agent_does_not_exist_for_others(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, noun: str, code: str
):
    agent = await new_agent(alice)
    for agent_id in (agent["id"], new_uuid(), "no-uuid"):
        path = f"/api/{noun}/{agent_id}"
        refusal(await bob.get(path), 404, code)
        refusal(await bob.patch(path, json={"name": "mine"}), 404, code)
        refusal(await bob.delete(path), 404, code)
        refusal(await bob.post(f"{path}/conversations", json={}), 404, code)
        refusal(await bob.get(f"{path}/conversations"), 404, code)
        refusal(await bob.put(f"{path}/conversation"), 404, code)
    assert (await alice.get(f"/api/agents/{agent['id']}")).json() == agent


async def test_admin_reads_changes_and_deletes_any_agent(alice: httpx.AsyncClient, admin: httpx.AsyncClient):
    agent = await new_agent(alice, systemPrompt="Be brief.")
    path = f"/api/agents/{agent['id']}"
    assert (await admin.get(path)).json() == agent
    changed = (await admin.patch(path, json={"name": "New"})).json()
    assert changed["name"] == "New"
    assert changed["ownerId"] == "alice"
    assert (await admin.delete(path)).status_code == 204
    refusal(await alice.get(path), 404, "AGENT_NOT_FOUND")


async def test_public_agent_is_changed_and_deleted_by_its_owner_only(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    path = f"/api/agents/{agent['id']}"
    refusal(await bob.patch(path, json={"name": "mine"}), 403, "FORBIDDEN")
    refusal(await bob.patch(path, json={"settings": {"foo": 1}}), 403, "FORBIDDEN")
    refusal(await bob.patch(path, json={}, headers={"If-Match": '"7"'}), 403, "FORBIDDEN")
    refusal(await bob.delete(path), 403, "FORBIDDEN")
    assert (await alice.get(path)).json() == agent


# Changing


async def test_patch_changes_what_it_names_and_nothing_else(alice: httpx.AsyncClient):
    agent = await new_agent(alice, **WHOLE)
    patched = await alice.patch(
        f"/api/domains/{agent['id']}", json={"name": " New ", "settings": {"maxTokens": 9}}
    )
    assert patched.status_code == 200
    expected = WHOLE | {"name": "New", "settings": WHOLE["settings"] | {"maxTokens": 9}}
    assert {name: patched.json()[name] for name in WHOLE} == expected
    assert patched.json()["version"] == 2
    assert patched.headers["etag"] == '"2"'
    assert patched.json()["updatedAt"] >= agent["updatedAt"]
    assert (await alice.get(f"/api/agents/{agent['id']}")).json() == patched.json()


@ONLY_SQLITE
async def test_null_in_a_patch_brings_the_default_back(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice, **WHOLE))['id']}"
    patched = (
        await alice.patch(path, json={"settings": {"maxTokens": None, "maxMessageChars": None}})
    ).json()
    assert patched["settings"] == WHOLE["settings"] | {"maxTokens": None, "maxMessageChars": 10_000}
    nulls = dict.fromkeys(["description", "primaryRoleId", "systemPrompt", "model", "visibility", "settings"])
    patched = (await alice.patch(path, json=nulls)).json()
    assert patched["name"] == WHOLE["name"]
    assert patched["description"] == patched["systemPrompt"] == ""
    assert patched["primaryRoleId"] == "assistant"
    assert patched["model"] is None
    assert patched["visibility"] == "private"
    assert patched["settings"] == DEFAULT_SETTINGS


@ONLY_SQLITE
async def test_patch_changes_and_removes_rules_for_tools(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice, **WHOLE))['id']}"

    async def patched(rules: Any) -> Any:
        return (await alice.patch(path, json={"settings": {"tools": rules}})).json()["settings"]["tools"]

    assert await patched({"*": None, "web.*": {"access": "deny"}}) == {
        "web.*": {"access": "deny", "effect": "idempotent"},
        "web.search.v2": {"access": "allow", "effect": "read"},
    }
    # A rule that says nothing any more is none.
    assert await patched({"web.*": {"access": None}, "web.search.v2": {"access": None, "effect": None}}) == {
        "web.*": {"effect": "idempotent"}
    }
    assert await patched(None) == {}


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("rules", "param"),
    [
        ([], "settings.tools"),
        ({"web": {"access": "ask"}}, "settings.tools.web"),
        ({"web.": {"access": "ask"}}, "settings.tools.web."),
        ({".search": {"access": "ask"}}, "settings.tools..search"),
        ({"*.search": {"access": "ask"}}, "settings.tools.*.search"),
        ({"web." + "x" * 129: {"access": "ask"}}, "settings.tools.web." + "x" * 124),
        ({"web.search": "ask"}, "settings.tools.web.search"),
        ({"web.search": {"access": "maybe"}}, "settings.tools.web.search.access"),
        ({"web.search": {"effect": "explode"}}, "settings.tools.web.search.effect"),
        ({"web.search": {"unknown": 1}}, "settings.tools.web.search.unknown"),
        ({f"web.tool{number}": {"access": "ask"} for number in range(501)}, "settings.tools"),
    ],
)
async def test_malformed_rule_for_tools_is_refused_and_named(
    alice: httpx.AsyncClient, rules: Any, param: str
):
    made = await alice.post("/api/agents", json={"name": "x", "settings": {"tools": rules}})
    refusal(made, 422, "INVALID_REQUEST", param)
    path = f"/api/agents/{(await new_agent(alice))['id']}"
    refusal(await alice.patch(path, json={"settings": {"tools": rules}}), 422, "INVALID_REQUEST", param)


@ONLY_SQLITE
async def test_bad_entry_in_a_patch_changes_nothing(alice: httpx.AsyncClient, admin: httpx.AsyncClient):
    agent = await new_agent(alice, **WHOLE)
    path = f"/api/agents/{agent['id']}"
    good: dict[str, Any] = {"name": "New", "description": "new", "settings": {"maxTokens": 9}}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": None}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"visibility": "secret"}, "visibility"),
        ({"foo": 1}, "foo"),
        ({"id": new_uuid()}, "id"),
        ({"settings": "none"}, "settings"),
        ({"settings": {"foo": 1}}, "settings.foo"),
        ({"settings": {"foo": {"bar": 1}}}, "settings.foo"),
        ({"settings": {"contextMessages": -1}}, "settings.contextMessages"),
        ({"settings": {"contextMessages": {"a": 1}}}, "settings.contextMessages"),
        ({"settings": {"temperature": 2.1}}, "settings.temperature"),
    ]
    for bad, param in cases:
        patch = good | bad
        if isinstance(bad.get("settings"), dict):
            patch["settings"] = good["settings"] | bad["settings"]
        refusal(await alice.patch(path, json=patch), 422, "INVALID_REQUEST", param)
    read = await alice.get(path)
    assert read.json() == agent
    assert read.headers["etag"] == '"1"'
    assert [entry["action"] for entry in await items(admin, "/api/admin/audit")] == ["create"]


async def test_if_match_lets_only_the_version_that_was_read_be_changed(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}"
    etag = (await alice.get(path)).headers["etag"]
    first = await alice.patch(path, json={"name": "first"}, headers={"If-Match": etag})
    assert first.status_code == 200
    second = await alice.patch(path, json={"name": "second"}, headers={"If-Match": etag})
    assert refusal(second, 412, "PRECONDITION_FAILED")["details"] == {"version": 2}
    assert (await alice.get(path)).json()["name"] == "first"
    third = await alice.patch(path, json={"name": "third"}, headers={"If-Match": first.headers["etag"]})
    assert third.json()["name"] == "third"
    fourth = await alice.patch(path, json={"name": "fourth"}, headers={"If-Match": "*"})
    assert fourth.json()["version"] == 4


@ONLY_SQLITE
async def test_if_match_that_is_no_etag_of_ours_is_refused(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}"
    for tag in ("garbage", "", '"', '"-1"', '"1.5"', '"\u00b2"', "1e3", f'"{"9" * 5000}"'):
        headers = [(b"If-Match", tag.encode("latin-1"))]
        response = await alice.patch(path, json={"name": "new"}, headers=headers)
        refusal(response, 422, "INVALID_REQUEST", "If-Match")
    assert (await alice.get(path)).json()["version"] == 1


async def test_of_many_changes_to_one_version_exactly_one_wins(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}"
    responses = await asyncio.gather(
        *(alice.patch(path, json={"name": f"n{n}"}, headers={"If-Match": '"1"'}) for n in range(20))
    )
    (winner,) = (response for response in responses if response.status_code == 200)
    assert sum(response.status_code == 412 for response in responses) == 19
    assert (await alice.get(path)).json() == winner.json()


async def test_of_many_changes_to_different_fields_none_is_lost(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}"
    changes = {"retrievalTopK": 9, "contextMessages": 8, "maxIterations": 7, "maxTokens": 6}
    await asyncio.gather(
        *(alice.patch(path, json={"settings": {name: value}}) for name, value in changes.items())
    )
    agent = (await alice.get(path)).json()
    assert agent["settings"] == DEFAULT_SETTINGS | changes
    assert agent["version"] == 5


# The default agent


@ONLY_SQLITE
async def test_default_agent_is_public_and_without_a_limit_on_length(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient
):
    agent = await default_agent(alice)
    assert agent["name"] == "Assistant"
    assert agent["visibility"] == "public"
    whole = (await admin.get(f"/api/agents/{agent['id']}")).json()
    assert whole["ownerId"] is None
    assert whole["settings"] == DEFAULT_SETTINGS | {"maxMessageChars": 0}


async def test_public_agent_cannot_pass_for_the_default_one(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient
):
    for name in (
        "Assistant",
        "assistant",
        " ASSISTANT ",
        "Ａｓｓｉｓｔａｎｔ",
        "Assi\u200bstant",
        "Assistant!",
    ):
        body = {"name": name, "visibility": "public"}
        for client in (alice, admin):
            refusal(await client.post("/api/agents", json=body), 422, "INVALID_REQUEST", "name")
    own = await new_agent(alice, name="Assistant")
    path = f"/api/agents/{own['id']}"
    refusal(await alice.patch(path, json={"visibility": "public"}), 422, "INVALID_REQUEST", "name")
    assert (await alice.patch(path, json={"name": "Lawyer", "visibility": "public"})).status_code == 200
    refusal(await alice.patch(path, json={"name": "Assistant"}), 422, "INVALID_REQUEST", "name")


async def test_name_of_the_default_agent_is_reserved_as_it_is_now(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient
):
    helper = await new_agent(alice, name="Helper", visibility="public")
    await admin.patch(f"/api/agents/{(await default_agent(alice))['id']}", json={"name": "Helper"})
    refused = await alice.post("/api/agents", json={"name": "Helper", "visibility": "public"})
    refusal(refused, 422, "INVALID_REQUEST", "name")
    assert (await new_agent(alice, name="Assistant", visibility="public"))["name"] == "Assistant"
    changed = await alice.patch(f"/api/agents/{helper['id']}", json={"description": "Was here before."})
    assert changed.status_code == 200


@ONLY_SQLITE
async def test_default_agent_cannot_be_deleted_or_made_private(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient
):
    path = f"/api/agents/{(await default_agent(alice))['id']}"
    for client in (alice, admin):
        refusal(await client.delete(path), 403, "FORBIDDEN")
    refusal(await alice.patch(path, json={"name": "mine"}), 403, "FORBIDDEN")
    for private in ("private", None):
        refusal(await admin.patch(path, json={"visibility": private}), 403, "FORBIDDEN")
    assert (await admin.patch(path, json={"name": "Helper"})).json()["name"] == "Helper"
    assert (await default_agent(alice))["name"] == "Helper"


async def test_default_agent_is_made_once_over_restarts_and_keeps_its_changes(database_url: str):
    settings = Settings.load(
        {}, database_url=database_url, database_pool_size=1, jwt_secret=SECRET, guide="off"
    )
    seen: list[dict[str, Any]] = []
    for _ in range(3):
        app = create_app(settings)
        async with app.lifespan():
            api = Api(app, (await app.services()).store, [])
            async with api.as_user("root", admin=True) as admin:
                (agent,) = await items(admin, "/api/agents")
                await admin.patch(f"/api/agents/{agent['id']}", json={"description": "changed"})
                seen.append(agent)
    assert len({agent["id"] for agent in seen}) == 1
    assert seen[-1]["description"] == "changed"


# Deleting


async def test_deleted_agent_is_gone_on_every_route(alice: httpx.AsyncClient, admin: httpx.AsyncClient):
    agent = await new_agent(alice, visibility="public")
    assert (await alice.delete(f"/api/agents/{agent['id']}")).status_code == 204
    for client in (alice, admin):
        for noun, code in (("agents", "AGENT_NOT_FOUND"), ("domains", "DOMAIN_NOT_FOUND")):
            path = f"/api/{noun}/{agent['id']}"
            refusal(await client.get(path), 404, code)
            refusal(await client.patch(path, json={"name": "back"}), 404, code)
            refusal(await client.delete(path), 404, code)
            refusal(await client.post(f"{path}/conversations", json={}), 404, code)
            refusal(await client.put(f"{path}/conversation"), 404, code)
            refusal(await client.get(f"{path}/conversations"), 404, code)


async def test_conversations_with_a_deleted_agent_stay_readable_but_take_no_message(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    talks = {client: await new_conversation(client, agent["id"]) for client in (alice, bob)}
    await alice.delete(f"/api/agents/{agent['id']}")
    for client, talk in talks.items():
        path = f"/api/conversations/{talk['id']}"
        assert (await client.get(path)).status_code == 200
        assert (await client.get(f"{path}/messages")).status_code == 200
        assert (await client.get(f"{path}/context")).status_code == 200
        assert (await client.patch(path, json={"title": "kept"})).json()["title"] == "kept"
        for where in ("/api/conversations", f"/api/agents/{agent['id']}/conversations"):
            assert [it["id"] for it in await items(client, where)] == [talk["id"]]
        refusal(await client.post(f"{path}/messages", json={"content": "?"}), 404, "AGENT_NOT_FOUND")


async def test_agent_made_private_keeps_others_conversations_readable(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    talk = await new_conversation(bob, agent["id"])
    await alice.patch(f"/api/agents/{agent['id']}", json={"visibility": "private"})
    path = f"/api/conversations/{talk['id']}"
    assert (await bob.get(path)).status_code == 200
    assert len(await items(bob, f"/api/agents/{agent['id']}/conversations")) == 1
    refusal(await bob.post(f"{path}/messages", json={"content": "?"}), 404, "AGENT_NOT_FOUND")
    refusal(await bob.put(f"/api/agents/{agent['id']}/conversation"), 404, "AGENT_NOT_FOUND")
    refusal(await bob.get(f"/api/agents/{agent['id']}"), 404, "AGENT_NOT_FOUND")


# Duplicating


@pytest.mark.parametrize("noun", ["agents", "domains"])
async def test_copy_of_an_agent_is_private_and_otherwise_the_same(alice: httpx.AsyncClient, noun: str):
    agent = (await alice.post("/api/agents", json=WHOLE)).json()
    await alice.put(f"/api/agents/{agent['id']}/prompt/RULES", json={"text": "Never guess."})
    made = await alice.post(f"/api/{noun}/{agent['id']}/duplicate")
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    copy = made.json()
    changed = {"name": "法律顾问 copy", "visibility": "private"}
    assert {name: copy[name] for name in WHOLE} == WHOLE | changed
    assert copy["id"] != agent["id"]
    assert (copy["ownerId"], copy["isDefault"], copy["version"]) == ("alice", False, 1)
    assert (await alice.get(f"/api/agents/{copy['id']}")).json() == copy
    prompts = [(await alice.get(f"/api/agents/{it['id']}/prompt")).json() for it in (agent, copy)]
    assert prompts[0] == prompts[1] and "Never guess." in str(prompts[1])
    await alice.put(f"/api/agents/{copy['id']}/prompt/RULES", json={"text": "Guess."})
    assert (await alice.get(f"/api/agents/{agent['id']}/prompt")).json() == prompts[0]


@ONLY_SQLITE
async def test_copy_of_an_agent_has_large_prompt_files_too(
    alice: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    agent = await new_agent(alice)
    folder = tmp_path / "data" / AGENTS
    (folder / agent["id"]).mkdir(parents=True, exist_ok=True)
    large = "Never guess. " * 50_000
    (folder / agent["id"] / "RULES.md").write_text(large)
    copy = (await alice.post(f"/api/agents/{agent['id']}/duplicate")).json()
    assert (folder / copy["id"] / "RULES.md").read_text() == large
    monkeypatch.setattr("threadkeep.storage.prompt_files.MOST_BYTES_A_COPY", 300_000)
    copy = (await alice.post(f"/api/agents/{agent['id']}/duplicate")).json()
    assert "[350,000 bytes left out of this copy]" in (folder / copy["id"] / "RULES.md").read_text()


@ONLY_SQLITE
async def test_name_of_a_copy_is_not_too_long(alice: httpx.AsyncClient):
    agent = await new_agent(alice, name="题" * 94 + " abcde")
    copy = (await alice.post(f"/api/agents/{agent['id']}/duplicate")).json()
    assert copy["name"] == "题" * 94 + " copy"
    assert (await alice.post(f"/api/agents/{copy['id']}/duplicate")).json()["name"] == "题" * 94 + " copy"


async def test_agent_is_duplicated_by_its_owner_and_admins_only(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, admin: httpx.AsyncClient
):
    public = await new_agent(alice, visibility="public", systemPrompt="a secret prompt")
    private = await new_agent(alice)
    default = await default_agent(bob)
    refused = refusal(await bob.post(f"/api/agents/{public['id']}/duplicate"), 403, "FORBIDDEN")
    assert "secret" not in str(refused)
    refusal(await bob.post(f"/api/agents/{default['id']}/duplicate"), 403, "FORBIDDEN")
    refusal(await bob.post(f"/api/agents/{private['id']}/duplicate"), 404, "AGENT_NOT_FOUND")
    refusal(await bob.post(f"/api/domains/{new_uuid()}/duplicate"), 404, "DOMAIN_NOT_FOUND")
    assert {it["id"] for it in await items(bob, "/api/agents") if it["ownerId"]} == {public["id"]}
    copy = (await admin.post(f"/api/agents/{public['id']}/duplicate")).json()
    assert (copy["ownerId"], copy["visibility"]) == ("root", "private")
    assert copy["systemPrompt"] == "a secret prompt"
    assert (await admin.post(f"/api/agents/{default['id']}/duplicate")).json()["isDefault"] is False
    refusal(await alice.get(f"/api/agents/{copy['id']}"), 404, "AGENT_NOT_FOUND")
    await alice.delete(f"/api/agents/{public['id']}")
    refusal(await admin.post(f"/api/agents/{public['id']}/duplicate"), 404, "AGENT_NOT_FOUND")


async def test_audit_tells_of_a_copy(alice: httpx.AsyncClient, admin: httpx.AsyncClient):
    agent = await new_agent(alice, name="Law")
    copy = (await alice.post(f"/api/agents/{agent['id']}/duplicate")).json()
    entry, _ = await items(admin, "/api/admin/audit")
    assert (entry["action"], entry["agentId"]) == ("duplicate", copy["id"])
    assert entry["details"] == {"name": "Law copy", "from": agent["id"]}


# The audit


async def test_audit_tells_who_changed_which_agent_and_no_text_of_it(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient
):
    agent = await new_agent(alice, systemPrompt="the first secret prompt")
    path = f"/api/agents/{agent['id']}"
    await admin.patch(path, json={"systemPrompt": "the second secret prompt", "settings": {"maxTokens": 77}})
    await alice.delete(path)
    response = await admin.get("/api/admin/audit")
    told = response.json()["items"]
    assert [(entry["actorId"], entry["action"], entry["agentId"]) for entry in told] == [
        ("alice", "delete", agent["id"]),
        ("root", "update", agent["id"]),
        ("alice", "create", agent["id"]),
    ]
    assert [entry["details"] for entry in told] == [
        {"changed": ["deleted_at"]},
        {"changed": ["system_prompt", "settings"]},
        {"name": agent["name"]},
    ]
    assert all(TIME.fullmatch(entry["at"]) for entry in told)
    assert "secret" not in response.text
    assert "77" not in str([entry["details"] for entry in told])


async def test_audit_is_paged(alice: httpx.AsyncClient, admin: httpx.AsyncClient):
    made = [(await new_agent(alice))["id"] for _ in range(5)]
    told = await items(admin, "/api/admin/audit", limit=2)
    assert [entry["agentId"] for entry in told] == made[::-1]
    page = (await admin.get("/api/admin/audit", params={"limit": 2, "offset": 3})).json()
    assert page["items"] == told[3:5]


@ONLY_SQLITE
async def test_audit_is_for_admins(alice: httpx.AsyncClient):
    refusal(await alice.get("/api/admin/audit"), 403, "FORBIDDEN")


async def test_audit_does_not_name_a_user_who_was_deleted(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient, database_url: str
):
    await new_agent(alice)
    await new_agent(alice)
    one = (await items(admin, "/api/admin/audit"))[0]["id"]
    details = '{"turnId":"t","userId":"alice"}'
    run_sql(database_url, "UPDATE tk_audit SET action = 'abort_turn', details = ? WHERE id = ?", details, one)
    assert (await alice.delete("/api/users/alice")).status_code == 204
    told = await items(admin, "/api/admin/audit")
    assert len(told) == 2
    assert "alice" not in json.dumps(told)
    (name,) = {entry["actorId"] for entry in told}
    assert name.startswith("deleted-")
    assert told[0]["details"] == {"turnId": "t", "userId": name}


@ONLY_SQLITE
async def test_name_of_an_agent_is_one_line(alice: httpx.AsyncClient):
    assert (await new_agent(alice, name=" a\r\nb\u2028c "))["name"] == "a b c"


async def test_two_runs_of_apply_at_the_same_time_create_one_agent(api: Api, alice: httpx.AsyncClient):
    body = {"name": "Support", "applied": True}
    names = ["Support", "support", "SUPPORT"] * 2
    answers = await asyncio.gather(*(alice.post("/api/agents", json=body | {"name": it}) for it in names))
    assert sorted(it.status_code for it in answers) == [201, 409, 409, 409, 409, 409]
    (made,) = [it for it in answers if it.status_code == 201]
    refused = next(it for it in answers if it.status_code == 409).json()["error"]
    assert (refused["code"], "already have an agent" in refused["message"]) == ("CONFLICT", True)
    # Others may have one of this name, and so may whoever asks for a second one by hand.
    assert (await api.as_user("bob").post("/api/agents", json=body)).status_code == 201
    assert (await alice.post("/api/agents", json={"name": "Support"})).status_code == 201
    mine = [it for it in (await alice.get("/api/agents")).json()["items"] if it["name"].lower() == "support"]
    for agent in mine:
        await alice.delete(f"/api/agents/{agent['id']}")
    again = await alice.post("/api/agents", json=body)
    assert again.status_code == 201, "deleted and applied again, it is created again"
    assert again.json()["id"] != made.json()["id"]
