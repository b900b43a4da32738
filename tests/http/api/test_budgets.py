"""Budgets: what users, agents and API keys may spend, whatever runs at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import ONLY_SQLITE, TEMPLATE
from tests.http.calls import Json, refusal
from tests.postgres import Postgres
from tests.talking import JSON, Talk, talking
from threadkeep import Settings
from threadkeep.domain.ledger import UsageFilter
from threadkeep.domain.money import UNIT
from threadkeep.settings.models import GatewayTable, ModelTable, PriceTable
from threadkeep.testing import CutOff, Gate, NoUsage, Say, ScriptedModel, Usage, UseTool, Wait, until

ALL_DAYS = UsageFilter("0001-01-01", "9999-12-31", None)
PRICED = {"model": "priced/scripted"}
REPLY = [Say("Yes."), Usage(5, 100)]
"""Costs 0.01: the price is for output only, and the output limit is what it uses."""


def with_prices(settings: Settings, model: ScriptedModel, **changes: Any) -> Settings:
    """A gateway with a model that has a price, and one that has none."""
    price = PriceTable(input="0", output="100")
    models = (ModelTable(name="scripted", max_output_tokens=100, price=price), "unpriced")
    gateway = GatewayTable(kind="openai", url=model.url, api_key="sk-scripted", models=models)
    return msgspec.structs.replace(settings, gateways={"priced": gateway}, **changes)


@pytest.fixture
async def talk(talk_settings: Settings, model: ScriptedModel) -> AsyncIterator[Talk]:
    """A server whose users may spend 0.10 a month: as much as ten replies cost."""
    async with talking(with_prices(talk_settings, model, user_budget_month="0.10")) as talk:
        yield talk


async def spent(talk: Talk) -> tuple[int, float]:
    """How many calls are in the ledger, and what they cost."""
    sums = await talk.store.ledger.usage(ALL_DAYS, ())
    return sum(it.calls for it in sums), sum(it.cost for it in sums) / UNIT


async def budgets(talk: Talk) -> list[Json]:
    return (await talk.client.get("/api/usage")).json()["budgets"]


async def outcome(talk: Talk, conversation: str) -> str:
    """What becomes of a message: its reply's status, or the code of its refusal."""
    path = f"/api/conversations/{conversation}/messages?wait=true"
    again = {**JSON, "Idempotency-Key": conversation}
    while True:
        answer = (await talk.client.post(path, json={"content": "Why?"}, headers=again)).json()
        code = answer["error"]["code"] if "error" in answer else answer["status"]
        if code != "STORAGE_UNAVAILABLE":  # on a busy machine, fifty requests wait for few connections
            return code


async def test_turns_in_parallel_never_pass_a_budget_and_those_that_fit_complete(
    talk: Talk, model: ScriptedModel
):
    model.script(*[REPLY] * 50)
    conversations = [await talk.titled_conversation(**PRICED) for _ in range(50)]
    ended = await asyncio.gather(*(outcome(talk, it) for it in conversations))
    assert (ended.count("COMPLETED"), ended.count("BUDGET_EXCEEDED")) == (10, 40)
    assert await spent(talk) == (10, 0.1)
    (budget,) = await budgets(talk)
    assert (budget["spent"], budget["reserved"], budget["limit"]) == ("0.10", "0.00", "0.10")


@ONLY_SQLITE  # as a parameter; the nodes share a PostgreSQL
async def test_two_nodes_never_pass_a_budget_together(
    postgres: Postgres, talk_settings: Settings, model: ScriptedModel, tmp_path: Path
):
    shared = with_prices(
        talk_settings,
        model,
        user_budget_month="0.10",
        database_url=postgres.create_database(template=TEMPLATE),
        secret_key="0" * 64,
    )
    model.script(*[REPLY] * 50)
    async with AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(
                talking(msgspec.structs.replace(shared, data=tmp_path / f"node {it}"))
            )
            for it in range(2)
        ]
        conversations = [await nodes[0].titled_conversation(**PRICED) for _ in range(50)]
        ended = await asyncio.gather(*(outcome(nodes[at % 2], it) for at, it in enumerate(conversations)))
        assert (ended.count("COMPLETED"), ended.count("BUDGET_EXCEEDED")) == (10, 40)
        assert await spent(nodes[1]) == (10, 0.1)


