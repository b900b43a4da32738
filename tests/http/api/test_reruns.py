"""Reruns over HTTP: a turn's request again, with another model, beside a conversation that stays as it is."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.conftest import ONLY_SQLITE, SECRET
from tests.engine.in_memory import InMemoryTools, gives
from tests.http.calls import refusal
from tests.talking import JSON, Talk, talking
from threadkeep import Settings
from threadkeep.domain.ids import PayloadId, UserId, new_uuid
from threadkeep.domain.payload import Lost
from threadkeep.domain.user import User
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.ports.tools import Returned
from threadkeep.testing import Gate, Say, ScriptedModel, Status, Usage, UseTool, Wait
from threadkeep.testing.waiting import PATIENCE_S, until

ANY = {"models": ["*"]}
LARGE = "x" * 20_000


async def post(talk: Talk, turn_id: str, **body: Any) -> httpx.Response:
    return await talk.client.post(f"/api/turns/{turn_id}/rerun", json=body, headers=JSON)


async def rerun(talk: Talk, turn_id: str, **body: Any) -> dict[str, Any]:
    response = await post(talk, turn_id, **body)
    assert response.status_code == 200, response.text
    return response.json()


async def streamed(talk: Talk, turn_id: str, **body: Any) -> list[tuple[str, Any]]:
    """The types and data of a rerun's frames."""
    found: list[tuple[str, Any]] = []
    async with talk.client.stream("POST", f"/api/turns/{turn_id}/rerun", json=body) as response:
        assert response.status_code == 200, await response.aread()
        kind = ""
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                found.append((kind, msgspec.json.decode(value)))
    return found


async def everything(talk: Talk, conversation: str) -> list[Any]:
    detail = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    return [detail, await talk.messages(conversation), (await talk.client.get("/api/conversations")).json()]


async def test_turn_is_run_again_with_another_model_and_the_conversation_stays(
    talk: Talk, model: ScriptedModel
):
    conversation = await talk.titled_conversation(systemPrompt="Be brief.", settings=ANY)
    model.script([Say("First."), Usage(7, 3)], [Say("Old."), Usage(20, 4)], [Say("New."), Usage(21, 9)])
    await talk.ask(conversation, "Hello?")
    reply = await talk.ask(conversation, "Why?")
    before = await everything(talk, conversation)
    found = await rerun(talk, reply["turnId"], model="other", temperature=0.5)
    assert await everything(talk, conversation) == before
    again, asked = model.requests[-1].body, model.requests[-2].body
    assert (again["model"], again["temperature"]) == ("other", 0.5)
    assert again["messages"] == asked["messages"]
    assert again.get("tools") == asked.get("tools")
    assert (found["outcome"], found["question"], found["turnId"]) == ("COMPLETED", "Why?", reply["turnId"])
    assert (found["rerun"]["text"], found["original"]["text"]) == ("New.", "Old.")
    assert (found["rerun"]["model"], found["rerun"]["usage"]["outputTokens"]) == ("default/other", 9)
    assert (found["original"]["model"], found["original"]["usage"]["outputTokens"]) == (reply["model"], 4)
    assert found["rerun"]["durationMs"] >= 0


