"""How much a user stores: the counts are what a sum over everything would give, whoever writes."""

from dataclasses import replace
from typing import Any, cast

import httpx

from tests.conftest import Api
from tests.contract.stored import Stored
from tests.http.calls import items, new_agent, new_conversation
from tests.making import (
    ALICE,
    BOB,
    NOW,
    keep_agent,
    keep_begun,
    keep_call,
    keep_conversation,
    keep_ended,
    said,
)
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import AddedMessage, Conversation
from threadkeep.domain.ids import CompactionId, ConversationId, IdempotencyKey, new_uuid
from threadkeep.domain.message import MessageRole, MessageStatus
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import BegunWith
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.database.migrate import migrations
from threadkeep.storage.store import Store

KEPT = Statement("SELECT text_bytes FROM tk_conversations WHERE id = :id")


async def check_count(database: Database, conversation_id: ConversationId) -> int:
    """What a conversation counts for, if that is what the migration counts, which looks at everything."""
    ((kept,),) = await database.fetch(KEPT(id=conversation_id))
    (migration,) = [it for it in migrations(database.dialect) if it.name.endswith("_limits")]
    (recount,) = [it for it in migration.statements if it.sqlite.startswith("UPDATE tk_conversations")]
    await database.execute(recount())
    ((counted,),) = await database.fetch(KEPT(id=conversation_id))
    assert kept == counted
    return kept


async def test_every_write_is_counted(stored: Stored):
    store, database = stored.store, stored.database
    agent = await keep_agent(store)
    before = await store.stored_bytes.of_user(ALICE)
    conversation = await keep_conversation(store, agent)
    sizes = [await check_count(database, conversation.id)]

    async def grew() -> None:
        sizes.append(await check_count(database, conversation.id))
        assert sizes[-1] > sizes[-2]

    tool = ClientTool(name="look", description="Schaut nach: 天.", parameters={"type": "object"})
    brought = BegunWith(tools=(tool,))
    begun = conversation.begin_turn("Warum? 为什么？", NOW, model="scripted", title=None, begun_with=brought)
    await keep_begun(store, begun)
    await grew()
    payload = Payload.of(b"abc", conversation.id, PayloadKind.VALUE, "text/plain", NOW)
    for _ in range(2):  # a retry counts nothing
        await store.payloads.add(payload, b"abc")
    await grew()
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said("Darum: é"), NOW + 1)
    ended = begun.conversation.end_turn(begun.turn, reply, NOW + 1)
    await keep_ended(store, ended)
    await grew()
    called, _ = await keep_call(
        store, ended.conversation, "c1", arguments={"q": "天气"}, result="Sonnig, 25 °C"
    )
    await grew()
    added = [AddedMessage(MessageRole.USER, it) for it in ("Noch etwas.", "é")]
    grown, messages = called.add(added, NOW + 2, title=None)
    await store.messages.add(grown, messages)
    await grew()
    await store.conversations.update(ALICE, conversation.id, lambda it: replace(it, metadata={"k": "v" * 99}))
    await grew()
    compaction = Compaction(CompactionId(new_uuid()), conversation.id, 1, 2, "Summe", 2, 10, 1, NOW)
    await store.compactions.add(compaction)
    await grew()
    assert await store.compactions.undo(compaction)
    assert await check_count(database, conversation.id) == sizes[-2]
    assert await store.stored_bytes.of_user(ALICE) == before + sizes[-2]
    assert await store.stored_bytes.of_conversation(conversation.id) == sizes[-2]
    assert await store.stored_bytes.of_user(BOB) == 0
    await check_queue(store, await keep_conversation(store, agent), brought)
    await store.conversations.delete(ALICE, conversation.id, NOW)
    assert await store.stored_bytes.of_user(ALICE) == before + sizes[-2]
    await store.conversations.purge(ALICE, conversation.id)
    assert await store.stored_bytes.of_user(ALICE) == before


async def check_queue(store: Store, conversation: Conversation, brought: BegunWith) -> None:
    """What waits counts until it leaves, and the turn that it begins counts instead."""
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    sizes = [await store.stored_bytes.of_user(ALICE)]

    async def grew() -> int:
        sizes.append(await store.stored_bytes.of_user(ALICE))
        return sizes[-1] - sizes[-2]

    waiting = [
        QueuedMessage.of(conversation.id, text, NOW, begun_with=brought) for text in ("天" * 100, "b" * 100)
    ]
    for message, texts in zip(waiting, (300, 100), strict=True):
        await store.queue.add(message, begun.turn.id, IdempotencyKey.of(message.id, message.content))
        assert await grew() > 200 + texts + 100
    assert await store.queue.edit(conversation.id, waiting[1].id, "b" * 150)
    assert await grew() == 50
    assert await store.queue.remove(conversation.id, waiting[1].id, NOW)
    assert await grew() == sizes[1] - sizes[2] - 50
    await store.conversations.purge(ALICE, conversation.id)


async def test_forks_cards_and_runs_of_other_engines_are_counted(api: Api, alice: httpx.AsyncClient):
    database: Database = cast("Any", api.store.stored_bytes)._database
    agent = (await new_agent(alice))["id"]
    conversation = (await new_conversation(alice, agent))["id"]
    path = f"/api/conversations/{conversation}"
    events = [
        {
            "id": "1",
            "type": "ExecutionStarted",
            "runId": "r",
            "at": 1,
            "input": "Was 天?",
        },
        {"id": "2", "type": "ExecutionCompleted", "runId": "r", "at": 2, "output": "é"},
    ]
    sizes = [await check_count(database, conversation)]
    for sent in ([events[0]], [events[0]], events):  # a repeated event counts once
        response = await alice.post(f"{path}/executions", json={"events": sent})
        assert response.status_code == 200, response.text
        sizes.append(await check_count(database, conversation))
    assert sizes[0] < sizes[1] == sizes[2]
    (_, reply) = await items(alice, f"{path}/messages")
    forked = await alice.post(f"{path}/fork", json={"messageId": reply["id"]})
    assert forked.status_code == 201, forked.text
    assert await check_count(database, forked.json()["id"]) > 400
    card = {"agentId": agent, "userId": "alice", "title": "T", "summary": "S" * 99, "priority": "P1"}
    briefing = (await alice.post("/api/briefings", json=card)).json()["id"]
    started = (await alice.post(f"/api/briefings/{briefing}/actions/start_conversation")).json()
    assert await check_count(database, started["conversationId"]) > 400
