"""Compactions in the store: one is in force, the newest can be undone, and nobody overwrites anybody."""

import asyncio
from dataclasses import replace

import pytest

from tests.making import ALICE, NOW, all_messages, keep_agent, keep_conversation, keep_turn, make_compaction
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import CompactionId, new_uuid
from threadkeep.storage.store import Store


def compaction(conversation: Conversation, from_seq: int, to_seq: int, summary: str = "S") -> Compaction:
    return make_compaction(conversation.id, from_seq, to_seq, summary)


async def long_talk(store: Store) -> Conversation:
    conversation = await keep_conversation(store, await keep_agent(store))
    for number in range(5):
        conversation = await keep_turn(store, conversation, f"q{number}", f"a{number}")
    return conversation


async def archived_to(store: Store, conversation: Conversation) -> int:
    found = await store.conversations.get(ALICE, conversation.id)
    assert found
    return found.archived_to_seq


async def test_newest_compaction_is_in_force_until_it_is_undone(store: Store):
    conversation = await long_talk(store)
    assert await store.compactions.current(conversation.id) is None
    first, second = compaction(conversation, 1, 4), compaction(conversation, 5, 8, "Later.")
    await store.compactions.add(first)
    assert await store.compactions.current(conversation.id) == first
    await store.compactions.add(second)
    assert await store.compactions.current(conversation.id) == second
    assert await store.compactions.get(conversation.id, first.id) == first
    assert await archived_to(store, conversation) == 8
    page = await store.compactions.page(conversation.id, before=None, offset=0, limit=5)
    assert page == [second, first]
    assert await store.compactions.page(conversation.id, before=8, offset=0, limit=5) == [first]

    assert not await store.compactions.undo(first)
    assert await store.compactions.undo(second)
    assert not await store.compactions.undo(second)
    assert (await store.compactions.current(conversation.id), await archived_to(store, conversation)) == (
        first,
        4,
    )
    assert await store.compactions.undo(first)
    assert (await store.compactions.current(conversation.id), await archived_to(store, conversation)) == (
        None,
        0,
    )
    assert await store.compactions.page(conversation.id, before=None, offset=0, limit=5) == []
    assert len(await all_messages(store, conversation)) == 10


async def test_of_many_at_once_one_is_kept(store: Store):
    conversation = await long_talk(store)
    many = [compaction(conversation, 1, 4 + number % 3) for number in range(8)]
    results = await asyncio.gather(*map(store.compactions.add, many), return_exceptions=True)
    assert [type(result) for result in results if result is not None] == [StorageConflict] * 7
    (kept,) = await store.compactions.page(conversation.id, before=None, offset=0, limit=9)
    assert await store.compactions.current(conversation.id) == kept


async def test_what_was_prepared_on_another_state_is_refused(store: Store):
    conversation = await long_talk(store)
    await store.compactions.add(compaction(conversation, 1, 4))
    for late in (compaction(conversation, 1, 6), compaction(conversation, 7, 8)):
        with pytest.raises(StorageConflict):
            await store.compactions.add(late)
    assert await archived_to(store, conversation) == 4


async def test_turn_that_goes_on_meanwhile_is_not_disturbed(store: Store):
    conversation = await long_talk(store)
    await store.compactions.add(compaction(conversation, 1, 4))
    grown = await keep_turn(store, conversation, "q", "a")  # begun before, and ended after
    assert grown.last_seq == 12
    assert await archived_to(store, conversation) == 4


async def test_deleted_conversation_is_not_compacted_and_purging_leaves_nothing(store: Store):
    conversation = await long_talk(store)
    await store.compactions.add(kept := compaction(conversation, 1, 4))
    await store.conversations.delete(ALICE, conversation.id, NOW)
    with pytest.raises(StorageConflict):
        await store.compactions.add(replace(kept, id=CompactionId(new_uuid()), from_seq=5, to_seq=6))
    await store.conversations.purge(ALICE, conversation.id)
    assert await store.compactions.get(conversation.id, kept.id) is None
