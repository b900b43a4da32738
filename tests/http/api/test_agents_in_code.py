"""Agents that are programs over HTTP: what one sees of them, and what an admin can change."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from tests.conftest import Api
from tests.http.calls import Json, items, new_agent, new_conversation, refusal
from tests.making import ALICE, NOW, keep_conversation, opened
from threadkeep.agents import AgentError, Turn, agent
from threadkeep.bootstrap.programs import declare_programs
from threadkeep.domain.agent import Agent, Code, WorkerState
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.ids import AgentId
from threadkeep.domain.turn import Lease, OpenStep, TurnCode
from threadkeep.testing import ScriptedModel, running_app
from threadkeep.testing.app import admin_token
from threadkeep.testing.waiting import until
from threadkeep.wire.programs import AgentDeclared

ORDERS = AgentDeclared(
    key="orders",
    version=2,
    name="Orders",
    description="Looks up orders.",
    visibility="public",
    timeout_s=900,
    starters=("Where is it?",),
    icon="anchor",
)
READ_ONLY = ["name", "description", "primaryRoleId", "systemPrompt", "settings.starters", "settings.icon"]


@pytest.fixture
async def orders(api: Api) -> str:
    """The id of an agent in code that nobody runs."""
    await declare_programs((await api.app.services()).agents, [ORDERS])
    listed = await items(api.as_user("root", admin=True), "/api/agents")
    return next(it["id"] for it in listed if it["name"] == "Orders")


async def test_everybody_sees_that_an_agent_is_a_program_and_admins_which_one(
    api: Api, alice: httpx.AsyncClient, orders: str
):
    admin = api.as_user("root", admin=True)
    seen = (await alice.get(f"/api/agents/{orders}")).json()
    assert (seen["engine"], seen["readOnly"]) == ({"kind": "code", "status": "absent"}, READ_ONLY)
    await api.store.programs.note_seen("a", [Code("orders", 2)])
    await api.store.programs.note_seen("b", [Code("orders", 1)])
    assert (await alice.get(f"/api/agents/{orders}")).json()["engine"] == {"kind": "code", "status": "ready"}
    own = (await admin.get(f"/api/agents/{orders}")).json()
    assert own["engine"] == {"kind": "code", "key": "orders", "version": 2, "status": "ready", "workers": 2}
    assert (own["ownerId"], own["settings"]["generationTimeoutS"]) == (None, 900)
    listed = {it["name"]: it["engine"] for it in await items(admin, "/api/agents")}
    assert listed == {"Assistant": {"kind": "config"}, "Orders": own["engine"]}
    assert (await new_agent(alice))["readOnly"] == []


async def test_admin_changes_what_code_leaves_open_and_nothing_else(
    api: Api, alice: httpx.AsyncClient, orders: str
):
    admin, url = api.as_user("root", admin=True), f"/api/agents/{orders}"
    patches: tuple[tuple[Json, str], ...] = (
        ({"name": "Mine"}, "name"),
        ({"description": None}, "description"),
        ({"systemPrompt": "Lie."}, "systemPrompt"),
        ({"settings": {"starters": []}}, "settings.starters"),
        ({"settings": {"icon": "bug"}}, "settings.icon"),
    )
    for patch, param in patches:
        refused = await admin.patch(url, json=patch)
        error = refusal(refused, 409, "AGENT_IN_CODE", param)
        assert error["details"] == {"readOnly": READ_ONLY}
    refusal(await alice.patch(url, json={"visibility": "private"}), 403, "FORBIDDEN")
    open_ = {"visibility": "private", "settings": {"budgetMonth": "5.00", "maxIterations": 3}}
    changed = (await admin.patch(url, json={"name": "Orders", **open_})).json()
    assert (changed["visibility"], changed["settings"]["budgetMonth"]) == ("private", "5.00")
    refusal(await alice.get(url), 404, "AGENT_NOT_FOUND")
    await declare_programs((await api.app.services()).agents, [ORDERS])  # at the next start
    assert (await admin.get(url)).json()["visibility"] == "private"
    refusal(await admin.post(f"{url}/duplicate"), 409, "AGENT_IN_CODE")


async def test_message_to_a_program_that_nobody_runs_is_refused_and_nothing_is_stored(
    api: Api, alice: httpx.AsyncClient, orders: str
):
    conversation = (await new_conversation(alice, orders))["id"]
    url = f"/api/conversations/{conversation}/messages"
    refused = await alice.post(url, json={"content": "Where is it?"})
    refusal(refused, 503, "AGENT_ABSENT")
    assert refused.headers["Retry-After"]
    assert await items(alice, url) == []


async def test_deleted_agent_is_gone_whoever_declares_it(api: Api, alice: httpx.AsyncClient, orders: str):
    admin = api.as_user("root", admin=True)
    assert (await admin.delete(f"/api/agents/{orders}")).status_code == 204
    await declare_programs((await api.app.services()).agents, [ORDERS])
    refusal(await admin.get(f"/api/agents/{orders}"), 404, "AGENT_NOT_FOUND")


async def test_program_that_takes_the_name_of_the_default_agent_stops_the_start(api: Api):
    agents = (await api.app.services()).agents
    default: Agent = await agents.default()
    taken = AgentDeclared(key="taken", version=1, name=default.name, visibility="public")
    with pytest.raises(SettingsError, match="`taken`"):
        await declare_programs(agents, [taken])


async def test_admin_sees_which_program_a_turn_waits_for(api: Api, orders: str):
    agent = await api.store.agents.get(AgentId(orders))
    assert agent is not None
    begun = (await keep_conversation(api.store, agent)).begin_turn("Where is it?", NOW)
    begun = replace(begun, turn=replace(begun.turn, code=TurnCode("orders")))
    await api.store.turns.begin(opened(begun))
    await api.store.log.release(begun.turn.id, 1)
    admin = api.as_user("root", admin=True)
    (seen,) = (await admin.get("/api/admin/turns?agent=orders&waitsFor=worker")).json()["items"]
    assert {it: seen[it] for it in ("nodeId", "agent", "codeVersion", "state", "worker", "waitsFor")} == {
        "nodeId": None,
        "agent": "orders",
        "codeVersion": None,
        "state": "waiting",
        "worker": None,
        "waitsFor": "worker",
    }
    assert (await admin.get("/api/admin/turns?agent=billing")).json()["items"] == []
    turn = await api.as_user(ALICE).get(f"/api/turns/{begun.turn.id}")
    assert (turn.json()["status"], turn.json()["waitsFor"]) == ("RUNNING", "worker")
    assert 'threadkeep_program_turns_waiting{agent="orders"} 1\n' in (await admin.get("/metrics")).text


async def test_admin_sees_the_step_of_a_turn_and_finds_the_turns_that_are_in_it(api: Api, orders: str):
    agent = await api.store.agents.get(AgentId(orders))
    assert agent is not None
    begun = [(await keep_conversation(api.store, agent)).begin_turn("Refund it.", NOW) for _ in range(3)]
    for it in begun:
        it = replace(it, turn=replace(it.turn, code=TurnCode("orders", 2)))
        await api.store.turns.begin(opened(it, Lease("a", 1, 60_000)))
    steps = {begun[0].turn.id: OpenStep("refund", NOW), begun[2].turn.id: OpenStep("refund", NOW)}
    await api.store.log.renew_noting("a", steps, 60_000)
    admin = api.as_user("root", admin=True)
    first = (await admin.get("/api/admin/turns?step=refund&limit=1")).json()
    (seen,) = first["items"]
    assert (seen["id"], seen["step"], seen["worker"], seen["state"]) == (
        begun[0].turn.id,
        "refund",
        "a",
        "running",
    )
    assert seen["stepSince"] == seen["startedAt"]
    rest = await admin.get(f"/api/admin/turns?step=refund&cursor={first['nextCursor']}")
    assert [it["id"] for it in rest.json()["items"]] == [begun[2].turn.id]
    assert [it["step"] for it in await items(admin, "/api/admin/turns")] == ["refund", None, "refund"]
    assert (await admin.get("/api/admin/turns?olderThanS=1000000000")).json()["items"] == []
    refusal(await admin.get("/api/admin/turns?olderThanS=-1"), 422, "INVALID_REQUEST", "olderThanS")


async def test_admin_sees_the_workers(api: Api):
    state = WorkerState(name="host", sdk="threadkeep 1", running={"orders": 2})
    await api.store.programs.note_seen("a", [Code("orders", 2), Code("billing", 1)], state)
    (worker,) = (await api.as_user("root", admin=True).get("/api/admin/workers")).json()["items"]
    times = {"connectedAt": worker["connectedAt"], "lastBeatAt": worker["lastBeatAt"]}
    assert worker == times | {
        "id": "a",
        "name": "host",
        "node": "a",
        "sdk": "threadkeep 1",
        "agents": [{"key": "billing", "version": 1}, {"key": "orders", "version": 2}],
        "capacity": None,
        "running": 2,
        "blockedMs": 0,
        "isDraining": False,
    }


async def test_message_waits_for_a_program_that_ran_a_short_while_ago_and_can_be_stopped(
    api: Api, alice: httpx.AsyncClient, orders: str
):
    await api.store.programs.note_seen("a", [Code("orders", 2)])
    await api.store.programs.close("a")  # it is being replaced
    admin, conversation = api.as_user("root", admin=True), (await new_conversation(alice, orders))["id"]
    url = f"/api/conversations/{conversation}"
    sending = asyncio.create_task(alice.post(f"{url}/messages", json={"content": "Where is it?"}))

    async def waits() -> bool:
        return [it["waitsFor"] for it in await items(admin, "/api/admin/turns")] == ["worker"]

    await until(waits)
    assert (await alice.post(f"{url}/abort")).json()["status"] == "GENERATION_ABORTED"
    await sending
    asked, reply = await items(alice, f"{url}/messages")
    assert {asked["status"], reply["status"]} == {"COMPLETED", "CANCELLED"}


async def test_metrics_count_the_processes_that_run_a_program(api: Api):
    await api.store.programs.note_seen("a", [Code("orders", 2)])
    await api.store.programs.note_seen("b", [Code("orders", 1), Code("billing", 1)])
    await api.store.programs.close("b")
    text = (await api.as_user("root", admin=True).get("/metrics")).text
    assert 'threadkeep_program_workers{agent="orders"} 1\n' in text
    assert 'threadkeep_program_workers{agent="billing"} 0\n' in text


async def test_turn_whose_program_nobody_has_run_for_five_minutes_fails_and_one_that_ran_waits(
    api: Api, orders: str
):
    agent = await api.store.agents.get(AgentId(orders))
    assert agent is not None
    turns: list[str] = []
    for version in (None, 2):
        begun = (await keep_conversation(api.store, agent)).begin_turn("Where is it?", NOW)
        begun = replace(begun, turn=replace(begun.turn, code=TurnCode("orders", version)))
        await api.store.turns.begin(opened(begun, Lease("a", 1, -6 * 60_000)))
        turns.append(begun.turn.id)
    alice = api.as_user(ALICE)

    async def has_failed() -> bool:
        return (await alice.get(f"/api/turns/{turns[0]}")).json()["status"] == "FAILED"

    await until(has_failed)
    assert (await alice.get(f"/api/turns/{turns[0]}")).json()["error"]["code"] == "AGENT_ABSENT"

    async def waits() -> bool:
        return (await alice.get(f"/api/turns/{turns[1]}")).json()["waitsFor"] == "worker"

    await until(waits)  # its user was told, too


async def test_no_model_answers_for_a_program_where_nothing_is_stored(
    alice: httpx.AsyncClient, model: ScriptedModel, orders: str
):
    asked = {"model": orders, "messages": [{"role": "user", "content": "Refund order 7."}]}
    unstored = {"model": orders, "input": "Refund order 7.", "store": False}
    for path, body in (("chat/completions", asked), ("responses", unstored)):
        refused = await alice.post(f"/v1/{path}", json=body)
        assert refused.status_code in (400, 422), refused.text
        assert "This agent is a program" in refused.text
    assert model.requests == []


@agent(max_steps=1)
async def fails(turn: Turn) -> None:
    await turn.step(len, turn.text, effect="read")
    if turn.text == "too far":
        await turn.step(len, "again", effect="read")
    raise AgentError("There is no such order.")


@pytest.mark.parametrize(("text", "code"), [("Why?", "AGENT_FAILED"), ("too far", "STEP_LIMIT")])
async def test_request_that_waits_for_a_program_that_fails_is_refused_with_the_turns_code(
    text: str, code: str
):
    async with running_app(agents=[fails]) as running:
        http = httpx.AsyncClient(
            transport=httpx.ASGITransport(running.app),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {admin_token()}", "Accept": "application/json"},
        )
        (id_,) = [it.id async for it in running.client.agents() if it.name == "Fails"]
        conversation = (await running.client.create_conversation(id_, title="t")).id
        async with http:
            path = f"/api/conversations/{conversation}/messages?wait=true"
            refused = await http.post(path, json={"content": text})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (502, code)
    assert error["details"]["message"]["error"]["code"] == code
