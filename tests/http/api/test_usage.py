"""What one has spent, by day and agent."""

import csv
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, items, new_agent, new_conversation, refusal, stored
from tests.making import keep_turn
from tests.talking import Talk
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.ledger import Charge
from threadkeep.domain.message import Usage as Used
from threadkeep.domain.money import Cost, Payer, Purpose, day_of
from threadkeep.testing import Gate, NoUsage, Say, ScriptedModel, Usage, Wait, until

HOUR = 60 * 60 * 1000
DAY = 24 * HOUR
NEW_YEAR = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1000


def line(date: str, agent: Json, turns: int, tokens: tuple[int, int]) -> Json:
    return {
        "date": date,
        "agentId": agent["id"],
        "turns": turns,
        "inputTokens": tokens[0],
        "outputTokens": tokens[1],
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
        "estimated": False,
        "calls": turns,
        "cost": None,
        "unpricedCalls": turns,
        "reportedCalls": 0,
        "reportedCost": None,
    }


def charge_at(conversation: Conversation, at: int, **changes: Any) -> Charge:
    """A turn's call, as the ledger has it."""
    made = Charge(
        id=new_uuid(),
        payer=Payer(conversation.user_id, conversation.agent_id),
        purpose=Purpose.TURN,
        model="default/some",
        usage=Used(5, 3),
        at=at,
        day=day_of(at, UTC),
        is_first=True,
        reservation_id=new_uuid(),
    )
    return replace(made, **changes)


@pytest.fixture
async def agents(api: Api, alice: httpx.AsyncClient) -> list[Json]:
    """Two agents that alice has talked to around the new year, the last word in a deleted conversation."""
    made = [await new_agent(alice), await new_agent(alice)]
    for agent, times in zip(made, ((-1, 0, 1, DAY), (HOUR,)), strict=True):
        conversation = await new_conversation(alice, agent["id"])
        talk = await stored(api, conversation)
        for time in times:
            talk = await keep_turn(api.store, talk, "12345", "123", NEW_YEAR + time)
            await api.store.ledger.charge(charge_at(talk, NEW_YEAR + time))
        if agent is made[-1]:
            await alice.delete(f"/api/conversations/{talk.id}")
    return made


async def test_tokens_and_turns_are_summed_by_day_and_agent(alice: httpx.AsyncClient, agents: list[Json]):
    asked = await alice.get("/api/usage", params={"from": "2025-12-31", "to": "2026-01-02"})
    first, second = agents
    assert asked.json()["items"] == [
        line("2025-12-31", first, 1, (5, 3)),
        line("2026-01-01", first, 2, (10, 6)),
        line("2026-01-01", second, 1, (5, 3)),
        line("2026-01-02", first, 1, (5, 3)),
    ]


async def test_days_and_agent_are_chosen(alice: httpx.AsyncClient, agents: list[Json]):
    async def days(**query: str) -> list[tuple[str, int]]:
        found = (await alice.get("/api/usage", params=query)).json()["items"]
        return [(it["date"], it["turns"]) for it in found]

    first, second = (agent["id"] for agent in agents)
    assert await days() == []
    assert await days(to="2026-01-01", agentId=first) == [("2025-12-31", 1), ("2026-01-01", 2)]
    assert await days(to="2026-01-30", agentId=second.upper()) == [("2026-01-01", 1)]
    assert await days(to="2026-01-31", agentId=second) == []
    assert await days(**{"from": "2026-01-02", "to": "2026-01-02"}) == [("2026-01-02", 1)]
    assert await days(to="0001-01-01") == []
    assert await days(to="9999-12-31") == []


async def test_usage_is_grouped_by_what_is_asked_for_and_costs_are_exact(
    api: Api, alice: httpx.AsyncClient, agents: list[Json]
):
    admin = api.as_user("root", admin=True)
    talk = await stored(api, await new_conversation(alice, agents[0]["id"]))
    paid = Used(7, 2, cost=Cost("0.000000000001", "USD"))
    for model in ("default/some", '=HYPERLINK("x")'):
        await api.store.ledger.charge(charge_at(talk, NEW_YEAR, usage=paid, model=model))
    week = {"from": "2025-12-31", "to": "2026-01-02"}
    asked = await alice.get("/api/usage", params={**week, "by": "model"})
    rows = {it["model"]: (it["calls"], it["cost"], it["unpricedCalls"]) for it in asked.json()["items"]}
    one = {"amount": "0.000000000001", "currency": "USD"}
    assert rows == {"default/some": (6, one, 5), '=HYPERLINK("x")': (1, one, 0)}
    (total,) = (await alice.get("/api/usage", params={**week, "by": ""})).json()["items"]
    assert (total["turns"], total["cost"]["amount"]) == (7, "0.000000000002")
    assert total.keys().isdisjoint({"date", "agentId", "model"})
    table = await alice.get("/api/usage", params={**week, "by": "model", "format": "csv"})
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    first, second = csv.DictReader(table.text.splitlines())
    assert {first["model"], second["model"]} == {"default/some", '\'=HYPERLINK("x")'}
    assert first["cost"] == "0.000000000001"
    asked = await admin.get("/api/usage", params={**week, "by": "user"})
    assert [(it["userId"], it["calls"]) for it in asked.json()["items"]] == [("alice", 7)]
    refusal(await alice.get("/api/usage?by=user"), 403, "FORBIDDEN", None)
    refusal(await alice.get("/api/usage?by=mood"), 422, "INVALID_REQUEST", "by")
    accepts = await alice.get("/api/usage", params=week, headers={"Accept": "text/csv"})
    assert accepts.text.startswith("date,agentId,turns,calls,")


