"""What agents remember about a user, and the user's own instructions, over HTTP."""

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import items, new_agent, refusal
from tests.making import keep_memory
from tests.talking import Talk
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.domain.user import MOST_INSTRUCTION_CHARACTERS
from threadkeep.testing import ScriptedModel


async def remember(api: Api, user: str, agent_id: str, *contents: str) -> list[str]:
    return [(await keep_memory(api.store, AgentId(agent_id), it, UserId(user))).id for it in contents]


async def contents(client: httpx.AsyncClient, path: str) -> list[str]:
    return [it["content"] for it in await items(client, path)]


async def test_user_sees_corrects_and_removes_what_an_agent_remembers(api: Api, alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    path = f"/api/agents/{agent['id']}/memories"
    first, second, third = await remember(api, "alice", agent["id"], "Likes tea.", "Lives in Lyon.", "Is 30.")
    page = (await alice.get(path, params={"limit": 2})).json()
    assert [it["content"] for it in page["items"]] == ["Is 30.", "Lives in Lyon."]
    rest = (await alice.get(path, params={"limit": 2, "cursor": page["nextCursor"]})).json()
    assert rest["items"] == [
        {"id": first, "content": "Likes tea.", "tags": ["tea"], "createdAt": page["items"][0]["createdAt"]}
    ]
    changed = await alice.patch(f"{path}/{second}", json={"content": " Lives in Nice. "})
    assert (changed.json()["content"], changed.json()["tags"]) == ("Lives in Nice.", ["tea"])
    assert (await alice.patch(f"{path}/{second}", json={"tags": ["home"]})).json()["tags"] == ["home"]
    assert (await alice.delete(f"{path}/{third}")).status_code == 204
    assert await contents(alice, path) == ["Lives in Nice.", "Likes tea."]
    assert (await alice.delete(path)).status_code == 204
    assert await contents(alice, path) == []


async def test_correction_that_says_the_same_as_another_memory_leaves_one(api: Api, alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    path = f"/api/agents/{agent['id']}/memories"
    first, _ = await remember(api, "alice", agent["id"], "Likes te.", "Likes tea.")
    assert (await alice.patch(f"{path}/{first}", json={"content": "Likes tea."})).status_code == 200
    assert [it["id"] for it in await items(alice, path)] == [first]


async def test_nobody_else_reads_or_changes_memories_not_even_the_agents_owner(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    path = f"/api/agents/{agent['id']}/memories"
    (of_bob,) = await remember(api, "bob", agent["id"], "Bob is ill.")
    (of_alice,) = await remember(api, "alice", agent["id"], "Alice is well.")
    assert await contents(alice, path) == ["Alice is well."]
    for client, foreign in ((alice, of_bob), (bob, of_alice)):
        changed = await client.patch(f"{path}/{foreign}", json={"content": "x"})
        refusal(changed, 404, "MEMORY_NOT_FOUND")
        refusal(await client.delete(f"{path}/{foreign}"), 404, "MEMORY_NOT_FOUND")
    assert (await alice.delete(path)).status_code == 204
    assert await contents(bob, path) == ["Bob is ill."]
    private = await new_agent(alice)
    refusal(await bob.get(f"/api/agents/{private['id']}/memories"), 404, "AGENT_NOT_FOUND")


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"content": " "}, "content"),
        ({"content": "x" * 4001}, "content"),
        ({"content": "a\0b"}, "content"),
        ({"content": None}, "content"),
        ({"tags": ["t"] * 21}, "tags"),
        ({"text": "x"}, "text"),
    ],
)
async def test_correction_that_says_nothing_is_refused(
    api: Api, alice: httpx.AsyncClient, body: dict[str, object], param: str
):
    agent = await new_agent(alice)
    (id_,) = await remember(api, "alice", agent["id"], "Likes tea.")
    path = f"/api/agents/{agent['id']}/memories"
    refusal(await alice.patch(f"{path}/{id_}", json=body), 422, "INVALID_REQUEST", param)
    assert await contents(alice, path) == ["Likes tea."]
    for missing in (new_uuid(), "no-uuid"):
        refusal(await alice.patch(f"{path}/{missing}", json={}), 404, "MEMORY_NOT_FOUND")


async def test_instructions_are_each_users_own(alice: httpx.AsyncClient, bob: httpx.AsyncClient):
    path = "/api/me/instructions"
    assert (await alice.get(path)).json() == {"text": ""}
    assert (await alice.put(path, json={"text": " Answer in French. \n"})).json() == {
        "text": "Answer in French."
    }
    assert (await alice.get(path)).json() == {"text": "Answer in French."}
    assert (await bob.get(path)).json() == {"text": ""}
    for text in ("x" * (MOST_INSTRUCTION_CHARACTERS + 1), "a\0b"):
        refusal(await alice.put(path, json={"text": text}), 422, "INVALID_REQUEST", "text")
    assert (await alice.put(path, json={"text": ""})).json() == {"text": ""}


async def test_model_gets_the_users_instructions_unless_the_agent_switches_them_off(
    talk: Talk, model: ScriptedModel
):
    await talk.client.put("/api/me/instructions", json={"text": "Call me Ada."})
    listens = await talk.titled_conversation(systemPrompt="Be brief.")
    not_listening = await talk.titled_conversation(settings={"userInstructions": False})
    turn_id = (await talk.ask(listens))["turnId"]
    await talk.ask(not_listening)
    first, second = (str(it.body["messages"][0]["content"]) for it in model.requests)
    assert first.index("Be brief.") < first.index("Call me Ada.")
    assert "Ada" not in second
    receipt = (await talk.client.get(f"/api/turns/{turn_id}/context")).json()
    assert [it["name"] for it in receipt["components"]] == ["systemPrompt", "role", "userInstructions"]
