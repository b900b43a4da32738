"""The texts of receipts: kept once, and gone with the last receipt that names them, on every database."""

import asyncio

import psycopg
import pytest

from tests.making import (
    ALICE,
    BOB,
    NOW,
    chunk_of,
    keep_agent,
    keep_begun,
    keep_conversation,
    keep_receipt,
    make_receipt,
    said,
)
from threadkeep.context.call_receipts import CallReceipts
from threadkeep.context.request import rebuild_request
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import LogChunk, Text
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Turn
from threadkeep.ports.gateway import ModelMessage, ModelRequest, TextBlock
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store
from threadkeep.testing.waiting import PATIENCE_S, until

TEXTS = Statement("SELECT text FROM tk_prompt_texts ORDER BY text")
TAKE_OVER = Statement("UPDATE tk_turns SET fence = fence + 1 WHERE id = :id")
WAITING = Statement(
    "SELECT 1",
    postgres="SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
)
on_postgres = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)


async def keep_turn_in(store: Store, conversation: Conversation) -> Turn:
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    return begun.turn


async def keep_texts(store: Store, conversation: Conversation, *texts: str) -> None:
    turn = await keep_turn_in(store, conversation)
    await keep_receipt(store, turn, make_receipt(), {f"{text:>064}": text for text in texts})


async def kept(database: Database) -> list[str]:
    return [text for (text,) in await database.fetch(TEXTS())]


async def test_purged_conversation_takes_the_texts_along_that_only_it_needs(store: Store, database: Database):
    agent = await keep_agent(store)
    gone, stays = [await keep_conversation(store, agent) for _ in range(2)]
    await keep_texts(store, gone, "shared", "secret")
    await keep_texts(store, stays, "shared", "own")
    assert not await store.conversations.purge(BOB, gone.id)
    assert await kept(database) == ["own", "secret", "shared"]
    assert await store.conversations.purge(ALICE, gone.id)
    assert await kept(database) == ["own", "shared"]
    assert await store.conversations.purge(ALICE, stays.id)
    assert await kept(database) == []


async def test_purge_of_deleted_conversations_takes_their_texts_along(store: Store, database: Database):
    agent = await keep_agent(store)
    old, young = [await keep_conversation(store, agent) for _ in range(2)]
    for conversation, deleted_at in ((old, NOW), (young, NOW + 10)):
        await keep_texts(store, conversation, "shared", f"deleted at {deleted_at - NOW}")
        await store.conversations.delete(ALICE, conversation.id, deleted_at)
    assert await store.conversations.purge_deleted_before(NOW + 5) == [old.id]
    assert await kept(database) == ["deleted at 10", "shared"]


async def test_deleted_user_takes_the_texts_of_their_conversations_along(store: Store, database: Database):
    public, own = [await keep_agent(store, ALICE, name=name, visibility="public") for name in ("a", "b")]
    for agent, user, text in (
        (public, ALICE, "with both"),
        (own, ALICE, "own"),
        (public, BOB, "another's"),
    ):
        await keep_texts(store, await keep_conversation(store, agent, user), "shared", text)
    assert await store.users.delete(ALICE, NOW)
    assert await kept(database) == ["another's", "shared"]


async def test_text_that_nobody_names_is_forgotten_later_too(store: Store, database: Database):
    """Where a host application has deleted the user in the database that we share."""
    conversation = await keep_conversation(store, await keep_agent(store))
    await keep_texts(store, conversation, "secret")
    await database.execute(Statement("DELETE FROM tk_users WHERE id = :id")(id=ALICE))
    assert await kept(database) == ["secret"]
    assert await store.receipts.forget_texts() == 1
    assert await kept(database) == []


@on_postgres
async def test_text_that_is_there_already_is_not_forgotten_while_a_receipt_that_names_it_is_being_kept(
    store: Store, database: Database, database_url: str
):
    agent = await keep_agent(store)
    turn, earlier = [await keep_turn_in(store, await keep_conversation(store, agent)) for _ in range(2)]
    texts = {"a": "first", "b": "second"}
    await keep_receipt(store, earlier, make_receipt(), {"a": "first"})
    await keep_receipt(store, turn, make_receipt(), {})
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("INSERT INTO tk_prompt_texts (sha256, text) VALUES ('b', 'second')")
        await other.commit()
        # Holds up whoever names the first text, after they have seen that both are there.
        await other.execute("INSERT INTO tk_receipt_texts (turn_id, sha256) VALUES (%s, 'a')", [turn.id])
        adding = asyncio.create_task(keep_receipt(store, turn, make_receipt(), texts))
        await until(lambda: _is_kept_waiting(database))
        await store.receipts.forget_texts()
        await other.rollback()
    await adding
    found = await store.receipts.get(turn.conversation_id, turn.id)
    assert found and found[1] == texts


@on_postgres
async def test_text_that_a_receipt_is_about_to_name_is_not_forgotten_and_keeps_nobody_waiting(
    store: Store, database: Database, database_url: str
):
    agent = await keep_agent(store)
    gone, stays = [await keep_conversation(store, agent) for _ in range(2)]
    await keep_texts(store, gone, "shared", "secret")
    turn = await keep_turn_in(store, stays)
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute(
            "INSERT INTO tk_receipts (turn_id, conversation_id, receipt) VALUES (%s, %s, '{}')",
            [turn.id, stays.id],
        )
        await other.execute(
            "INSERT INTO tk_receipt_texts (turn_id, sha256) VALUES (%s, %s)", [turn.id, f"{'shared':>064}"]
        )
        async with asyncio.timeout(PATIENCE_S):
            assert await store.conversations.purge(ALICE, gone.id)
            assert await store.receipts.forget_texts() == 0
        await other.commit()
    assert await kept(database) == ["shared"]
    assert await store.receipts.forget_texts() == 0


