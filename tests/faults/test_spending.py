"""A node that dies in the middle of a model call: the call is charged, and nothing stays reserved."""

from pathlib import Path

import pytest

from tests.faults.dying import DyingNode, dying_node, mortality
from tests.faults.programs import Sent, send
from tests.faults.scene import settings_of
from tests.http.api.test_budgets import ALL_DAYS, PRICED, REPLY, with_prices
from tests.talking import JSON
from threadkeep.agents import Turn, agent
from threadkeep.domain.ids import TurnId
from threadkeep.runtime import heartbeat
from threadkeep.testing import Gate, Say, ScriptedModel, Usage, Wait, until

__all__ = ["mortality"]

pytestmark = pytest.mark.usefixtures("mortality")


async def test_call_cut_off_by_a_crash_is_charged_and_what_it_reserved_is_settled(
    tmp_path: Path, database_url: str, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    settings = with_prices(settings_of(model, tmp_path, database_url), model, user_budget_month="0.10")
    gate = Gate()
    model.script([Say("half an answer "), Wait(gate)], [Say("A whole answer."), Usage(5, 100)])
    async with dying_node(settings) as node:
        agent = (await node.client.post("/api/agents", json={"name": "a", **PRICED})).json()["id"]
        path = f"/api/agents/{agent}/conversations"
        conversation = (await node.client.post(path, json={"title": "t"})).json()["id"]
        path = f"/api/conversations/{conversation}/messages"
        begun = await node.client.post(path, json={"content": "Why?"}, headers=JSON)
        turn = f"/api/turns/{begun.json()['turnId']}"
        await gate.reached()
        (budget,) = (await node.client.get("/api/usage")).json()["budgets"]
        assert (budget["spent"], budget["reserved"]) == ("0.00", "0.01")
        node.life.end()
    gate.open()
    async with dying_node(settings) as node:
        await node.expire_leases()

        async def is_completed() -> bool:
            return (await node.client.get(turn)).json()["status"] == "COMPLETED"

        await until(is_completed)
        (budget,) = (await node.client.get("/api/usage")).json()["budgets"]
        cost = (await node.client.get(turn)).json()["cost"]["amount"]
        (sums,) = await node.store.ledger.usage(ALL_DAYS, ())
        assert (sums.calls, sums.turns, sums.estimated) == (2, 1, True)
        assert (budget["spent"], budget["reserved"]) == (cost, "0.00")
        assert float(cost) > 0.01


@agent(model="priced/scripted")
async def asks(turn: Turn) -> None:
    await turn.model(turn.text)


async def until_stored(node: DyingNode, sent: Sent, said: str) -> None:
    """Returns when what the model has said is stored."""

    async def is_stored() -> bool:
        chunks = await node.store.log.read(TurnId(sent.turn_id), 0)
        return any(said in it.events for it in chunks)

    await until(is_stored)


async def test_call_of_a_program_that_a_crash_cut_off_is_charged_once_without_any_budget(
    tmp_path: Path, database_url: str, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    settings = with_prices(settings_of(model, tmp_path, database_url), model)
    gates = Gate(), Gate()
    said = "half an answer", "the other half"
    model.script(*([Say(it), Wait(gate)] for it, gate in zip(said, gates, strict=True)), REPLY)
    async with dying_node(settings, [asks]) as node:
        sent = await send(node, "Asks", "Why?")
        await until_stored(node, sent, said[0])
        node.life.end()
    gates[0].open()
    async with dying_node(settings, [asks]) as node:
        await node.expire_leases()
        await until_stored(node, sent, said[1])
        node.life.end()
    gates[1].open()
    async with dying_node(settings, [asks]) as node:
        await node.expire_leases()
        turn = await sent.until(node)
        (sums,) = await node.store.ledger.usage(ALL_DAYS, ())
        assert (turn["status"], sums.calls, sums.turns, sums.estimated) == ("COMPLETED", 3, 1, True)
        assert sums.output_tokens == turn["usage"]["outputTokens"] > 100
        assert sums.input_tokens == turn["usage"]["inputTokens"] > 5
        assert float(turn["cost"]["amount"]) > 0.01
