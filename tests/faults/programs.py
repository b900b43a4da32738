"""Turns of agents in code as their users see them, at nodes within the test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.conftest import TEMPLATE
from tests.faults.dying import DyingNode
from tests.faults.scene import settings_of
from tests.postgres import Postgres
from tests.talking import JSON
from threadkeep import Settings
from threadkeep.testing import ScriptedModel, until

OVER = ("COMPLETED", "FAILED", "CANCELLED")


@asynccontextmanager
async def settings_on(
    database: str, model: ScriptedModel, folder: Path, postgres: Postgres, **settings: Any
) -> AsyncGenerator[Settings]:
    """Those of nodes that share an empty database of this kind; their programs pause at once for the user."""
    settings = {"agents_pause_after_s": 0.05, **settings}
    if database == "sqlite":
        yield settings_of(model, folder, f"sqlite:///{folder}/data/threadkeep.db", **settings)
        return
    url = postgres.borrow_database(TEMPLATE)
    yield settings_of(model, folder, url, **settings)
    postgres.give_back(url)


@dataclass(frozen=True)
class Sent:
    """A message to an agent in code."""

    agent: str
    text: str
    conversation: str
    turn_id: str

    async def turn(self, node: DyingNode) -> dict[str, Any]:
        """How its turn stands."""
        return (await node.client.get(f"/api/turns/{self.turn_id}")).json()

    async def until(self, node: DyingNode, *statuses: str) -> dict[str, Any]:
        """The turn once it has one of these statuses; by default, once it is over."""

        async def is_so() -> bool:
            return (await self.turn(node))["status"] in (statuses or OVER)

        try:
            await until(is_so)
        except TimeoutError as exc:
            exc.add_note(f"{self.agent}, {self.text}: {await self.turn(node)}")
            raise
        return await self.turn(node)

    async def answer(self, node: DyingNode, content: str = "yes") -> None:
        """Answers what the turn asks, once it asks."""
        await self.until(node, "WAITING")
        items = (await node.client.get("/api/approvals", params={"limit": 200})).json()["items"]
        (request,) = (it for it in items if it["turnId"] == self.turn_id)
        path = f"/api/turns/{self.turn_id}/approvals/{request['requestId']}"
        answered = await node.client.post(path, json={"action": "answer", "content": content})
        assert answered.status_code < 300, answered.text

    async def reply(self, node: DyingNode) -> dict[str, Any]:
        """What has become of it."""
        page = await node.client.get(f"/api/conversations/{self.conversation}/messages")
        return page.json()["items"][-1]

    async def steps(self, node: DyingNode) -> dict[str, Any]:
        """The page of its steps, as the agent's owner sees it."""
        return (await node.client.get(f"/api/turns/{self.turn_id}/steps", params={"limit": 200})).json()

    async def events(self, node: DyingNode) -> str:
        """All that its followers are sent."""
        return (await node.client.get(f"/api/turns/{self.turn_id}/events")).text

    async def seen(self, node: DyingNode) -> str:
        """All that its user is ever shown of it."""
        parts = await self.turn(node), await self.reply(node), await self.events(node)
        return msgspec.json.encode(parts).decode()


async def agent_ids(node: DyingNode) -> dict[str, str]:
    """The ids of the agents that a user sees, by their names."""
    page = await node.client.get("/api/agents", params={"limit": 200})
    return {it["name"]: it["id"] for it in page.json()["items"]}


async def send(node: DyingNode, name: str, text: str = "Go.") -> Sent:
    """Sends a message to an agent, in a new conversation."""
    agent_id = (await agent_ids(node))[name]
    path = f"/api/agents/{agent_id}/conversations"
    conversation = (await node.client.post(path, json={"title": "Titled"})).json()["id"]
    sent = await node.client.post(
        f"/api/conversations/{conversation}/messages", json={"content": text}, headers=JSON
    )
    assert sent.status_code == 202, sent.text
    return Sent(name, text, conversation, sent.json()["turnId"])


async def ask(node: DyingNode, name: str, text: str = "Go.") -> dict[str, Any]:
    """What has become of a message once its turn is over."""
    sent = await send(node, name, text)
    return await sent.until(node)
