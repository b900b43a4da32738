"""Queues, on both databases: their order, and every race with the turn before them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.making import (
    ALICE,
    NOW,
    all_messages,
    chunk_of,
    keep_agent,
    keep_begun,
    keep_conversation,
    keep_ended,
    opened,
    said,
)
from threadkeep.domain.conversation import BegunTurn, EndedTurn
from threadkeep.domain.errors import RateLimited, StorageConflict
from threadkeep.domain.events import Done, LogChunk, UserMessage
from threadkeep.domain.ids import IdempotencyKey, KeyId, new_uuid
from threadkeep.domain.message import MessageStatus, Usage
from threadkeep.domain.queued import MOST_QUEUED, QueueChange, QueuedMessage
from threadkeep.domain.turn import Lease, TurnStatus
from threadkeep.storage.queue import QueueState
from threadkeep.storage.store import Store

LEASE = Lease("a-node", 1, 10**9)


async def begin(store: Store) -> BegunTurn:
    begun = (await keep_conversation(store, await keep_agent(store))).begin_turn("1?", NOW)
    await keep_begun(store, begun)
    return begun


async def queue(
    store: Store, begun: BegunTurn, content: str, *, steers: bool = False, key: IdempotencyKey | None = None
) -> QueuedMessage:
    steered = begun.turn.id if steers else None
    message = QueuedMessage.of(begun.conversation.id, content, NOW, steers_turn_id=steered)
    await store.queue.add(message, begun.turn.id, key)
    return message


def ended(begun: BegunTurn, status: MessageStatus = MessageStatus.COMPLETED) -> EndedTurn:
    reply = begun.assistant_message.finish(status, said("one"), NOW + 1)
    return begun.conversation.end_turn(begun.turn, reply, NOW + 1)


def last_chunk(begun: BegunTurn) -> LogChunk:
    return chunk_of(begun.turn.id, 2, Done("COMPLETED", begun.assistant_message.id, Usage(0, 0), "end_turn"))


def next_turn_of(end: EndedTurn, message: QueuedMessage) -> BegunTurn:
    begun = end.conversation.begin_turn(message.content, NOW + 1, message_id=message.id)
    return opened(replace(begun, queue=QueueChange(message)), LEASE)


async def contents(store: Store, begun: BegunTurn) -> list[str]:
    return [it.content for it in await store.queue.waiting(begun.conversation.id)]


async def test_messages_wait_in_their_order(store: Store):
    begun = await begin(store)
    await asyncio.gather(*(queue(store, begun, f"{number}") for number in range(5)))
    waiting = await store.queue.waiting(begun.conversation.id)
    assert sorted(it.content for it in waiting) == ["0", "1", "2", "3", "4"]
    await store.queue.remove(begun.conversation.id, waiting[-1].id, NOW)
    last = await queue(store, begun, "last")
    assert await store.queue.waiting(begun.conversation.id) == [*waiting[:-1], last]
    key_id = KeyId(new_uuid())
    edited = await store.queue.edit(begun.conversation.id, waiting[0].id, "first", key_id=key_id)
    assert edited is not None and edited.key_id == key_id  # who edits it pays for it
    assert edited is not None
    assert (edited.id, edited.content) == (waiting[0].id, "first")
    assert (await contents(store, begun))[0] == "first"
    other = await begin(store)
    assert not await store.queue.remove(other.conversation.id, last.id, NOW)
    assert await store.queue.edit(other.conversation.id, last.id, "x") is None


async def test_queue_has_room_for_so_many(store: Store):
    begun = await begin(store)
    for number in range(MOST_QUEUED):
        await queue(store, begun, f"{number}")
    with pytest.raises(RateLimited):
        await queue(store, begun, "one too many")
    assert len(await contents(store, begun)) == MOST_QUEUED


async def test_completed_turn_does_not_end_before_it_has_seen_what_is_queued(store: Store):
    begun = await begin(store)
    message = await queue(store, begun, "2?")
    with pytest.raises(StorageConflict):
        await store.turns.end(ended(begun), last_chunk(begun), 1)
    assert await store.queue.state_for(begun.turn.id, 1) == QueueState(1, message)
    assert await store.queue.state_for(begun.turn.id, 2) is None
    await store.queue.remove(begun.conversation.id, message.id, NOW)
    assert await store.queue.state_for(begun.turn.id, 1) == QueueState(1, None)
    await store.turns.end(ended(begun), last_chunk(begun), 1, queue_version=1)
    assert await store.queue.state_for(begun.turn.id, 1) is None


@pytest.mark.parametrize("status", [MessageStatus.FAILED, MessageStatus.CANCELLED])
async def test_turn_that_did_not_complete_leaves_the_queue_alone(store: Store, status: MessageStatus):
    begun = await begin(store)
    message = await queue(store, begun, "2?")
    await keep_ended(store, ended(begun, status))
    assert await store.queue.waiting(begun.conversation.id) == [message]


async def test_nothing_is_queued_behind_a_turn_that_has_ended(store: Store):
    begun = await begin(store)
    await keep_ended(store, ended(begun))
    with pytest.raises(StorageConflict):
        await queue(store, begun, "2?")
    assert await contents(store, begun) == []


async def test_next_turn_begins_in_the_commit_that_ends_the_one_before(store: Store):
    begun = await begin(store)
    message = await queue(store, begun, "2?", key=IdempotencyKey("k", "hash"))
    rest = await queue(store, begun, "3?")
    end = ended(begun)
    next_turn = next_turn_of(end, message)
    await store.turns.end(end, last_chunk(begun), 1, queue_version=2, next_turn=next_turn)
    assert await store.turns.status(begun.turn.id) is TurnStatus.COMPLETED
    turn = next_turn.turn
    assert await store.turns.get(ALICE, turn.id) == turn
    assert await store.conversations.get(ALICE, begun.conversation.id) == next_turn.conversation
    assert await store.queue.waiting(begun.conversation.id) == [rest]
    assert (await all_messages(store, begun.conversation))[2].id == message.id
    assert await store.log.read(turn.id, 0) == [next_turn.opening]
    # The message's key is its turn's, and that turn knows that there is more.
    assert await store.turns.find_by_key(begun.conversation.id, "k") == (turn, "hash")
    assert await store.queue.state_for(turn.id, 1) == QueueState(1, rest)


@pytest.mark.parametrize("change", ["edit", "remove", "unstorable"])
async def test_turn_runs_on_where_the_next_one_cannot_begin(store: Store, change: str):
    begun = await begin(store)
    message = await queue(store, begun, "2?")
    end = ended(begun)
    next_turn = next_turn_of(end, message)
    if change == "edit":
        await store.queue.edit(begun.conversation.id, message.id, "2!")
    elif change == "remove":
        await store.queue.remove(begun.conversation.id, message.id, NOW)
    else:
        unstorable = LogChunk(next_turn.turn.id, 1, 1, cast("Any", None))
        next_turn = opened(next_turn, LEASE, unstorable)
    before = await store.queue.waiting(begun.conversation.id)
    with pytest.raises(StorageConflict):
        await store.turns.end(end, last_chunk(begun), 1, queue_version=1, next_turn=next_turn)
    assert await store.turns.status(begun.turn.id) is TurnStatus.RUNNING
    assert await store.turns.status(next_turn.turn.id) is None
    assert await store.conversations.get(ALICE, begun.conversation.id) == begun.conversation
    assert await store.queue.waiting(begun.conversation.id) == before
    assert await store.log.read(begun.turn.id, 1) == []


async def test_of_a_new_message_and_the_end_of_the_turn_one_comes_first(store: Store):
    for _ in range(10):
        begun = await begin(store)
        added, end = await asyncio.gather(
            queue(store, begun, "2?"),
            store.turns.end(ended(begun), last_chunk(begun), 1),
            return_exceptions=True,
        )
        assert isinstance(added, StorageConflict) != isinstance(end, StorageConflict)
        assert await contents(store, begun) == ([] if isinstance(added, StorageConflict) else ["2?"])


async def test_of_an_edit_and_the_next_turn_none_is_lost(store: Store):
    for _ in range(10):
        begun = await begin(store)
        message = await queue(store, begun, "2?")
        end = ended(begun)
        edited, refused = await asyncio.gather(
            store.queue.edit(begun.conversation.id, message.id, "2!"),
            store.turns.end(end, last_chunk(begun), 1, queue_version=1, next_turn=next_turn_of(end, message)),
            return_exceptions=True,
        )
        assert (edited is None) != isinstance(refused, StorageConflict)
        assert await contents(store, begun) == ([] if edited is None else ["2!"])


async def test_held_message_is_sent_and_a_new_one_is_queued_behind_it(store: Store):
    begun = await begin(store)
    first = await queue(store, begun, "2?")
    end = ended(begun, MessageStatus.FAILED)
    await keep_ended(store, end)
    added = QueuedMessage.of(begun.conversation.id, "3?", NOW)
    again = end.conversation.begin_turn("2?", NOW, message_id=first.id)
    change = QueueChange(first, added, IdempotencyKey("k", "hash"))
    await store.turns.begin(opened(replace(again, queue=change), LEASE))
    assert await store.queue.state_for(again.turn.id, 1) == QueueState(1, added)
    assert await store.queue.find_by_key(begun.conversation.id, "k") == (added, "hash")


async def test_held_message_that_was_removed_is_not_sent(store: Store):
    begun = await begin(store)
    first = await queue(store, begun, "2?")
    end = ended(begun, MessageStatus.FAILED)
    await keep_ended(store, end)
    again = end.conversation.begin_turn("2?", NOW, message_id=first.id)
    await store.queue.remove(begun.conversation.id, first.id, NOW)
    with pytest.raises(StorageConflict):
        await store.turns.begin(opened(replace(again, queue=QueueChange(first)), LEASE))
    assert await store.conversations.get(ALICE, begun.conversation.id) == end.conversation


async def test_key_is_queued_once(store: Store):
    begun = await begin(store)
    key = IdempotencyKey("k", "hash")
    message = await queue(store, begun, "2?", key=key)
    with pytest.raises(StorageConflict):
        await queue(store, begun, "2?", key=key)
    assert await store.queue.find_by_key(begun.conversation.id, "k") == (message, "hash")
    assert await store.queue.find_by_key(begun.conversation.id, "other") is None
    assert await contents(store, begun) == ["2?"]


def tell(begun: BegunTurn, messages: Sequence[QueuedMessage]) -> LogChunk:
    return chunk_of(begun.turn.id, 2, *(UserMessage(it.id, it.content) for it in messages))


async def test_steering_messages_leave_the_queue_in_the_commit_that_tells_of_them(store: Store):
    begun = await begin(store)
    id_, turn_id = begun.conversation.id, begun.turn.id
    assert await store.queue.take_in(id_, turn_id, 1, NOW, lambda it: tell(begun, it)) is None
    waits = await queue(store, begun, "later")
    steering = [
        await queue(store, begun, "now", steers=True),
        await queue(store, begun, "and this", steers=True, key=IdempotencyKey("k", "hash")),
    ]
    with pytest.raises(StorageConflict):  # another node's
        await store.queue.take_in(id_, turn_id, 2, NOW, lambda it: tell(begun, it))
    assert await store.queue.waiting(id_) == [*steering, waits]
    chunk = await store.queue.take_in(id_, turn_id, 1, NOW, lambda it: tell(begun, it))
    assert chunk == tell(begun, steering)
    assert await store.log.read(turn_id, 1) == [chunk]
    assert await store.queue.waiting(id_) == [waits]
    assert await store.queue.take_in(id_, turn_id, 1, NOW, lambda it: tell(begun, it)) is None
    assert not await store.queue.remove(id_, steering[1].id, NOW)
    # Whoever sends it again with its key is told so, however much later; its text is in the log.
    await queue(store, begun, "much later")
    assert await store.queue.find_by_key(id_, "k") == (replace(steering[1], content=""), "hash")


async def test_removed_message_does_not_come_back_when_it_is_sent_again(store: Store):
    begun = await begin(store)
    key = IdempotencyKey("k", "hash")
    message = await queue(store, begun, "2?", key=key)
    assert await store.queue.remove(begun.conversation.id, message.id, NOW)
    assert not await store.queue.remove(begun.conversation.id, message.id, NOW)
    assert await store.queue.find_by_key(begun.conversation.id, "k") == (replace(message, content=""), "hash")
    with pytest.raises(StorageConflict):
        await queue(store, begun, "2?", key=key)
    assert await contents(store, begun) == []


async def test_turn_of_a_held_message_is_found_by_both_keys(store: Store):
    begun = await begin(store)
    message = await queue(store, begun, "2?", key=IdempotencyKey("queued", "message"))
    end = ended(begun, MessageStatus.FAILED)
    await keep_ended(store, end)
    again = end.conversation.begin_turn("2?", NOW, message_id=message.id)
    request = IdempotencyKey("sent", "request")
    await store.turns.begin(opened(replace(again, key=request, queue=QueueChange(message)), LEASE))
    assert await store.turns.find_by_key(begun.conversation.id, "queued") == (again.turn, "message")
    assert await store.turns.find_by_key(begun.conversation.id, "sent") == (again.turn, "request")


async def test_queue_goes_with_its_conversation(store: Store):
    begun = await begin(store)
    await queue(store, begun, "2?")
    assert await store.conversations.purge(ALICE, begun.conversation.id)
    assert await contents(store, begun) == []
