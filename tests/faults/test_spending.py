"""A node that dies in the middle of a model call: the call is charged, and nothing stays reserved."""

from pathlib import Path

import pytest

from tests.faults.dying import dying_node, mortality
from tests.faults.scene import settings_of
from tests.http.api.test_budgets import ALL_DAYS, PRICED, with_prices
from tests.talking import JSON
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