async def test_a_budget_that_runs_out_within_a_turn_ends_it_with_everything_said(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("First. "), UseTool("none", {}), Usage(5, 950)])
    conversation = await talk.titled_conversation(**PRICED)
    turn_id = await talk.begin(conversation)
    events = await talk.events(turn_id)
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "BUDGET_EXCEEDED")
    assert [it["cost"]["amount"] for it in events if it["type"] == "usage"] == ["0.095"]
    reply = (await talk.messages(conversation))[-1]
    assert (reply["content"], reply["status"], reply["cost"]["amount"]) == ("First. ", "FAILED", "0.095")
    answer = await talk.client.post(
        f"/api/conversations/{conversation}/messages", json={"content": "More?"}, headers=JSON
    )
    assert answer.status_code == 202  # there is something left, but not for a whole reply
    assert (await talk.events(answer.json()["turnId"]))[-1]["code"] == "BUDGET_EXCEEDED"
    assert (await budgets(talk))[0]["reserved"] == "0.00"


@ONLY_SQLITE
async def test_costs_and_open_reservations_are_in_the_metrics(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script(REPLY, [Say("Well."), Wait(gate), Usage(5, 100)])
    await talk.ask(await talk.titled_conversation(**PRICED))
    turn_id = await talk.begin(await talk.titled_conversation(**PRICED))
    await gate.reached()
    text = (await talk.client.get("/metrics")).text
    assert 'threadkeep_cost_total{model="priced/scripted",currency="USD"} 0.01\n' in text
    assert "threadkeep_reservations_open 1\n" in text
    gate.open()
    await talk.events(turn_id)
    text = (await talk.client.get("/metrics")).text
    assert 'threadkeep_cost_total{model="priced/scripted",currency="USD"} 0.02\n' in text
    assert "threadkeep_reservations_open 0\n" in text


@ONLY_SQLITE
async def test_deleting_oneself_resets_no_budget(talk: Talk, model: ScriptedModel):
    model.script([Say("Yes."), Usage(5, 1000)])
    await talk.ask(await talk.titled_conversation(**PRICED))
    assert (await talk.client.delete("/api/users/local")).status_code == 204
    conversation = await talk.titled_conversation(**PRICED)
    assert await outcome(talk, conversation) == "BUDGET_EXCEEDED"
    assert await spent(talk) == (0, 0)


@ONLY_SQLITE
async def test_refusal_before_a_turn_names_the_budget(talk: Talk, model: ScriptedModel):
    model.script([Say("Yes."), Usage(5, 1000)])
    conversation = await talk.titled_conversation(**PRICED)
    await talk.ask(conversation)
    answer = await talk.client.post(
        f"/api/conversations/{conversation}/messages", json={"content": "?"}, headers=JSON
    )
    details = refusal(answer, 402, "BUDGET_EXCEEDED")["details"]
    assert details.keys() == {"scope", "limit", "spent", "resetsAt"}
    assert (details["scope"], details["limit"], details["spent"]) == ("user", "0.10", "0.10")
    assert details["resetsAt"].endswith("-01T00:00:00.000Z")
    assert len(await talk.messages(conversation)) == 2


@ONLY_SQLITE
async def test_a_model_without_a_price_is_refused_under_a_budget(talk: Talk):
    conversation = await talk.titled_conversation(model="priced/unpriced")
    answer = await talk.client.post(
        f"/api/conversations/{conversation}/messages", json={"content": "?"}, headers=JSON
    )
    refusal(answer, 422, "MODEL_NOT_ALLOWED", "model")


@ONLY_SQLITE
async def test_an_agents_budget_counts_all_of_its_users(talk: Talk, model: ScriptedModel):
    model.script(REPLY)
    conversation = await talk.titled_conversation(**PRICED, settings={"budgetMonth": 0.01})
    await talk.ask(conversation)
    assert await outcome(talk, conversation) == "BUDGET_EXCEEDED"
    by_scope = {it["scope"]: it for it in await budgets(talk)}
    assert (by_scope["agent"]["limit"], by_scope["agent"]["spent"]) == ("0.01", "0.01")
    assert (by_scope["agent"]["period"], by_scope["user"]["spent"]) == ("month", "0.01")


@ONLY_SQLITE
async def test_a_keys_budget_is_its_own(talk: Talk, model: ScriptedModel):
    model.script(REPLY, REPLY)
    made = await talk.client.post("/api/keys", json={"name": "k", "scopes": ["chat"], "budgetMonth": "0.01"})
    key = {**JSON, "Authorization": f"Bearer {made.json()['key']}"}
    conversation = await talk.titled_conversation(**PRICED)
    path = f"/api/conversations/{conversation}/messages?wait=true"
    assert (await talk.client.post(path, json={"content": "?"}, headers=key)).status_code == 200
    answer = await talk.client.post(path, json={"content": "?"}, headers=key)
    assert refusal(answer, 402, "BUDGET_EXCEEDED")["details"]["scope"] == "key"
    assert (await talk.client.post(path, json={"content": "?"}, headers=JSON)).status_code == 200
    rows = (await talk.client.get("/api/usage?by=key")).json()["items"]
    assert {it["keyId"]: it["cost"]["amount"] for it in rows} == {None: "0.01", made.json()["id"]: "0.01"}


@ONLY_SQLITE
async def test_acting_keys_budget_counts_all_of_its_users(talk: Talk, model: ScriptedModel):
    model.script(REPLY, REPLY)
    body: Json = {"name": "k", "scopes": ["chat"], "budgetMonth": "0.015", "actAs": {"realm": "shop"}}
    key = (await talk.client.post("/api/keys", json=body)).json()
    agent = (
        await talk.client.post("/api/agents", json={"name": "A", "visibility": "public", **PRICED})
    ).json()
    codes: list[int] = []
    for name in ("1", "2"):
        named = {**JSON, "Authorization": f"Bearer {key['key']}", "Threadkeep-User": name}
        path = f"/api/agents/{agent['id']}/conversations"
        conversation = (await talk.client.post(path, json={"title": "t"}, headers=named)).json()
        path = f"/api/conversations/{conversation['id']}/messages?wait=true"
        codes += [(await talk.client.post(path, json={"content": "?"}, headers=named)).status_code]
    assert codes == [200, 402]


async def test_what_a_call_has_reserved_is_charged_if_it_is_stopped_and_given_back_if_it_is_refused(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("half an answer "), Wait(gate), Say("more")])
    conversation = await talk.titled_conversation(**PRICED)
    turn_id = await talk.begin(conversation)
    await gate.reached()
    (budget,) = await budgets(talk)
    assert (budget["spent"], budget["reserved"]) == ("0.00", "0.01")
    await talk.client.post(f"/api/conversations/{conversation}/abort")
    turn = (await talk.client.get(f"/api/turns/{turn_id}")).json()
    (budget,) = await budgets(talk)
    assert (budget["spent"], budget["reserved"]) == (turn["cost"]["amount"], "0.00")
    assert turn["usage"]["estimated"]


