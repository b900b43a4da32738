"""Recovery: the turns of a node that is gone are ended by another, once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.making import chunk_of
from tests.runtime.nodes import DEAD, Nodes, kinds
from tests.services.running import (
    begin,
    follow,
    reply_of,
    run,
    stored_events,
)
from threadkeep import create_app
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.events import (
    Failed,
    LogChunk,
    Text,
    ToolCalled,
    ToolResultStored,
)
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.domain.turn import Lease, TurnStatus
from threadkeep.runtime.leases import lease_of
from threadkeep.runtime.recovery import LEASE_S, OUTAGE_S, TakeoverPause
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store, open_database, store_on
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.testing import ScriptedModel, scripted_settings
from threadkeep.testing.waiting import until

TAKE_OVER = Statement("UPDATE tk_turns SET node_id = 'another', fence = fence + 1 WHERE id = :id")


async def test_turn_of_a_dead_node_gets_every_open_call_closed(nodes: Nodes, store: Store):
    begun = await begin(store, DEAD)
    bodies = [
        Text("Let me see."),
        ToolCalled("1", "add", "math", {}),
        ToolCalled("2", "sub", "math", {}),
        ToolCalled("3", "mul", "math", {}),
        ToolResultStored("2", "sub", "ok", 1),
    ]
    for chunk in (chunk_of(begun.turn.id, 2, *bodies[:1]), chunk_of(begun.turn.id, 3, *bodies[1:])):
        assert await store.log.append([(chunk, 1)])
    events = await stored_events(store, begun.turn.id)
    node = nodes.start()
    shown = await follow(node, begun.turn)
    assert shown[: len(events)] == events
    closed = [event.body for event in shown[len(events) :]]
    assert [(it.tool_call_id, it.status) for it in closed if isinstance(it, ToolResultStored)] == [
        ("1", "interrupted"),
        ("3", "interrupted"),
    ]
    assert isinstance(closed[-1], Failed)
    reply = await reply_of(store, begun)
    assert [call.status for call in reply.tool_calls] == [
        ToolCallStatus.INTERRUPTED, ToolCallStatus.OK, ToolCallStatus.INTERRUPTED
    ]  # fmt: skip
    assert (reply.content, reply.usage and reply.usage.estimated) == ("Let me see.", True)
    late = LogChunk(begun.turn.id, shown[-1].seq + 1, shown[-1].seq + 1, "{}")
    assert await store.log.append([(late, 1)]) == set()  # the dead one comes back


async def test_turn_that_another_node_takes_over_while_its_log_is_read_is_left_to_that(
    nodes: Nodes, store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
):
    begun = await begin(store, DEAD)
    assert await store.log.append([(chunk_of(begun.turn.id, 2, Text("Let me see.")), 1)])
    events = await stored_events(store, begun.turn.id)
    node = nodes.start(unknown="scripted")  # it takes nothing over by itself
    held = await store.log.adopt(begun.turn.id, lease_of(node.id), alone=False)
    assert held
    await database.execute(TAKE_OVER(id=begun.turn.id))
    monkeypatch.setattr("threadkeep.runtime.leases.BEAT_S", 0)  # it is always time to renew the lease
    await node.runner.resume(held, is_takeover=True)
    assert node.runner.count_of(begun.conversation.user_id) == 0
    assert await stored_events(store, begun.turn.id) == events


async def test_turn_that_was_begun_and_never_ran_is_ended(nodes: Nodes, store: Store):
    begun = await begin(store, DEAD)
    events = await follow(nodes.start(), begun.turn)
    assert kinds(events) == ["turn_start", "error"]
    assert (await reply_of(store, begun)).content == ""


async def test_turn_that_this_very_node_forgot_is_ended(nodes: Nodes, store: Store):
    node = nodes.start()
    running, script = await run(node, store)  # it renews the leases of turns that do run
    begun = await begin(store, Lease(node.id, 1, 0))  # and never heard that this one was stored
    assert kinds(await follow(node, begun.turn)) == ["turn_start", "error"]
    script.say(Text("x"), script.done())
    await follow(node, running.turn)
    assert (await reply_of(store, running)).status is MessageStatus.COMPLETED


async def test_node_leaves_a_turn_to_another_that_knows_its_model(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    begun = await begin(store, DEAD)
    without = nodes.start(unknown="scripted")
    for _ in range(3):
        await without.recover_abandoned()
    assert without.running_count == 0
    running = await store.active.get(begun.turn.id)
    assert running and running.node_id == DEAD.node_id  # nobody has touched it
    assert kinds(await follow(nodes.start(), begun.turn)) == ["turn_start", "error"]
    # Where no node knows it, somebody must end it.
    orphan = await begin(store, DEAD)
    await without.recover_abandoned()
    monkeypatch.setattr("threadkeep.runtime.recovery.LEFT_S", 0.0)
    assert kinds(await follow(without, orphan.turn)) == ["turn_start", "error"]


async def test_node_without_the_model_leaves_a_turn_whose_user_has_decided(nodes: Nodes, store: Store):
    begun = await begin(store, DEAD)
    without = nodes.start(unknown="scripted")
    held = await store.log.adopt(begun.turn.id, lease_of(without.id), alone=False)
    assert held
    await without.resume(held)
    assert without.running_count == 0
    assert kinds(await follow(nodes.start(), begun.turn)) == ["turn_start", "error"]


async def test_node_that_is_alone_waits_for_no_lease(nodes: Nodes, store: Store):
    begun = await begin(store, Lease("before-the-restart", 1, 10**9))
    assert kinds(await follow(nodes.start(alone=True), begun.turn)) == ["turn_start", "error"]


async def test_node_that_is_alone_continues_at_its_start_what_ran_before(
    model: ScriptedModel, tmp_path: Path
):
    settings = scripted_settings(model, data=tmp_path)
    database = await open_database(settings.database, pool_size=1)
    left = await begin(await store_on(database), Lease("before-the-restart", 1, 10**9))
    await database.close()
    app = create_app(settings)
    async with app.lifespan():
        store = (await app.services()).store
        await until(lambda: is_ended(store, left))
        assert await store.turns.status(left.turn.id) is TurnStatus.COMPLETED
        events = await stored_events(store, left.turn.id)
        assert kinds(events)[:3] == ["turn_start", "turn_resumed", "iteration_start"]


async def test_many_nodes_end_a_dead_ones_turns_once(nodes: Nodes, store: Store):
    turns = [await begin(store, DEAD) for _ in range(5)]
    started = [nodes.start() for _ in range(3)]
    for begun in turns:
        seen = await asyncio.gather(*(follow(node, begun.turn) for node in started))
        assert all(kinds(events) == ["turn_start", "error"] for events in seen)
        await reply_of(store, begun)


async def test_dead_turn_whose_log_cannot_be_read_is_ended_with_what_can_and_holds_up_no_other(
    nodes: Nodes, store: Store
):
    dead = [await begin(store, DEAD) for _ in range(2)]
    strange_id, strange = dead[0].turn.id, '{"type": "of a later version"}'
    said, lost = chunk_of(strange_id, 2, Text("said")), chunk_of(strange_id, 5, Text("lost"))
    for chunk in (said, LogChunk(strange_id, 3, 4, strange), lost):
        assert await store.log.append([(chunk, 1)])
    nodes.start()
    for begun in dead:
        await until(lambda it=begun: is_ended(store, it))
    reply = await store.messages.get(dead[0].conversation.id, dead[0].assistant_message.id)
    assert reply
    assert (reply.content, reply.error and reply.error.code) == ("said", "INTERRUPTED")
    (end,) = await store.log.read(strange_id, lost.last_seq)
    assert end.first_seq == lost.last_seq + 1


async def is_ended(store: Store, begun: BegunTurn) -> bool:
    return await store.turns.status(begun.turn.id) is not TurnStatus.RUNNING


def test_node_that_starts_takes_over_at_once_and_goes_on_while_the_database_answers():
    pause = TakeoverPause()
    assert all(pause.is_over(now) for now in (100.0, 101.0, 102.0 + OUTAGE_S / 2))


def test_nodes_have_a_lease_to_come_back_after_the_database_was_out():
    pause = TakeoverPause()
    assert pause.is_over(100.0)
    back_at = 101.0 + OUTAGE_S
    assert not pause.is_over(back_at)
    assert not pause.is_over(back_at + LEASE_S - 1)
    assert pause.is_over(back_at + LEASE_S)
    assert pause.is_over(back_at + LEASE_S + 1)


def test_database_that_is_always_slow_lets_turns_be_taken_over():
    pause = TakeoverPause()
    looks = [pause.is_over(number * (OUTAGE_S + 1)) for number in range(10)]
    assert looks.count(True) > 3


def test_taking_over_many_turns_for_long_is_no_absence_of_the_database():
    pause = TakeoverPause()
    assert pause.is_over(100.0)
    pause.reached_at = 110.0
    assert pause.is_over(111.0)


async def test_turn_that_cannot_be_taken_over_keeps_no_other_from_being(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    poison, other = await begin(store, DEAD), await begin(store, DEAD)
    adopt = SqlTurnLog.adopt

    async def adopt_unless_poisoned(self: SqlTurnLog, turn_id: TurnId, *how: Any, **named: Any) -> Any:
        if turn_id == poison.turn.id:
            raise ZeroDivisionError("a row that nobody expected")
        return await adopt(self, turn_id, *how, **named)

    monkeypatch.setattr(SqlTurnLog, "adopt", adopt_unless_poisoned)
    node = nodes.start()
    assert kinds(await follow(node, other.turn)) == ["turn_start", "error"]
    monkeypatch.undo()
    assert kinds(await follow(node, poison.turn)) == ["turn_start", "error"]