@on_postgres
async def test_many_who_keep_and_forget_the_same_texts_at_once_all_succeed(store: Store, database: Database):
    agent = await keep_agent(store)
    texts = [f"text {number}" for number in range(20)]

    async def come_and_go() -> None:
        for _ in range(5):
            conversation = await keep_conversation(store, agent)
            await keep_texts(store, conversation, *texts)
            assert await store.conversations.purge(ALICE, conversation.id)

    cleaning = [store.receipts.forget_texts() for _ in range(20)]
    await asyncio.gather(*(come_and_go() for _ in range(8)), *cleaning)
    await store.receipts.forget_texts()
    assert await kept(database) == []


async def _is_kept_waiting(database: Database) -> bool:
    return bool(await database.fetch(WAITING()))


async def test_receipt_is_stored_even_if_another_turns_events_are_refused(store: Store):
    agent = await keep_agent(store)
    turn, lost = [await keep_turn_in(store, await keep_conversation(store, agent)) for _ in range(2)]
    receipt = TurnReceipt(turn.id, turn.conversation_id, make_receipt(), {"a": "prompt"})
    somebody_elses = LogChunk(lost.id, 2, 2, "{}"), 99
    assert await store.log.append([somebody_elses], [(receipt, 1)]) == set()
    assert await store.receipts.get(turn.conversation_id, turn.id) == (make_receipt(), {"a": "prompt"})


@pytest.mark.parametrize("with_chunk", [False, True])
async def test_receipt_of_a_node_that_lost_the_turn_is_not_kept(
    store: Store, database: Database, with_chunk: bool
):
    turn = await keep_turn_in(store, await keep_conversation(store, await keep_agent(store)))
    await database.execute(TAKE_OVER(id=turn.id))
    stale, ours = (
        TurnReceipt(turn.id, turn.conversation_id, make_receipt(model=by), {by: by}) for by in ("old", "new")
    )
    chunks = [(LogChunk(turn.id, 2, 2, "{}"), 1)] if with_chunk else []
    assert await store.log.append(chunks, [(stale, 1)]) == set()
    await store.log.append([], [(ours, 2)])
    assert await store.receipts.get(turn.conversation_id, turn.id) == (ours.receipt, {"new": "new"})
    assert await kept(database) == ["new"]


async def test_receipt_that_is_not_stored_yet_is_stored_with_the_turns_end(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    receipt = TurnReceipt(begun.turn.id, conversation.id, make_receipt(), {"a": "prompt"})
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said("."), NOW)
    ended = begun.conversation.end_turn(begun.turn, reply, NOW)
    with pytest.raises(StorageConflict):
        await store.turns.end(ended, LogChunk(begun.turn.id, 2, 2, "{}"), 99, receipts=[receipt])
    assert await store.receipts.get(conversation.id, begun.turn.id) is None
    await store.turns.end(ended, LogChunk(begun.turn.id, 2, 2, "{}"), 1, receipts=[receipt])
    assert await store.receipts.get(conversation.id, begun.turn.id) == (make_receipt(), {"a": "prompt"})


def request_of(*texts: str) -> ModelRequest:
    messages = tuple(ModelMessage("user", (TextBlock(it),)) for it in texts)
    return ModelRequest(model="", system="Be kind.", messages=messages)


async def test_receipts_of_a_programs_calls_share_what_earlier_ones_had(store: Store, database: Database):
    conversation = await keep_conversation(store, await keep_agent(store))
    turn = await keep_turn_in(store, conversation)
    receipts = CallReceipts(turn.id, conversation.id)
    requests = [
        request_of("a", "b"),
        request_of("x"),
        request_of("a", "b", "c"),
        request_of("a", "b", "c", "d"),
        request_of("a", "other"),
    ]
    made = [receipts.receipt(at, "some", it) for at, it in enumerate(requests, 1)]
    assert [(it.receipt.shared_call, len(it.receipt.segments)) for it in made] == [
        (0, 2), (0, 1), (1, 1), (3, 1), (4, 1)
    ]  # fmt: skip
    chunk = chunk_of(turn.id, 2, Text("a"))
    assert await store.log.append([(chunk, 1)], [(it, 1) for it in made[:2]]) == {turn.id}
    assert await store.log.append([], [(it, 1) for it in made[2:]]) == set()
    assert await store.log.append([], [(it, 9) for it in made]) == set()  # a node that lost the turn
    for call, request in enumerate(requests, 1):
        found = await store.receipts.get_call(conversation.id, turn.id, call)
        assert found is not None
        rebuilt = rebuild_request(*found)
        assert (rebuilt.messages, rebuilt.system) == (request.messages, request.system)
    assert await store.receipts.get_call(conversation.id, turn.id, 6) is None
    assert await store.receipts.get(conversation.id, turn.id) == await store.receipts.get_call(
        conversation.id, turn.id, 1
    )
    assert await store.conversations.purge(ALICE, conversation.id)
    assert await kept(database) == []


async def test_receipt_of_a_later_call_without_the_first_is_left_out(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    turn = await keep_turn_in(store, conversation)
    made = CallReceipts(turn.id, conversation.id).receipt(2, "some", request_of("a"))
    assert await store.log.append([(chunk_of(turn.id, 2, Text("a")), 1)], [(made, 1)]) == {turn.id}
    assert await store.receipts.get_call(conversation.id, turn.id, 2) is None
