"""What is written in pieces: seen by nobody before the last, stopped at any, never long in the event loop."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.api.test_caps import Capped, capped
from tests.http.api.test_imports import begin, ended, in_json
from tests.http.calls import Json, items, new_agent, refusal
from tests.http.test_isolation import bodies, refused, served_operations
from tests.imports.foreign import branched, chatgpt, said
from tests.imports.making import opened_store
from tests.making import ALICE, NOW, keep_agent
from tests.talking import Talk
from threadkeep import Settings
from threadkeep.cli.moving import export_user
from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import UserNotFound
from threadkeep.domain.ids import AgentId
from threadkeep.domain.message import MessageWindow
from threadkeep.imports.conversion import convert_conversation
from threadkeep.imports.foreign import ForeignConversation, ForeignMessage, ForeignText
from threadkeep.storage import path_moves
from threadkeep.storage.database import pieces
from threadkeep.storage.database.connector import Database
from threadkeep.storage.imports import writing
from threadkeep.testing import Say, ScriptedModel, until

__all__ = ["capped"]

PURGING = "DELETE /api/conversations/{conversation_id}"


@dataclass
class Paused:
    """An import that has written everything and waits before it shows it."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    written: list[Conversation] = field(default_factory=list[Conversation])


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Paused:
    paused = Paused()
    reveal = writing.Writer.reveal

    async def wait(writer: writing.Writer) -> bool:
        paused.written.append(writer._conversation)  # pyright: ignore[reportPrivateUsage]
        paused.reached.set()
        await paused.go_on.wait()
        return await reveal(writer)

    monkeypatch.setattr(writing.Writer, "reveal", wait)
    return paused


async def test_conversation_that_is_being_imported_is_found_on_no_route(
    api: Api, alice: httpx.AsyncClient, paused: Paused
):
    begun = await begin(alice, "conversations.json", in_json(branched()))
    await paused.reached.wait()
    (conversation,) = paused.written
    messages = await api.store.messages.page(conversation.id, MessageWindow(), offset=0, limit=9)
    ids = {
        "conversation_id": conversation.id,
        "message_id": messages[-1].id,
        "turn_id": next(it.turn_id for it in messages if it.turn_id),
    }
    tried = 0
    for operation in await served_operations(alice):
        for name in ids.keys() & {*operation.path_names}:
            url = operation.url(**dict.fromkeys(operation.path_names, "none") | {name: ids[name]})
            for body in bodies(operation):
                for query in ({}, {"purge": "true"}) if str(operation) == PURGING else ({},):
                    asked = await alice.request(
                        operation.method, url, json=body, params={**operation.needed_query, **query}
                    )
                    refused(asked, operation, name)
                    tried += 1
    assert tried > 20
    assert (await alice.get(f"/api/ai-sdk/chat/{conversation.id}")).json()["messages"] == []
    assert await items(alice, "/api/conversations") == []
    assert await items(alice, "/api/conversations", status="deleted") == []
    assert await items(alice, "/api/tool-results") == []
    assert await items(alice, "/api/search", q="lease") == []
    paused.go_on.set()
    assert (await ended(alice, begun))["imported"] == 1
    assert [it["id"] for it in await items(alice, "/api/conversations")] == [conversation.id]
    again = await ended(alice, await begin(alice, "conversations.json", in_json(branched())))
    assert (again["imported"], again["alreadyThere"]) == (0, 1)


async def test_import_that_is_stopped_within_a_conversation_adds_none_of_it(
    api: Api, alice: httpx.AsyncClient, paused: Paused
):
    begun = await begin(alice, "conversations.json", in_json(branched()))
    await paused.reached.wait()
    await alice.post(f"/api/imports/{begun.json()['id']}/stop")
    paused.go_on.set()
    run = await ended(alice, begun)
    assert (run["status"], run["imported"], run["leftOut"]) == ("STOPPED", 0, 0)
    assert await items(alice, "/api/conversations") == []
    again = await ended(alice, await begin(alice, "conversations.json", in_json(branched())))
    assert (again["imported"], again["alreadyThere"]) == (1, 0)


