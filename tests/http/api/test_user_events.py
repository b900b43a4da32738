"""`/api/me/events`: every tab hears what happens to its user's things, and nothing of anybody else's."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.postgres import Postgres
from tests.talking import Talk, talking
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait, scripted_settings, until


class Tab:
    """Somebody's page, which listens."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.has_ended = False

    @property
    def types(self) -> list[str]:
        """What it has heard. A second `reset` follows if its node begins to listen to others only then."""
        types = [event["type"] for event in self.heard]
        return [it for at, it in enumerate(types) if it != "reset" or types[at - 1 : at] != ["reset"]]

    @property
    def conversations(self) -> list[str | None]:
        return [event.get("conversationId") for event in self.heard]

    async def listen(self, response: httpx.Response) -> None:
        head: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "data":
                event = msgspec.json.decode(value)
                assert head == {"id": event["id"], "event": event["type"]}
                self.heard.append(event)
            elif name in {"id", "event"}:
                head[name] = value
        self.has_ended = True

    async def until(self, *types: str) -> None:
        """Waits until it has heard this, and asserts that it has heard nothing else."""
        await until(lambda: len(self.types) >= len(types))
        assert self.types == list(types)

    async def until_told_of(self, *conversations: str) -> None:
        """Waits until it has heard of these."""
        await until(lambda: {*conversations} <= {*self.conversations})


@asynccontextmanager
async def tab(client: httpx.AsyncClient, after: str | None = None) -> AsyncGenerator[Tab]:
    headers = {} if after is None else {"Last-Event-ID": after}
    async with client.stream("GET", "/api/me/events", headers=headers) as response:
        assert response.status_code == 200
        found = Tab()
        listening = asyncio.create_task(found.listen(response))
        try:
            yield found
        finally:
            listening.cancel()


async def test_page_hears_of_a_conversation_its_title_its_turns_and_its_end(talk: Talk, model: ScriptedModel):
    model.script([Say("Because.")])
    async with tab(talk.client) as page:
        await page.until("reset")
        conversation = await talk.titled_conversation()
        await page.until("reset", "conversation_created")
        await talk.client.patch(f"/api/conversations/{conversation}", json={"title": "Reasons"})
        await talk.client.patch(f"/api/conversations/{conversation}", json={"status": "archived"})
        await talk.client.patch(f"/api/conversations/{conversation}", json={"pinned": True})
        turn_id = (await talk.ask(conversation))["turnId"]
        await talk.client.delete(f"/api/conversations/{conversation}")
        await page.until(
            "reset",
            "conversation_created",
            "conversation_renamed",
            "conversation_changed",
            "conversation_changed",
            "turn_started",
            "turn_ended",
            "conversation_deleted",
        )
    assert {event["conversationId"] for event in page.heard[1:]} == {conversation}
    assert [event.get("turnId") for event in page.heard[5:]] == [turn_id, turn_id, None]
    assert {name for event in page.heard for name in event} <= {"id", "type", "conversationId", "turnId"}


async def test_other_tabs_hear_that_a_conversation_is_deleted_restored_and_purged(talk: Talk):
    conversation = await talk.titled_conversation()
    path = f"/api/conversations/{conversation}"
    async with tab(talk.client) as page:
        await page.until("reset")
        await talk.client.delete(path)
        await talk.client.post(f"{path}/restore")
        await talk.client.delete(path)
        await talk.client.delete(path, params={"purge": "true"})
        deleted, restored = "conversation_deleted", "conversation_created"
        await page.until("reset", deleted, restored, deleted, deleted)
        assert (await talk.client.delete(path, params={"purge": "true"})).status_code == 404
    assert {event["conversationId"] for event in page.heard[1:]} == {conversation}


async def test_every_tab_hears_that_a_turn_asks_its_user_and_that_it_was_answered(
    talk: Talk, model: ScriptedModel
):
    model.script([UseTool("ask_user", {"question": "Which?"})], [Say("That one.")])
    conversation = await talk.titled_conversation(settings={"askUser": True})
    async with tab(talk.client) as one, tab(talk.client) as other:
        turn_id = await talk.begin(conversation)
        asked = ("reset", "turn_started", "approval_opened", "turn_paused")
        for page in (one, other):
            await page.until(*asked)
        request_id = one.heard[2]["requestId"]
        answer = {"action": "answer", "content": "the red one"}
        await talk.client.post(f"/api/turns/{turn_id}/approvals/{request_id}", json=answer)
        await until(lambda: len(one.heard) == len(other.heard) == 7)
        assert sorted(one.types[4:]) == ["approval_answered", "turn_ended", "turn_started"]
    assert one.heard == other.heard


async def test_change_of_the_queue_reaches_other_tabs(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("one")], [Say("two")])
    conversation = await talk.titled_conversation()
    await talk.begin(conversation)
    path = f"/api/conversations/{conversation}"
    async with tab(talk.client) as page:
        body = {"content": "next", "whenBusy": "queue"}
        queued = (await talk.client.post(f"{path}/messages", json=body)).json()["messageId"]
        await talk.client.patch(f"{path}/queued/{queued}", json={"content": "then"})
        await talk.client.delete(f"{path}/queued/{queued}")
        await page.until("reset", *["conversation_changed"] * 3)
    gate.open()


async def test_page_that_was_away_hears_what_it_missed(talk: Talk):
    async with tab(talk.client) as page:
        await page.until("reset")
        await talk.conversation()
        await page.until("reset", "conversation_created")
    missed = await talk.conversation()
    async with tab(talk.client, page.heard[-1]["id"]) as page:
        await page.until("conversation_created")
    assert page.heard[0]["conversationId"] == missed
    async with tab(talk.client, page.heard[-1]["id"]) as page:
        await talk.conversation()
        await page.until("conversation_created")


async def test_page_that_comes_from_elsewhere_is_told_to_read_everything_again(talk: Talk):
    for unknown in ("another-node-7", "", "7", "-1"):
        async with tab(talk.client, unknown) as page:
            await page.until("reset")


async def test_stream_ends_when_its_node_does_and_none_begins_there(talk: Talk):
    async with tab(talk.client) as page:
        await page.until("reset")
        await (await talk.app.services()).turns.drain(0)
        await until(lambda: page.has_ended)
    refused = await talk.client.get("/api/me/events")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "SHUTTING_DOWN")


async def test_what_happens_on_one_node_is_heard_once_on_every_other(
    postgres: Postgres, model: ScriptedModel, tmp_path: Path
):
    settings = scripted_settings(
        model,
        data=tmp_path,
        database_url=postgres.create_database(),
        secret_key="k" * 40,
        embedding_url="off",
    )
    async with (
        talking(settings) as here,
        talking(settings) as there,
        tab(here.client) as one,
        tab(there.client) as other,
    ):

        async def both_listen() -> bool:
            await here.conversation()
            return bool(one.heard and other.heard[1:])

        await until(both_listen)
        made = [await here.conversation(), await there.conversation()]
        for page in (one, other):
            await page.until_told_of(*made)
            assert sorted(it for it in page.conversations if it in made) == sorted(made)
