"""Runs of other engines whose events arrive side by side, and in conversations that go away."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tests.executing import executions_on
from tests.making import ALICE, NOW, keep_agent, keep_conversation
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ConversationNotFound
from threadkeep.domain.execution import ExecutionEvent, ExecutionEventType
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.domain.user import User
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.database.migrate import migrations
from threadkeep.storage.store import Store, store_on

RUNS = 12


def run(run_id: str) -> list[ExecutionEvent]:
    """A complete run."""
    return [
        ExecutionEvent("1", ExecutionEventType.STARTED, run_id, NOW, input=f"When, {run_id}?"),
        ExecutionEvent("2", ExecutionEventType.COMPLETED, run_id, NOW + 1, output="Noon."),
    ]


async def messages_of(store: Store, conversation: Conversation) -> Sequence[Message]:
    return await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=100)


async def test_runs_that_end_at_once_become_one_turn_each_one_after_the_other(database: Database):
    store = await store_on(database)
    conversation = await keep_conversation(store, await keep_agent(store))
    nodes = [executions_on(store) for _ in range(3)]  # each with its own slots, as on several nodes
    answers = await asyncio.gather(
        *(
            node.record(User(ALICE), conversation.id, run(f"{number}"))
            for number in range(RUNS)
            for node in nodes
        )
    )
    turns = {(it.run_id, it.turn_id) for answer in answers for it in answer}
    assert len(turns) == RUNS
    assert all(turn_id for _, turn_id in turns)
    messages = await messages_of(store, conversation)
    assert [it.seq for it in messages] == list(range(1, 2 * RUNS + 1))
    assert [it.parent_id for it in messages] == [None, *(it.id for it in messages[:-1])]
    now = await store.conversations.get(ALICE, conversation.id)
    assert now is not None
    assert (now.message_count, now.tip_id) == (2 * RUNS, messages[-1].id)


async def test_run_of_a_conversation_deleted_meanwhile_becomes_a_turn_once_it_is_restored(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    store = await store_on(database)
    conversation = await keep_conversation(store, await keep_agent(store))
    executions = executions_on(store)
    with monkeypatch.context() as patched:
        read = store.executions.events

        async def deleted_meanwhile(*which: Any) -> Any:
            await store.conversations.delete(ALICE, conversation.id, NOW)
            return await read(*which)

        patched.setattr(store.executions, "events", deleted_meanwhile)
        with pytest.raises(ConversationNotFound):
            await executions.record(User(ALICE), conversation.id, run("r"))
    await executions.finish_left()
    assert not await messages_of(store, conversation)
    await store.conversations.restore(ALICE, conversation.id)
    await executions.finish_left()
    assert [it.text for it in await messages_of(store, conversation)] == ["When, r?", "Noon."]


async def test_many_runs_of_a_request_become_turns_and_count_what_they_take(database: Database):
    store = await store_on(database)
    conversation = await keep_conversation(store, await keep_agent(store))
    before = await store.stored_bytes.of_conversation(conversation.id)
    events = [event for number in range(100) for event in run(f"{number}")]
    found = await executions_on(store).record(User(ALICE), conversation.id, events)
    assert len({it.turn_id for it in found}) == 100
    assert len(await messages_of(store, conversation)) == 100
    texts = sum(len(f"When, {number}?Noon.") for number in range(100))
    assert await store.stored_bytes.of_conversation(conversation.id) == before + texts + 100 * 2 * 200


async def test_runs_that_an_older_version_left_are_counted_by_the_migration(database: Database):
    store = await store_on(database)
    conversation = await keep_conversation(store, await keep_agent(store))
    half = run("r")[:1]
    await executions_on(store).record(User(ALICE), conversation.id, half)
    counts = Statement("SELECT run_id, parts, bytes, has_start, has_end FROM tk_runs")
    before = await database.fetch(counts())
    await database.execute(Statement("DELETE FROM tk_runs")())
    (migration,) = [it for it in migrations(database.dialect) if it.name.endswith("_runs")]
    (fill,) = [it for it in migration.statements if it.sqlite.startswith("INSERT")]
    await database.execute(cast("Any", fill)())
    assert await database.fetch(counts()) == before
    assert len(before) == 1