async def test_deleting_a_user_ends_the_import_and_leaves_nothing(
    api: Api, alice: httpx.AsyncClient, paused: Paused
):
    await begin(alice, "conversations.json", in_json(branched()))
    await paused.reached.wait()
    assert (await alice.delete("/api/users/alice")).status_code == 204
    paused.go_on.set()
    services = await api.app.services()
    await until(lambda: not services.import_runs._running)  # pyright: ignore[reportPrivateUsage]
    assert await api.store.whole_conversations.owner_of("conversation", paused.written[0].id) is None
    assert await api.store.whole_conversations.owner_of("user", "alice") is None


async def test_deletion_that_a_crash_interrupted_is_finished_by_the_cleanup(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    await new_agent(alice)
    services = await api.app.services()

    async def killed(*_: object) -> None:
        raise UserNotFound

    with monkeypatch.context() as patched:
        patched.setattr("threadkeep.storage.users.SqlUsers._purge", killed)
        assert (await alice.delete("/api/users/alice")).status_code == 404
    refusal(await alice.get("/api/conversations"), 401, "UNAUTHENTICATED")
    refusal(await api.as_new_user("alice").get("/api/conversations"), 401, "UNAUTHENTICATED")
    assert await api.store.whole_conversations.owner_of("user", "alice") == "alice"
    await services.users.sweep()
    assert await api.store.whole_conversations.owner_of("user", "alice") is None


MESSAGES = 1500
MOST_S = 0.05
"""What nothing in the event loop may cost, however large it is."""


@asynccontextmanager
async def watched() -> AsyncGenerator[list[float]]:
    """The CPU time that the event loop spends without a pause, longest last."""
    slices: list[float] = []

    async def tick() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            slices.append(now - last)
            last = now

    ticking = asyncio.create_task(tick())
    yield slices
    ticking.cancel()
    slices.sort()


def long_conversation(agent_id: str, messages: int = MESSAGES) -> WholeConversation:
    """Many messages, one after the other."""
    said = [
        ForeignMessage(
            f"{it}", it % 2 == 0, (ForeignText("x" * 100),), NOW, follows=f"{it - 1}" if it else None
        )
        for it in range(messages)
    ]
    found = ForeignConversation("other", "long", "Long", NOW, NOW, tuple(said), said[-1].id)
    return convert_conversation(found, ALICE, AgentId(agent_id), NOW, {})[0]


@ONLY_SQLITE
async def test_export_of_somebody_else_gets_new_ids_beside_the_event_loop(
    api: Api, alice: httpx.AsyncClient, tmp_path: Path
):
    elsewhere, file = Settings.load({}, data=tmp_path / "elsewhere", secret_key="k" * 32), tmp_path / "a.zip"
    async with opened_store(elsewhere) as store:
        await store.whole_conversations.add(
            long_conversation((await keep_agent(store)).id, 2 * MESSAGES), lambda _: b""
        )
    assert await export_user(elsewhere, ALICE, file) == 0
    theirs = long_conversation((await new_agent(alice))["id"], 2 * MESSAGES)
    await api.store.whole_conversations.add(theirs, lambda _: b"")  # so that these ids are taken
    bob = api.as_user("bob")
    agent = await new_agent(bob)
    content = await asyncio.to_thread(file.read_bytes)
    async with watched() as importing:
        run = await ended(bob, await begin(bob, "a.zip", content, agentId=agent["id"]))
    assert (run["status"], run["imported"]) == ("COMPLETED", 1), run
    (listed,) = await items(bob, "/api/conversations")
    assert (listed["id"] != theirs.conversation.id, listed["messageCount"]) == (True, 2 * MESSAGES)
    assert importing[-1] < MOST_S, importing[-1]


@ONLY_SQLITE
async def test_long_conversation_never_keeps_the_event_loop(api: Api, alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    whole = long_conversation(agent["id"])
    path = f"/api/conversations/{whole.conversation.id}"
    last = {"messageId": whole.messages[-1].id}
    async with watched() as importing:
        await api.store.whole_conversations.add(whole, lambda payload: b"")
    async with watched() as forking:
        fork = await alice.post(f"{path}/fork", json=last)
    assert fork.json()["messageCount"] == MESSAGES
    async with watched() as sharing:
        assert (await alice.post(f"{path}/shares", json={})).status_code == 201
    async with watched() as purging:
        assert (await alice.delete(f"{path}?purge=true")).status_code == 204
    longest = {"import": importing[-1], "fork": forking[-1], "share": sharing[-1], "purge": purging[-1]}
    assert max(longest.values()) < MOST_S, longest


async def test_model_reads_the_path_that_a_request_moved_to_before_the_old_one_is_cleared_away(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pieces, "AT_ONCE", 2)
    monkeypatch.setattr(pieces, "FIRST_AT_ONCE", 2)
    go_on, cleared, settle = asyncio.Event(), asyncio.Event(), path_moves.settle_all

    async def later(database: Database) -> None:
        await go_on.wait()
        await settle(database)
        cleared.set()

    monkeypatch.setattr(path_moves, "settle_all", later)
    conversation = await talk.titled_conversation()
    url = f"/api/conversations/{conversation}"
    for number in (1, 2, 3):
        model.script([Say(f"a{number}")])
        await talk.ask(conversation, f"q{number}")
    _, reply, *_, last = await items(talk.client, f"{url}/messages")

    async def path() -> list[str]:
        return [it["content"] for it in await items(talk.client, f"{url}/messages")]

    async def post(what: str, body: Json) -> list[str]:
        """Asks for it; returns what the model was sent for that."""
        asked = await talk.client.post(f"{url}/{what}", json=body)
        assert asked.status_code == 200, asked.text
        return [it["content"] for it in model.requests[-1].body["messages"][1:]]

    model.script([Say("a1 once more")])
    assert await post("regenerate?wait=true", {"messageId": reply["id"]}) == ["q1"]
    assert await path() == ["q1", "a1 once more"]
    await post("path", {"messageId": last["id"]})
    assert await path() == ["q1", "a1", "q2", "a2", "q3", "a3"]
    model.script([Say("a1 edited")])
    assert await post("messages?wait=true", {"content": "q1 edited", "parentId": None}) == ["q1 edited"]
    assert await path() == ["q1 edited", "a1 edited"]
    model.script([Say("a4")])
    asked = await post("messages?wait=true", {"content": "q4", "parentId": last["id"]})
    assert asked == (moved := ["q1", "a1", "q2", "a2", "q3", "a3", "q4"])
    assert await path() == [*moved, "a4"]
    others = [it["content"] for it in await talk.messages(conversation) if it["status"] == "OVERWRITTEN"]
    assert others == ["a1 once more", "q1 edited", "a1 edited"]
    go_on.set()
    await cleared.wait()
    assert await path() == [*moved, "a4"]


async def test_no_more_messages_are_copied_or_added_than_the_operator_allows(
    capped: Capped, model: ScriptedModel
):
    model.script([Say("Yes.")], [Say("No.")])
    async with capped(conversation_messages=3) as talk:
        conversation = await talk.titled_conversation()
        for _ in range(2):  # a turn is never refused
            await talk.ask(conversation, "Why?")
        messages = await items(talk.client, f"/api/conversations/{conversation}/messages")
        assert len(messages) == 4
        path = f"/api/conversations/{conversation}/fork"
        full = refusal(
            await talk.client.post(path, json={"messageId": messages[-1]["id"]}), 409, "CONVERSATION_FULL"
        )
        assert full["details"] == {"limit": "conversationMessages", "most": 3}
        assert len(await items(talk.client, "/api/conversations")) == 1
        forked = await talk.client.post(path, json={"messageId": messages[1]["id"]})
        assert forked.json()["messageCount"] == 2
        assert [await added(talk, forked.json()["id"], count) for count in (2, 1)] == [409, 200]
        nodes = {f"{it}": (f"{it - 1}" if it else None, said("user", f"{it}?")) for it in range(4)}
        long = chatgpt(nodes, "3", conversation_id="long")
        run = await ended(
            talk.client, await begin(talk.client, "conversations.json", in_json(long, branched()))
        )
        left_out: list[Json] = run["problems"]
        assert [it["reason"] for it in left_out if "4 messages" in it["why"]] == ["too_large"]


async def added(talk: Talk, conversation: str, count: int) -> int:
    """Adds messages without a turn, as OpenAI's clients do."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]}
    path = f"/v1/conversations/conv_{conversation.replace('-', '')}/items"
    return (await talk.client.post(path, json={"items": [item] * count})).status_code
