"""Following: a turn is read from any event on, wherever it runs and whether or not it has ended."""

import asyncio
from typing import Any

import pytest

from tests.making import ALICE
from tests.runtime.nodes import Nodes, kinds
from tests.services.running import (
    Fault,
    follow,
    make_begun,
    open_log,
    reply_of,
    rest_of,
    run,
    stored_events,
    until_shown,
)
from threadkeep import loops
from threadkeep.domain.errors import EventsExpired
from threadkeep.domain.events import (
    Text,
    Thought,
    UsageReported,
)
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.turn import Turn
from threadkeep.log import live
from threadkeep.runtime import runner
from threadkeep.runtime.following import ALL_SEEN
from threadkeep.storage.database.bus import LocalBus
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.storage.turns import SqlTurns
from threadkeep.testing.waiting import until


async def test_turn_is_followed_and_aborted_from_another_node(nodes: Nodes, store: Store):
    bus = LocalBus()
    here, there = nodes.start(bus=bus), nodes.start(bus=bus)
    begun, script = await run(there, store)
    script.say(Text("half"))
    following = asyncio.create_task(follow(here, begun.turn))
    await until_shown(here, begun.turn, 2)
    await here.abort(begun.turn.id)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.CANCELLED, "half")
    assert await following == await stored_events(store, begun.turn.id)
    await here.abort(begun.turn.id)  # again, and from where it ran
    await there.abort(begun.turn.id)


@pytest.mark.parametrize(("store_of", "look"), [(SqlTurns, "status"), (SqlTurnLog, "page")])
async def test_follower_that_comes_just_when_a_turn_ends_sees_its_end(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch, store_of: Any, look: str
):
    here, there = nodes.start(), nodes.start()
    begun, script = await run(there, store)
    await until_shown(there, begun.turn, 1)
    looks = getattr(store_of, look)

    async def end_before(own_store: object, turn_id: TurnId, *rest: object) -> object:
        if not script.closed:
            script.say(Text("x"), script.done())
            await follow(there, begun.turn)
        return await looks(own_store, turn_id, *rest)

    monkeypatch.setattr(store_of, look, end_before)
    assert kinds(await follow(here, begun.turn)) == ["turn_start", "text", "done"]


async def test_lost_signals_only_cost_time(nodes: Nodes, store: Store):
    here, there = nodes.start(), nodes.start()  # no bus between them
    begun, script = await run(there, store)
    following = asyncio.create_task(follow(here, begun.turn))
    script.say(Text("half"))
    await until_shown(here, begun.turn, 2)
    await here.abort(begun.turn.id)
    assert (await reply_of(store, begun)).status is MessageStatus.CANCELLED
    assert await following == await stored_events(store, begun.turn.id)


