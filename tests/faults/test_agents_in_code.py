"""A node dies at every commit of a turn of an agent in code; the next one runs the program from the top.

Every turn ends alike, or with the word that nobody knows whether its write took effect; no write is repeated.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.faults.dying import Death, DyingNode, Point, dying_node, mortality
from tests.faults.programs import settings_on
from tests.postgres import Postgres
from threadkeep.agents import Turn, agent
from threadkeep.domain.errors import StorageError
from threadkeep.runtime import heartbeat
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel, until

__all__ = ["mortality"]

pytestmark = pytest.mark.usefixtures("mortality", "piece_by_piece")

SAID = "Order 7 costs 120 €. Your money is back."
WAIT_S = 30


class Shop:
    """What the steps of the program read and change."""

    def __init__(self) -> None:
        self.refunds = Counter[str]()

    async def find(self, order: str) -> dict[str, Any]:
        """Has no effect."""
        return {"id": order, "total": 120}

    async def refund(self, order: str) -> None:
        """Happens once, whatever dies."""
        self.refunds[order] += 1
        await asyncio.sleep(0)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def orders_of(shop: Shop) -> Any:
    """The program; `turn.text` names a turn."""

    @agent(name="Orders", visibility="public")
    async def orders(turn: Turn):
        found = await turn.step(shop.find, turn.text, effect="read")
        await turn.say(f"Order 7 costs {found['total']} €. ")
        if await turn.ask("Refund it?", choices=["yes", "no"]) != "yes":
            return "Then it stays as it is."
        model, _ = await asyncio.gather(
            turn.model("Write one kind sentence.", show=False), turn.step(shop.refund, turn.text)
        )
        return model.text

    return orders


def kind_sentence(request: Recorded) -> Reply:
    """What the model says whenever it is asked."""
    return [Say("Your money is back.")]


class Customer:
    """Asks for one refund and answers the question about it, at whichever node lives."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.turn_id: str | None = None
        self.conversation: str | None = None

    async def begin(self, node: DyingNode) -> None:
        """Sends the message; its turn may die before anybody hears of it."""
        agents = (await node.client.get("/api/agents")).json()["items"]
        agent_id = next(it["id"] for it in agents if it["name"] == "Orders")
        created = await node.client.post(f"/api/agents/{agent_id}/conversations", json={})
        self.conversation = created.json()["id"]
        await self.send(node)

    async def send(self, node: DyingNode) -> None:
        """The same message again is the same turn."""
        sent = await node.client.post(
            f"/api/conversations/{self.conversation}/messages",
            json={"content": self.about},
            headers={"Accept": "application/json", "Idempotency-Key": self.about},
        )
        self.turn_id = sent.json().get("turnId")

    async def see_through(self, node: DyingNode) -> dict[str, Any]:
        """Answers when asked; returns the turn once it has ended."""
        if self.turn_id is None:
            await self.send(node)
        while (turn := await self._turn(node))["status"] in ("RUNNING", "WAITING"):
            if turn["status"] == "WAITING":
                await self._answer(node)
            await asyncio.sleep(0.01)
        return turn

    async def _turn(self, node: DyingNode) -> dict[str, Any]:
        shown = (await node.client.get(f"/api/turns/{self.turn_id}")).json()
        if "status" not in shown:
            raise StorageError(f"no turn: {shown}")
        return shown

    async def _answer(self, node: DyingNode) -> None:
        asked = (await node.client.get("/api/approvals")).json().get("items", ())
        for request in asked:
            if request["turnId"] == self.turn_id:
                path = f"/api/turns/{self.turn_id}/approvals/{request['requestId']}"
                await node.client.post(path, json={"action": "answer", "content": "yes"})

    async def reply(self, node: DyingNode) -> dict[str, Any]:
        """What has become of the turn."""
        page = await node.client.get(f"/api/conversations/{self.conversation}/messages")
        return page.json()["items"][-1]


async def break_off(node: DyingNode, customer: Customer, point: Point) -> bool:
    """Has a turn run until its node dies; False if it ends before."""
    await until(lambda: customer_can_begin(node))
    agents = asyncio.create_task(customer.begin(node))
    await asyncio.wait({agents})
    node.life.end_at(point)
    talking, dying = (asyncio.create_task(it) for it in (customer.see_through(node), node.life.ended.wait()))
    await asyncio.wait({talking, dying}, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
    dying.cancel()
    talking.cancel()
    with suppress(asyncio.CancelledError, StorageError, KeyError):
        await talking
    return node.life.ended.is_set()


async def customer_can_begin(node: DyingNode) -> bool:
    """Whether the agent's program is known."""
    agents = (await node.client.get("/api/agents")).json()["items"]
    return any(it["engine"].get("status") == "ready" for it in agents)


async def check_end(node: DyingNode, customer: Customer, shop: Shop, point: Point | None) -> str:
    """The turn ends, alike or unknown, and its money went back at most once."""
    try:
        async with asyncio.timeout(WAIT_S):
            turn = await customer.see_through(node)
        reply = await customer.reply(node)
        assert shop.refunds[customer.about] <= 1
        if turn["status"] == "FAILED":
            assert turn["error"]["code"] == "OUTCOME_UNKNOWN"
        else:
            assert (turn["status"], reply["content"]) == ("COMPLETED", SAID)
            assert shop.refunds[customer.about] == 1
        assert [it for it in reply["parts"] if it["type"] == "notice"] == []
    except BaseException as exc:
        exc.add_note(f"{point} {node.life.commits}")
        raise
    return turn["status"]


@pytest.mark.parametrize(("database", "death"), [("sqlite", Death.BEFORE), ("postgres", Death.AFTER)])
async def test_program_survives_the_death_of_its_node_at_every_commit(
    tmp_path: Path,
    model: ScriptedModel,
    postgres: Postgres,
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
    death: Death,
):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    model.otherwise = kind_sentence
    statuses = Counter[str]()
    async with settings_on(database, model, tmp_path, postgres) as settings:
        broken: tuple[Customer, Point] | None = None
        for number in count(1):
            point = Point(number, death)
            async with dying_node(settings, [orders_of(shop)]) as node:
                await node.expire_leases()
                if broken is not None:
                    statuses[await check_end(node, broken[0], shop, broken[1])] += 1
                customer = Customer(f"{point}")
                if not await break_off(node, customer, point):
                    statuses[await check_end(node, customer, shop, None)] += 1
                    break
                broken = customer, point
    assert statuses["COMPLETED"] > 5
    assert 1 <= statuses["FAILED"] <= 3
