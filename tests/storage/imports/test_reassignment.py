"""Everything of one user becomes another's, or nothing does."""

from dataclasses import replace

import pytest

from tests.making import (
    ALICE,
    NOW,
    keep_agent,
    keep_begun,
    keep_briefing,
    keep_conversation,
    keep_memory,
    keep_turn,
)
from tests.storage.test_constraints import FOREIGN_KEYS, ROWS, Place, fill
from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.errors import InvalidRequest, TurnInProgress, UserNotFound
from threadkeep.domain.ids import UserId
from threadkeep.services.reassignment import make_searchable, reassign
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store, store_on

LOCAL = UserId("local")
EVERYTHING = ConversationFilter()
GOES = ("tk_keys", "tk_requests", "tk_sessions", "tk_sign_in_grants")


async def found(store: Store, user: UserId, words: str) -> list[str]:
    return [hit.conversation_id for hit in await store.history.search(user, words, before=None, limit=10)]


async def test_no_row_of_any_table_is_left_behind_or_lost(database: Database):
    store = await store_on(database)
    await fill(database, Place(user=LOCAL))
    counts = {table: Statement(f"SELECT COUNT(*) FROM {table}") for table in ROWS if table != "tk_users"}
    before = {table: await database.fetch(count()) for table, count in counts.items()}
    moved = await reassign(store, LOCAL, ALICE, NOW, alone=True)
    assert (moved.conversations, moved.agents, moved.briefings, moved.memories) == (1, 1, 1, 1)
    after = {table: await database.fetch(count()) for table, count in counts.items()}
    # What signs in as one user must never sign in as another, and nobody can repeat another's requests.
    for table in GOES:
        assert [tuple(row) for row in after.pop(table)] == [(0,)] and before.pop(table)
    assert after == before
    keys = [(table, column) for table, column, to in await database.fetch(FOREIGN_KEYS()) if to == "tk_users"]
    assert len(keys) >= 6
    for table, column in keys:
        rows = await database.fetch(Statement(f"SELECT DISTINCT {column} FROM {table}")())
        assert [tuple(row) for row in rows] == ([] if table in GOES else [(ALICE,)]), table


async def test_receivers_main_conversation_stays_the_main_one(store: Store):
    agent = await keep_agent(store)
    theirs, _ = await store.conversations.get_or_add_main(
        Conversation.start(LOCAL, agent.id, NOW, is_main=True)
    )
    own, _ = await store.conversations.get_or_add_main(Conversation.start(ALICE, agent.id, NOW, is_main=True))
    moved = await reassign(store, LOCAL, ALICE, NOW, alone=True)
    assert moved.former_mains == [theirs.id]
    listed = await store.conversations.page(ALICE, EVERYTHING, after=None, offset=0, limit=10)
    assert {(it.id, it.is_main) for it in listed} == {(own.id, True), (theirs.id, False)}


@pytest.mark.parametrize("has_own", [False, True])
async def test_what_was_said_is_found_by_the_receiver_only(store: Store, has_own: bool):
    agent = await keep_agent(store)
    conversation = await keep_conversation(store, agent, LOCAL, title="Lease")
    await keep_turn(store, conversation, "What of my lease?", "It ends in May.")
    await make_searchable(store, conversation.id)
    if has_own:
        mine = await keep_turn(store, await keep_conversation(store, agent), "My own lease?", "Yes.")
        await make_searchable(store, mine.id)
    await reassign(store, LOCAL, ALICE, NOW, alone=True)
    assert set(await found(store, ALICE, "lease")) >= {conversation.id}
    assert len(await found(store, ALICE, "lease")) == 2 + has_own
    assert await found(store, LOCAL, "lease") == []


async def test_same_memories_and_briefings_are_kept_once(store: Store):
    agent = await keep_agent(store)
    for user, content in ((LOCAL, "Has a cat."), (LOCAL, "Has a dog."), (ALICE, "Has a cat.")):
        await keep_memory(store, agent.id, content, user)
    briefing = await keep_briefing(store, agent.id, LOCAL)
    await store.briefings.add(replace(briefing, user_id=ALICE))
    moved = await reassign(store, LOCAL, ALICE, NOW, alone=True)
    kept = await store.memories.latest(ALICE, agent.id, limit=10)
    assert sorted(it.content for it in kept) == ["Has a cat.", "Has a dog."]
    assert (moved.memories, moved.briefings) == (1, 0)
    assert [it.id for it in await store.briefings.page(ALICE, unread=False, before=None, limit=9)] == [
        briefing.id
    ]


@pytest.mark.parametrize(("own", "kept"), [("", "Be brief."), ("Be kind.", "Be kind.")])
async def test_receivers_own_instructions_stay(store: Store, own: str, kept: str):
    await store.users.instruct(LOCAL, "Be brief.", NOW)
    await store.users.instruct(ALICE, own, NOW)
    await reassign(store, LOCAL, ALICE, NOW, alone=True)
    assert (await store.users.instructions(ALICE), await store.users.instructions(LOCAL)) == (kept, "")


async def test_running_turn_of_another_process_refuses_all(store: Store):
    agent = await keep_agent(store, LOCAL)
    conversation = await keep_conversation(store, agent, LOCAL)
    await keep_begun(store, conversation.begin_turn("Hello?", NOW))
    with pytest.raises(TurnInProgress):
        await reassign(store, LOCAL, ALICE, NOW, alone=False)
    assert await store.conversations.get(LOCAL, conversation.id)
    kept = await store.agents.get(agent.id)
    assert kept and kept.owner_id == LOCAL


async def test_unknown_giver_and_the_same_user_are_refused(store: Store):
    with pytest.raises(UserNotFound, match="'nobody'"):
        await reassign(store, UserId("nobody"), ALICE, NOW, alone=True)
    with pytest.raises(InvalidRequest, match="same"):
        await reassign(store, ALICE, ALICE, NOW, alone=True)