async def test_reader_who_is_far_behind_a_running_turn_gets_the_rest_from_the_store(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(live, "LEAST_KEPT", 2)
    bus = LocalBus()
    here, there = nodes.start(bus=bus), nodes.start(bus=bus)
    begun, script = await run(there, store)
    async with await open_log(there, begun.turn) as slow, await open_log(here, begun.turn) as elsewhere:
        said = 10
        for number in range(said):
            script.say(Text(f"{number} "))
            await until_shown(there, begun.turn, number + 2)
        late = [asyncio.create_task(follow(node, begun.turn)) for node in (here, there)]
        script.say(script.done())
        whole = await asyncio.gather(rest_of(slow), rest_of(elsewhere), *late)
        assert slow.has_ended and elsewhere.has_ended
    stored = await stored_events(store, begun.turn.id)
    assert kinds(stored) == ["turn_start", *["text"] * said, "done"]
    assert whole == [stored] * 4


async def test_ended_turn_is_followed_from_any_event(nodes: Nodes, store: Store):
    turn = await ended_turn(nodes, store)
    events, node = await stored_events(store, turn.id), nodes.start()
    for after in range(len(events)):
        async with await open_log(node, turn, after) as log:
            assert await rest_of(log) == events[after:]
            assert log.has_ended
        again = await node.follow(turn, after, from_first=True)
        assert again
        async with again:
            assert await rest_of(again) == events
    assert await node.follow(turn, len(events)) is None
    assert await node.follow(turn, ALL_SEEN) is None


async def test_trimmed_log_is_made_from_the_reply_and_has_no_middle(nodes: Nodes, store: Store):
    turn, node = await ended_turn(nodes, store), nodes.start()
    await store.log.trim(2**60)
    for from_first in (False, True):
        log = await node.follow(turn, from_first=from_first)
        assert log
        async with log:
            assert kinds(await rest_of(log)) == ["turn_start", "thought", "text", "usage", "done"]
            assert log.has_ended
        with pytest.raises(EventsExpired):
            await node.follow(turn, 1, from_first=from_first)
    assert await node.follow(turn, turn.last_event_seq) is None


async def test_who_waits_for_the_end_only_is_shown_no_event(nodes: Nodes, store: Store):
    here, there = nodes.start(), nodes.start()
    begun, script = await run(there, store)
    for node in (here, there):
        async with await open_log(node, begun.turn, ALL_SEEN) as log:
            waiting = asyncio.create_task(rest_of(log))
            script.say(Text("x"))
            await until_shown(node, begun.turn, 2)
            assert not waiting.done()
            if node is there:
                script.say(script.done())
                assert (await waiting, log.has_ended) == ([], True)
            waiting.cancel()


async def ended_turn(nodes: Nodes, store: Store) -> Turn:
    """A turn of a few chunks, as it is kept."""
    node = nodes.start()
    begun, script = await run(node, store)
    for seq, body in enumerate((Thought("Hm."), Text("Because."), UsageReported(7, 3)), 2):
        script.say(body)
        await until_shown(node, begun.turn, seq)
    script.say(script.done())
    await follow(node, begun.turn)
    turn = await store.turns.get(ALICE, begun.turn.id)
    assert turn
    return turn


async def test_log_of_a_turn_whose_end_could_not_be_stored_is_closed_but_has_not_ended(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runner, "CLOSE_S", 0.01)
    fault = Fault()
    node = nodes.start(log=fault, turns=fault)
    begun, _ = await run(node, store)
    async with await open_log(node, begun.turn) as log:
        fault.away = True
        await node.close()
        nodes.made.remove(node)
        assert kinds(await rest_of(log)) == ["turn_start"]
        assert not log.has_ended


async def test_log_of_a_turn_that_goes_on_elsewhere_is_closed_with_its_followers_node(
    nodes: Nodes, store: Store
):
    there, here = nodes.start(), nodes.start()
    begun, _ = await run(there, store)
    async with await open_log(here, begun.turn) as log:
        await here.close()
        nodes.made.remove(here)
        await rest_of(log)
        assert not log.has_ended


async def test_log_of_a_turn_that_is_gone_is_closed_but_has_not_ended(nodes: Nodes, store: Store):
    begun = await make_begun(store)  # which is not stored
    async with await open_log(nodes.start(), begun.turn) as log:
        assert await rest_of(log) == []
        assert not log.has_ended


async def test_turn_on_another_node_is_followed_although_reading_it_fails_unexpectedly(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.001)
    here, there = nodes.start(), nodes.start()
    begun, script = await run(there, store)
    status, errors = SqlTurns.status, [ZeroDivisionError(), ZeroDivisionError()]

    async def status_later(self: SqlTurns, turn_id: TurnId) -> object:
        if errors:
            raise errors.pop()
        return await status(self, turn_id)

    following = asyncio.create_task(follow(here, begun.turn))
    await until_shown(here, begun.turn, 1)
    monkeypatch.setattr(SqlTurns, "status", status_later)
    await until(lambda: not errors)
    script.say(Text("whole"), script.done())
    assert await following == await stored_events(store, begun.turn.id)