@ONLY_SQLITE
async def test_titles_are_charged_with_their_purpose(talk: Talk, model: ScriptedModel):
    model.script(REPLY, [Say("A title"), NoUsage()])
    conversation = await talk.conversation(**PRICED)
    await talk.ask(conversation)
    await model.until_requests(2)

    async def is_titled() -> bool:
        return (await talk.client.get(f"/api/conversations/{conversation}")).json()["title"] == "A title"

    await until(is_titled)
    rows = (await talk.client.get("/api/usage?by=purpose")).json()["items"]
    found = {it["purpose"]: it for it in rows}
    assert (found["title"]["calls"], found["title"]["turns"], found["title"]["estimated"]) == (1, 0, True)
    assert found["title"]["cost"]["amount"] == "0.0002"
    assert (await budgets(talk))[0]["reserved"] == "0.00"


@ONLY_SQLITE
async def test_a_reply_that_breaks_off_is_charged_and_made_again(talk: Talk, model: ScriptedModel):
    model.script([Say("half an answer "), CutOff()], REPLY)
    conversation = await talk.titled_conversation(**PRICED)
    reply = await talk.ask(conversation)
    calls, cost = await spent(talk)
    assert (reply["status"], calls) == ("COMPLETED", 2)
    assert float(reply["cost"]["amount"]) == cost > 0.01
    assert (await budgets(talk))[0]["reserved"] == "0.00"


