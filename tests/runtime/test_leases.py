"""Leases: a turn is written by one node, the one that holds its lease."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tests.making import ALICE, chunk_of
from tests.runtime.nodes import DEAD, Nodes, kinds
from tests.services.running import (
    Fault,
    begin,
    follow,
    reply_of,
    run,
    stored_events,
    until_shown,
)
from threadkeep.clock import system_clock
from threadkeep.domain.events import (
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
)
from threadkeep.domain.message import MessageStatus
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store
from threadkeep.testing.waiting import until

LEASE = Statement("SELECT lease_until FROM tk_turns WHERE id = :id")


@pytest.mark.usefixtures("short_lease")
async def test_node_whose_turn_was_taken_over_writes_nothing_and_shows_the_others_end(
    nodes: Nodes, store: Store
):
    fault = Fault()
    fault.stalled = True  # its heart stands still, but it still writes
    stalled = nodes.start(log=fault)
    begun, script = await run(stalled, store)
    following = asyncio.create_task(follow(stalled, begun.turn))
    script.say(Text("shown "))
    await until_shown(stalled, begun.turn, 2)
    taken_over = await follow(nodes.start(), begun.turn)
    assert kinds(taken_over) == ["turn_start", "text", "usage", "error"]
    script.say(Text("too late"), script.done())
    assert await following == taken_over
    assert await stored_events(store, begun.turn.id) == taken_over
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.FAILED, "shown ")
    assert reply.error
    assert reply.error.code == "INTERRUPTED"
    assert script.closed


@pytest.mark.usefixtures("short_lease")
async def test_node_that_hears_that_its_turn_was_taken_over_stops_it(nodes: Nodes, store: Store):
    fault = Fault()
    fault.stalled = True
    stalled = nodes.start(log=fault)
    begun, script = await run(stalled, store)
    following = asyncio.create_task(follow(stalled, begun.turn))
    await until_shown(stalled, begun.turn, 1)
    taken_over = await follow(nodes.start(), begun.turn)
    fault.stalled = False  # its heart beats again
    assert await following == taken_over
    assert script.closed
    await reply_of(store, begun)


@pytest.mark.usefixtures("short_lease")
async def test_leases_are_renewed_while_turns_are_recovered(nodes: Nodes, store: Store, database: Database):
    recovering = Fault()
    recovering.gate.clear()
    node = nodes.start(turns=recovering)
    begun, script = await run(node, store)
    await begin(store, DEAD)
    await recovering.reached.wait()  # and it takes longer than a lease

    async def lease_until() -> int:
        return (await database.fetch(LEASE(id=begun.turn.id)))[0][0]

    before = await lease_until()
    await until(lambda: _is_later(lease_until, before + 200))
    recovering.gate.set()
    script.say(Text("x"), script.done())
    assert kinds(await follow(node, begun.turn)) == ["turn_start", "text", "done"]


async def _is_later(time: Callable[[], Awaitable[int]], than: int) -> bool:
    return await time() > than


@pytest.mark.parametrize("hours", [-2, 2])
async def test_clocks_of_nodes_may_differ(nodes: Nodes, store: Store, hours: int):
    """Neither lives a lease longer for it, nor is a running turn taken for a dead one's."""
    there = nodes.start()
    begun, script = await run(there, store)
    script.say(Thought("Hm."), ToolCalled("1", "add", "", {}))
    await until_shown(there, begun.turn, 2)
    dead = await begin(store, replace(DEAD, length_ms=60_000))
    thinking = chunk_of(dead.turn.id, 2, Thought("Hm."), ToolCalled("1", "add", "", {}), at=system_clock())
    assert await store.log.append([(thinking, 1)])
    await store.log.renew(DEAD.node_id, [dead.turn.id], 0)
    here = nodes.start(clock=lambda: system_clock() + hours * 3_600_000)
    assert kinds(await follow(here, dead.turn))[-1] == "error"
    steps = (await reply_of(store, dead)).thought_process
    assert [step.kind for step in steps] == ["thought", "tool"]
    assert all(step.duration_ms >= 0 for step in steps)
    script.say(ToolResultStored("1", "add", "ok", 1), Text("x"), script.done())
    assert kinds(await follow(here, begun.turn))[-1] == "done"
    turn = await store.turns.get(ALICE, dead.turn.id)
    assert turn
    assert turn.ended_at
    assert turn.ended_at >= turn.started_at
