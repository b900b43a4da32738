"""An agent's prompt over HTTP, and in the turns that use it."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import items, new_agent, new_conversation, refusal
from tests.talking import Talk
from threadkeep.domain.ids import new_uuid
from threadkeep.testing import Gate, Say, ScriptedModel, Wait

RULE = "Answer in French."


async def put(client: httpx.AsyncClient, agent_id: str, component: str, text: str) -> httpx.Response:
    return await client.put(f"/api/agents/{agent_id}/prompt/{component}", json={"text": text})


async def prompt(client: httpx.AsyncClient, agent_id: str) -> dict[str, Any]:
    response = await client.get(f"/api/agents/{agent_id}/prompt")
    assert response.status_code == 200, response.text
    return response.json()


def named(shown: dict[str, Any]) -> dict[str, str]:
    """The components of an agent's own; every prompt has the role too."""
    *own, role = shown["components"]
    assert (role["name"], role["editable"]) == ("role", False)
    assert "promptx_action" in role["text"]
    return {it["name"]: it["text"] for it in own}


@ONLY_SQLITE
async def test_prompt_is_shown_component_by_component(alice: httpx.AsyncClient, tmp_path: Path):
    agent = await new_agent(alice, systemPrompt="Be brief.")
    shared = tmp_path / "data" / "agents" / "shared"
    shared.mkdir(parents=True)
    (shared / "RULES.md").write_text("Never lie.\n")
    await put(alice, agent["id"], "memory", "She likes tea.")
    response = await put(alice, agent["id"], "RULES.md", RULE)
    shown = await prompt(alice, agent["id"])
    assert response.json() == shown
    assert named(shown) == {
        "shared/RULES.md": "Never lie.",
        "RULES.md": RULE,
        "MEMORY.md": "She likes tea.",
        "systemPrompt": "Be brief.",
    }
    assert [it["editable"] for it in shown["components"]] == [False, True, True, False, False]
    assert shown["length"] == len("\n\n".join(it["text"] for it in shown["components"]))
    assert shown["editable"] == ["IDENTITY.md", "ROLE.md", "RULES.md", "TOOLS.md", "USER.md", "MEMORY.md"]
    assert shown["notices"] == []