@ONLY_SQLITE
async def test_the_title_of_a_keys_conversation_counts_against_its_budget(talk: Talk, model: ScriptedModel):
    model.script(REPLY, [Say("A title"), Usage(5, 20)])
    made = await talk.client.post("/api/keys", json={"name": "k", "scopes": ["chat"], "budgetMonth": "0.05"})
    key = {**JSON, "Authorization": f"Bearer {made.json()['key']}"}
    conversation = await talk.conversation(**PRICED)
    path = f"/api/conversations/{conversation}/messages?wait=true"
    assert (await talk.client.post(path, json={"content": "?"}, headers=key)).status_code == 200

    async def is_charged() -> bool:
        return (await spent(talk))[0] == 2

    await until(is_charged)
    rows = (await talk.client.get("/api/usage?by=key,purpose")).json()["items"]
    assert {(it["purpose"], it["keyId"]) for it in rows} == {
        ("title", made.json()["id"]),
        ("turn", made.json()["id"]),
    }
    by_scope = {it["scope"]: it for it in await budgets(talk)}
    assert (by_scope["key"]["spent"], by_scope["key"]["reserved"]) == ("0.012", "0.00")


@ONLY_SQLITE
async def test_output_limit_below_the_providers_least_is_reserved_as_that(
    talk_settings: Settings, model: ScriptedModel
):
    settings = with_prices(talk_settings, model)
    settings.gateways["priced"] = msgspec.structs.replace(settings.gateways["priced"], kind="responses")
    async with talking(settings) as talk:
        conversation = await talk.titled_conversation(
            **PRICED, settings={"maxTokens": 5, "budgetMonth": "0.0015"}
        )
        assert await outcome(talk, conversation) == "BUDGET_EXCEEDED"  # 16 tokens cost 0.0016
        assert not model.requests


async def connect(talk: Talk, model: ScriptedModel, name: str) -> None:
    """Has an admin connect the scripted model, with a price, as a gateway of this name."""
    listed = {"name": "scripted", "maxOutputTokens": 100, "price": {"input": "0", "output": "100"}}
    body = {"name": name, "kind": "openai", "url": model.url, "apiKey": "sk-scripted", "models": [listed]}
    made = await talk.client.post("/api/admin/gateways", json=body)
    assert made.status_code == 201, made.text


@ONLY_SQLITE
async def test_a_call_is_charged_even_if_its_gateway_is_deleted_meanwhile(talk: Talk, model: ScriptedModel):
    await connect(talk, model, "brief")
    gate = Gate()
    model.script([Say("Half "), Wait(gate), Say("an answer."), Usage(5, 100)])
    conversation = await talk.titled_conversation(model="brief/scripted")
    turn_id = await talk.begin(conversation)
    await gate.reached()
    assert (await talk.client.delete("/api/admin/gateways/brief")).status_code == 204
    gate.open()
    events = await talk.events(turn_id)
    assert (events[-1]["type"], events[-1]["usage"]["cost"]["amount"]) == ("done", "0.01")
    (budget,) = await budgets(talk)
    assert (budget["spent"], budget["reserved"]) == ("0.01", "0.00")