async def test_what_programs_report_is_shown_beside_what_we_know(
    api: Api, alice: httpx.AsyncClient, agents: list[Json]
):
    talk = await stored(api, await new_conversation(alice, agents[0]["id"]))
    for known in (None, Cost("0.25", "USD")):
        usage, said = Used(7, 2, cost=known), Cost("0.20", "USD")
        made = charge_at(talk, NEW_YEAR, usage=usage, model="own", is_reported=True, reported_cost=said)
        await api.store.ledger.charge(made)
    await api.store.ledger.charge(charge_at(talk, NEW_YEAR, model="free", is_reported=True))
    week = {"from": "2025-12-31", "to": "2026-01-02", "by": "model"}
    asked = {it["model"]: it for it in (await alice.get("/api/usage", params=week)).json()["items"]}
    shown = "calls", "cost", "unpricedCalls", "reportedCalls", "reportedCost"
    quarter, both = {"amount": "0.25", "currency": "USD"}, {"amount": "0.40", "currency": "USD"}
    assert [asked["own"][it] for it in shown] == [2, quarter, 1, 2, both]
    assert [asked["free"][it] for it in shown] == [1, None, 1, 1, None]
    table = await alice.get("/api/usage", params={**week, "format": "csv"})
    rows = {it["model"]: it for it in csv.DictReader(table.text.splitlines())}
    columns = "cost", "currency", "reportedCalls", "reportedCost"
    assert [rows["own"][it] for it in columns] == ["0.25", "USD", "2", "0.40"]
    assert [rows["free"][it] for it in columns] == ["", "", "1", ""]


@ONLY_SQLITE
async def test_strange_days_are_refused_by_name(alice: httpx.AsyncClient):
    for query, param in (
        ("from=yesterday", "from"),
        ("from=2026-02-30", "from"),
        ("to=2026-1-1", "to"),
        ("to=", "to"),
        ("to=2026-01-01T00:00:00Z", "to"),
        ("from=2026-01-02&to=2026-01-01", "from"),
        ("from=2020-01-01&to=2026-01-01", "from"),
        ("from=0001-01-01", "from"),
        ("first=2026-01-01", "first"),
        ("limit=1", "limit"),
    ):
        refusal(await alice.get(f"/api/usage?{query}"), 422, "INVALID_REQUEST", param)


async def test_purging_conversations_changes_no_usage(alice: httpx.AsyncClient, agents: list[Json]):
    before = (await alice.get("/api/usage", params={"to": "2026-01-02"})).json()["items"]
    for conversation in await items(alice, "/api/conversations"):
        await alice.delete(f"/api/conversations/{conversation['id']}?purge=true")
    assert (await alice.get("/api/usage", params={"to": "2026-01-02"})).json()["items"] == before


async def test_cached_input_is_counted_as_a_part_of_all_input(talk: Talk, model: ScriptedModel):
    model.script([Say("One."), Usage(40, 5, cache_read=60)], [Say("title")])
    model.script([Say("Two."), Usage(20, 5, cache_read=80)])
    conversation = await talk.conversation()
    await talk.ask(conversation)
    await model.until_requests(2)
    await talk.ask(conversation)
    days = (await talk.client.get("/api/usage?by=day,purpose")).json()["items"]
    (day,) = [it for it in days if it["purpose"] == "turn"]
    assert (day["inputTokens"], day["cacheReadTokens"]) == (200, 140)


async def test_what_the_provider_says_is_counted_and_what_it_does_not_say_is_flagged(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("One."), Usage(70, 30)], [Say("title")], [Say("Two."), NoUsage()])
    model.script([Say("half an answer "), Wait(gate), Say("more")])
    conversation = await talk.conversation()

    async def today() -> Json:
        days = (await talk.client.get("/api/usage?by=day,purpose")).json()["items"]
        (day,) = [it for it in days if it["purpose"] == "turn"]
        assert datetime.now(UTC).date() - datetime.fromisoformat(day["date"]).date() < timedelta(days=2)
        return day

    await talk.ask(conversation)
    told = await today()
    assert (told["turns"], told["inputTokens"], told["outputTokens"]) == (1, 70, 30)
    assert not told["estimated"]

    async def is_titled() -> bool:
        return (await talk.client.get(f"/api/conversations/{conversation}")).json()["title"] == "title"

    await until(is_titled)  # it is no turn; while it is missing, the next turn would ask for it again
    await talk.ask(conversation)
    guessed = await today()
    assert (guessed["turns"], guessed["estimated"]) == (2, True)
    assert guessed["inputTokens"] > 70 and guessed["outputTokens"] > 30
    turn_id = await talk.begin(conversation)
    await gate.reached()
    await talk.client.post(f"/api/conversations/{conversation}/abort")
    aborted = (await talk.client.get(f"/api/turns/{turn_id}")).json()
    assert aborted["usage"]["estimated"]
    assert (await today())["outputTokens"] == guessed["outputTokens"] + aborted["usage"]["outputTokens"]