@ONLY_SQLITE
async def test_blank_text_removes_a_component(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    assert named((await put(alice, agent["id"], "USER", "x")).json()) == {"USER.md": "x"}
    assert named((await put(alice, agent["id"], "USER", " \n")).json()) == {}


@ONLY_SQLITE
@pytest.mark.parametrize("component", ["PASSWORDS.md", "..%2FRULES.md", "RULES.md.md", "systemPrompt", "é"])
async def test_other_files_cannot_be_written(alice: httpx.AsyncClient, component: str, tmp_path: Path):
    agent = await new_agent(alice)
    response = await put(alice, agent["id"], component, "x")
    assert response.status_code in {404, 422}
    if response.status_code == 422:
        refusal(response, 422, "INVALID_REQUEST", "component")
    assert not (tmp_path / "data" / "agents").exists()


@ONLY_SQLITE
@pytest.mark.parametrize("text", ["a\x00b", None, 5])
async def test_texts_that_cannot_be_kept_are_refused(alice: httpx.AsyncClient, text: Any):
    agent = await new_agent(alice)
    refusal(await put(alice, agent["id"], "RULES", text), 422, "INVALID_REQUEST", "text")
    assert named(await prompt(alice, agent["id"])) == {}


async def test_prompt_is_the_owners_and_admins_only(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    await put(alice, agent["id"], "RULES", RULE)
    refusal(await bob.get(f"/api/agents/{agent['id']}/prompt"), 403, "FORBIDDEN")
    refusal(await put(bob, agent["id"], "RULES", "mine"), 403, "FORBIDDEN")
    admin = api.as_user("root", admin=True)
    assert named(await prompt(admin, agent["id"])) == {"RULES.md": RULE}
    assert (await put(admin, agent["id"], "RULES", "ours")).status_code == 200
    assert named(await prompt(alice, agent["id"])) == {"RULES.md": "ours"}
    entries = [it for it in await items(admin, "/api/admin/audit") if it["action"] == "prompt"]
    assert [(it["actorId"], it["agentId"], it["details"]) for it in entries] == [
        ("root", agent["id"], {"component": "RULES.md"}),
        ("alice", agent["id"], {"component": "RULES.md"}),
    ]


@ONLY_SQLITE
async def test_long_component_is_truncated_with_a_mark_whether_it_is_put_or_read_from_disk(
    alice: httpx.AsyncClient, tmp_path: Path
):
    agent = await new_agent(alice)
    long = "a" * 25_000 + "z"
    response = await put(alice, agent["id"], "RULES", long)
    assert response.status_code == 200
    (put_one,) = (it for it in response.json()["components"] if it["name"] == "RULES.md")
    (tmp_path / "data" / "agents" / agent["id"] / "RULES.md").write_text(long)
    (read_one,) = (it for it in (await prompt(alice, agent["id"]))["components"] if it["name"] == "RULES.md")
    assert put_one == read_one
    assert put_one["truncated"]
    assert 19_900 < len(put_one["text"]) <= 20_000
    assert f"[… {put_one['leftOut']} characters of RULES.md left out …]" in put_one["text"]
    assert put_one["text"].endswith("z")


@ONLY_SQLITE
async def test_what_is_amiss_is_shown_and_fails_nothing(alice: httpx.AsyncClient, tmp_path: Path):
    agent = await new_agent(alice, systemPrompt="s" * 30_000)
    folder = tmp_path / "data" / "agents" / agent["id"]
    folder.mkdir(parents=True)
    (folder / "RULES.md").symlink_to("/etc/passwd")
    (folder / "TOOLS.md").mkdir()
    os.mkfifo(folder / "USER.md")
    (folder / "MEMORY.md").write_bytes(b"\xff")
    shown = await prompt(alice, agent["id"])
    assert [(it["code"], it["message"].split()[0]) for it in shown["notices"]] == [
        ("PROMPT_UNREADABLE", "RULES.md"),
        ("PROMPT_UNREADABLE", "TOOLS.md"),
        ("PROMPT_UNREADABLE", "USER.md"),
        ("PROMPT_UNREADABLE", "MEMORY.md"),
        ("PROMPT_TRUNCATED", "systemPrompt"),
    ]
    assert "root:" not in str(shown)
    memory, own, _ = shown["components"]
    assert memory["text"] == "\ufffd"
    assert (own["length"] <= 20_000, own["truncated"]) == (True, True)
    assert own["leftOut"] == 30_000 - own["text"].count("s") + own["text"].split("\n")[1].count("s")
    refusal(await put(alice, agent["id"], "TOOLS", "x"), 503, "STORAGE_UNAVAILABLE")


@ONLY_SQLITE
async def test_turn_tells_what_is_amiss_and_goes_on(talk: Talk, model: ScriptedModel, tmp_path: Path):
    conversation = await talk.conversation(systemPrompt="Be brief.")
    agent_id = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    folder = tmp_path / "data" / "agents" / agent_id
    folder.mkdir(parents=True)
    (folder / "RULES.md").mkdir()
    (folder / "USER.md").write_text("u" * 25_000)
    turn_id = await talk.begin(conversation)
    events = await talk.events(turn_id)
    assert [it["type"] for it in events[:4]] == ["turn_start", "notice", "notice", "iteration_start"]
    assert [it["code"] for it in events[1:3]] == ["PROMPT_UNREADABLE", "PROMPT_TRUNCATED"]
    assert events[-1]["status"] == "COMPLETED"
    receipt = (await talk.client.get(f"/api/turns/{turn_id}/context")).json()
    shown = [(it["name"], it["truncated"], it["length"] == len(it["text"])) for it in receipt["components"]]
    assert shown == [("USER.md", True, True), ("systemPrompt", False, True), ("role", False, True)]
    sent = model.requests[0].body["messages"][0]
    assert sent["content"] == "\n\n".join(it["text"] for it in receipt["components"])


async def test_edit_in_mid_turn_is_for_the_next_turn(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One"), Wait(gate), Say(".")], [Say("Two.")])
    conversation = await talk.titled_conversation(systemPrompt="")
    agent_id = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    await put(talk.client, agent_id, "RULES", "old")
    first = await talk.begin(conversation)
    await model.until_requests(1)
    await put(talk.client, agent_id, "RULES", "new")
    gate.open()
    await talk.events(first)
    second = (await talk.ask(conversation))["turnId"]
    for turn_id, text in ((first, "old"), (second, "new")):
        receipt = (await talk.client.get(f"/api/turns/{turn_id}/context")).json()
        assert receipt["components"][0]["text"] == text


async def test_files_go_with_their_user(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient, tmp_path: Path
):
    private, shared = await new_agent(alice), await new_agent(alice, visibility="public")
    bobs = await new_agent(bob)
    for client, agent in ((alice, private), (alice, shared), (bob, bobs)):
        await put(client, agent["id"], "RULES", RULE)
    await new_conversation(bob, shared["id"])
    assert (await alice.delete("/api/users/alice")).status_code == 204
    assert [path.name for path in (tmp_path / "data" / "agents").iterdir()] == [bobs["id"]]
    assert named(await prompt(bob, bobs["id"])) == {"RULES.md": RULE}


@ONLY_SQLITE
async def test_prompt_of_an_agent_that_is_none(alice: httpx.AsyncClient):
    for agent_id in (new_uuid(), "no-uuid"):
        refusal(await alice.get(f"/api/agents/{agent_id}/prompt"), 404, "AGENT_NOT_FOUND")
        refusal(await put(alice, agent_id, "RULES", "x"), 404, "AGENT_NOT_FOUND")