async def test_calls_take_the_recorded_results_and_no_tool_runs(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    tools.add(look=gives(Returned("ok", LARGE)), count=gives(Returned("ok", {"count": 3})))
    conversation = await talk.titled_conversation(settings=ANY)
    model.script(
        [UseTool("look", {"q": "a", "n": 1}), UseTool("count", {})],
        [Say("Three.")],
        [UseTool("count", {})],
        [UseTool("look", {"n": 1.0, "q": "a"})],
        [Say("It is three.")],
    )
    reply = await talk.ask(conversation)
    ran = list(tools.calls)
    frames = await streamed(talk, reply["turnId"], model="other")
    assert tools.calls == ran
    kinds = [kind for kind, _ in frames]
    assert kinds[0] == "turn_start"
    assert kinds.count("iteration_start") == 3
    assert kinds[-2:] == ["done", "rerun"]
    result = frames[-1][1]
    assert result["rerun"]["text"] == "It is three."
    assert [(it["toolName"], it["inBoth"]) for it in result["rerun"]["calls"]] == [
        ("count", True),
        ("look", True),
    ]
    assert all(it["inBoth"] for it in result["original"]["calls"])
    # The model reads what it read then, to the last character.
    first, last = model.requests[1].body["messages"], model.requests[-1].body["messages"]
    read = {it["content"] for it in first if it["role"] == "tool"}
    assert read == {it["content"] for it in last if it["role"] == "tool"}


async def test_call_that_the_turn_did_not_make_ends_the_rerun(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    tools.add(look=gives(Returned("ok", "seen")))
    conversation = await talk.titled_conversation(settings=ANY)
    model.script(
        [UseTool("look", {"q": "a"})], [Say("So.")], [Say("Let me see."), UseTool("look", {"q": "b"})]
    )
    reply = await talk.ask(conversation)
    found = await rerun(talk, reply["turnId"])
    assert (found["outcome"], found["error"]["code"]) == ("NEEDS_TOOL", "NEEDS_TOOL")
    assert "look" in found["error"]["message"]
    assert found["rerun"]["text"] == "Let me see."
    assert [it["inBoth"] for it in found["rerun"]["calls"]] == [False]
    assert [it["inBoth"] for it in found["original"]["calls"]] == [False]
    assert len(tools.calls) == 1


@ONLY_SQLITE
async def test_steered_text_is_part_of_the_rerun(tools: InMemoryTools, talk: Talk, model: ScriptedModel):
    tools.add(look=gives(Returned("ok", "seen")))
    conversation = await talk.titled_conversation(settings=ANY)
    gate = Gate()
    model.script([UseTool("look", {}), Wait(gate)], [Say("Short.")], [UseTool("look", {})], [Say("Shorter.")])
    turn = await talk.begin(conversation)
    await gate.reached()
    body = {"content": "Keep it short!", "whenBusy": "steer"}
    await talk.client.post(f"/api/conversations/{conversation}/messages", json=body, headers=JSON)
    gate.open()
    await talk.events(turn)
    found = await rerun(talk, turn)
    assert found["rerun"]["text"] == "Shorter."
    first, again = (request.body["messages"] for request in (model.requests[1], model.requests[-1]))
    assert [(it["role"], it["content"]) for it in again] == [(it["role"], it["content"]) for it in first]
    assert "Keep it short!" in str(again)


@ONLY_SQLITE
async def test_rerun_ends_when_its_client_leaves(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings=ANY)
    model.script([Say("Old.")])
    reply = await talk.ask(conversation)
    for headers in (JSON, {}):
        gate = Gate()
        model.script([Say("New"), Wait(gate), Say(" and more.")])
        running = asyncio.create_task(
            talk.client.post(f"/api/turns/{reply['turnId']}/rerun", json={}, headers=headers)
        )
        await gate.reached()
        running.cancel()
        await asyncio.wait([running])
        await until(lambda: not reruns_running())
        gate.open()


def reruns_running() -> bool:
    return any("reruns" in str(task.get_coro()) for task in asyncio.all_tasks())


@ONLY_SQLITE
async def test_failing_model_is_an_outcome(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings=ANY)
    model.script([Say("Old.")], [Status(400, "Bad model.")])
    reply = await talk.ask(conversation)
    found = await rerun(talk, reply["turnId"], model="broken")
    assert (found["outcome"], found["error"]["code"], found["rerun"]["text"]) == (
        "FAILED",
        "AGENTX_ERROR",
        "",
    )
    usage = found["rerun"]["usage"]  # the provider bills nothing for what it refuses
    assert (usage["inputTokens"], usage["outputTokens"]) == (0, 0)


async def test_turn_without_a_receipt_or_with_a_lost_value_cannot_be_run_again(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    tools.add(look=gives(Returned("ok", LARGE)))
    conversation = await talk.titled_conversation(settings=ANY)
    model.script([UseTool("look", {})], [Say("So.")])
    reply = await talk.ask(conversation)
    path = f"/api/conversations/{conversation}/fork"
    fork = (await talk.client.post(path, json={"messageId": reply["id"]})).json()
    copied = (await talk.messages(fork["id"]))[-1]
    refusal(await post(talk, copied["turnId"]), 409, "NOT_RERUNNABLE")
    gate = Gate()
    model.script([Wait(gate), Say("Late.")])
    running = await talk.begin(conversation)
    await gate.reached()
    refusal(await post(talk, running), 409, "NOT_RERUNNABLE")
    gate.open()
    await talk.events(running)

    async def lost(_: object, __: object, ids: Iterable[PayloadId]) -> dict[PayloadId, Lost]:
        return {it: Lost("gone") for it in ids}

    monkeypatch.setattr(type(talk.store.payloads), "load", lost)
    refusal(await post(talk, reply["turnId"]), 409, "NOT_RERUNNABLE")


@ONLY_SQLITE
async def test_bad_request_or_a_turn_that_is_gone_is_refused(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings=ANY)
    model.script([Say("Old.")])
    reply = await talk.ask(conversation)
    for name, value in (("temperature", 3), ("model", ""), ("systemPrompt", "x" * 100_001)):
        refusal(await post(talk, reply["turnId"], **{name: value}), 422, "INVALID_REQUEST", name)
    for turn_id in (new_uuid(), "no-uuid"):
        refusal(await post(talk, turn_id), 404, "TURN_NOT_FOUND")
    path = f"/api/conversations/{conversation}"
    await talk.client.delete(path)
    refusal(await post(talk, reply["turnId"]), 404, "TURN_NOT_FOUND")
    await talk.client.post(f"{path}/restore")
    agent_id = (await talk.client.get(path)).json()["agentId"]
    await talk.client.delete(f"/api/agents/{agent_id}")
    refusal(await post(talk, reply["turnId"]), 404, "AGENT_NOT_FOUND")


@asynccontextmanager
async def signed_in(
    database_url: str, model: ScriptedModel, folder: Path, **more: Any
) -> AsyncGenerator[dict[str, Talk]]:
    """A server with sign-in, and some people in it."""
    settings = Settings.load(
        {}, data=folder / "data", database_url=database_url, jwt_secret=SECRET, gateway="openai",
        gateway_url=model.url, model="scripted", **more,
    )  # fmt: skip
    async with talking(settings) as running:
        people: dict[str, Talk] = {}
        for name in ("alice", "bob", "carla"):
            headers = {"Authorization": f"Bearer {issue_token(SECRET, User(UserId(name)), 600)}"}
            client = httpx.AsyncClient(base_url=running.url, headers=headers, timeout=PATIENCE_S)
            people[name] = Talk(running.app, running.store, running.url, client)
        yield people
        for talk in people.values():
            await talk.client.aclose()


async def talked(talk: Talk, agent_id: str) -> dict[str, Any]:
    started = await talk.client.post(f"/api/agents/{agent_id}/conversations", json={"title": "About that"})
    return await talk.ask(started.json()["id"])


@ONLY_SQLITE
async def test_users_run_their_own_turns_and_owners_those_shared_with_them(
    database_url: str, model: ScriptedModel, tmp_path: Path
):
    model.otherwise = [Say("So.")]
    async with signed_in(database_url, model, tmp_path) as people:
        alice, bob, carla = people.values()
        body = {
            "name": "A",
            "visibility": "public",
            "systemPrompt": "Be brief.",
            "settings": {"models": ["fast"]},
        }
        agent = (await alice.client.post("/api/agents", json=body)).json()
        reply = await talked(bob, agent["id"])
        turn = reply["turnId"]
        assert (await rerun(bob, turn, model="fast"))["outcome"] == "COMPLETED"
        refusal(await post(bob, turn, model="slow"), 422, "MODEL_NOT_ALLOWED", "model")
        refusal(await post(bob, turn, systemPrompt="Be long."), 403, "FORBIDDEN", "systemPrompt")
        for other in (alice, carla):
            refusal(await post(other, turn), 404, "TURN_NOT_FOUND")
        rate = f"/api/messages/{reply['id']}/feedback"
        await bob.client.post(rate, json={"rating": "down"})
        refusal(await post(alice, turn), 404, "TURN_NOT_FOUND")
        await bob.client.post(rate, json={"rating": "down", "shareText": True})
        refusal(await post(carla, turn), 404, "TURN_NOT_FOUND")
        found = await rerun(alice, turn, model="slow", systemPrompt="Be long.")
        assert found["question"] == "Why?"
        told = model.requests[-1].body["messages"][0]["content"]
        assert told.startswith("Be long.")
        assert "Be brief." not in told
        # Whoever owns the agent now, and no longer the one who did.
        moved = await alice.store.whole_conversations.reassign(
            UserId("alice"), UserId("carla"), 1, alone=True
        )
        assert moved.agents == 1
        refusal(await post(alice, turn), 404, "TURN_NOT_FOUND")
        assert (await rerun(carla, turn))["outcome"] == "COMPLETED"
        await bob.client.post(rate, json={"rating": None})
        refusal(await post(carla, turn), 404, "TURN_NOT_FOUND")


@ONLY_SQLITE
async def test_model_that_cannot_take_the_request_is_refused_and_one_that_is_gone_not_found(
    database_url: str, model: ScriptedModel, tmp_path: Path
):
    model.otherwise = [Say("So.")]
    listed = [{"name": "simple", "supports_tools": False}, {"name": "tiny", "context_tokens": 100}]
    gateways = {"more": {"kind": "openai", "url": model.url, "models": listed}}
    async with signed_in(database_url, model, tmp_path, gateways=gateways) as people:
        alice = people["alice"]
        agent = (await alice.client.post("/api/agents", json={"name": "A", "settings": ANY})).json()
        turn = (await talked(alice, agent["id"]))["turnId"]
        for name, why in (("simple", "call tools"), ("tiny", "too long")):
            error = refusal(await post(alice, turn, model=f"more/{name}"), 422, "INVALID_REQUEST", "model")
            assert why in error["message"]
        refusal(await post(alice, turn, model="more/removed"), 404, "MODEL_NOT_FOUND", "model")


@ONLY_SQLITE
async def test_reruns_count_against_the_users_rate(database_url: str, model: ScriptedModel, tmp_path: Path):
    model.otherwise = [Say("So.")]
    async with signed_in(database_url, model, tmp_path, user_turns_per_minute=2) as people:
        bob = people["bob"]
        (default,) = (it for it in (await bob.client.get("/api/agents")).json()["items"] if it["isDefault"])
        turn = (await talked(bob, default["id"]))["turnId"]
        assert (await post(bob, turn)).status_code == 200
        refused = await post(bob, turn)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0


@ONLY_SQLITE
async def test_rerun_has_the_agents_time_limit(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings={**ANY, "generationTimeoutS": 0.5})
    gate = Gate()
    model.script([Say("Old.")], [Say("New"), Wait(gate)])
    reply = await talk.ask(conversation)
    found = await rerun(talk, reply["turnId"])
    assert (found["outcome"], found["error"]["code"]) == ("FAILED", "GENERATION_TIMEOUT")
    assert found["rerun"]["text"] == "New"
    gate.open()


@ONLY_SQLITE
async def test_reruns_are_charged_and_stay_within_the_budget(
    database_url: str, model: ScriptedModel, tmp_path: Path
):
    model.otherwise = [Say("So."), Usage(1000, 1000)]
    listed = [{"name": "paid", "price": {"input": "1", "output": "3"}}]
    gateways = {"more": {"kind": "openai", "url": model.url, "models": listed}}
    more = {"gateways": gateways, "user_budget_month": "0.02", "max_reply_tokens": 1000}
    async with signed_in(database_url, model, tmp_path, **more) as people:
        alice = people["alice"]
        body = {"name": "A", "model": "more/paid"}
        agent = (await alice.client.post("/api/agents", json=body)).json()
        turn = (await talked(alice, agent["id"]))["turnId"]
        for _ in range(2):
            found = await rerun(alice, turn)
            assert (found["outcome"], found["rerun"]["cost"]["amount"]) == ("COMPLETED", "0.004")
            assert found["original"]["cost"] == found["rerun"]["cost"]
        asked = len(model.requests)
        while (response := await post(alice, turn)).status_code == 200:
            pass
        assert refusal(response, 402, "BUDGET_EXCEEDED")["details"]["scope"] == "user"
        assert len(model.requests) <= asked + 2
        spent = (await alice.client.get("/api/usage?by=purpose")).json()["items"]
        assert {it["purpose"] for it in spent} == {"turn", "rerun"}
