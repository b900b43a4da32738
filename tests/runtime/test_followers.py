"""Turns that end when nobody follows them: on which node the follower is doesn't matter."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.runtime.nodes import Nodes
from tests.services.running import make_begun, open_log, reply_of, run, until_shown
from threadkeep.domain.events import Text
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.turn import BegunWith, Turn, TurnStatus
from threadkeep.runtime import followers
from threadkeep.runtime.followers import ABSENT_S, BEGUN_S, RESUMED_S, SURE_S, Followers
from threadkeep.runtime.running import NodeTurns
from threadkeep.storage.database.bus import LocalBus
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.testing.waiting import until

STOPS = BegunWith(stops_unfollowed=True)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for followers."""
    for name in ("ABSENT_S", "SURE_S", "BEGUN_S", "RESUMED_S"):
        monkeypatch.setattr(followers, name, 0.0)


async def is_status(store: Store, turn: Turn, status: TurnStatus) -> bool:
    return await store.turns.status(turn.id) is status


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["same node", "another node"])
async def test_turn_ends_with_its_text_when_its_last_follower_leaves(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch, is_elsewhere: bool
):
    monkeypatch.setattr(followers, "BEGUN_S", 60.0)
    bus = LocalBus()
    there = nodes.start(bus=bus)
    here = nodes.start(bus=bus) if is_elsewhere else there
    begun, script = await run(there, store, STOPS)
    script.say(Text("half"))
    await until_shown(here, begun.turn, 2)
    monkeypatch.setattr(followers, "BEGUN_S", 0.0)
    await until(lambda: is_status(store, begun.turn, TurnStatus.CANCELLED))
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.CANCELLED, "half")


async def test_turn_that_is_followed_on_another_node_goes_on_and_its_node_hears_of_it_again_and_again(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(followers, "BEGUN_S", 0.0)
    monkeypatch.setattr(followers, "SURE_S", 0.0)
    looks, noted, look, note = (
        list[set[TurnId]](),
        list[TurnId](),
        SqlTurnLog.unfollowed,
        SqlTurnLog.note_followed,
    )

    async def looking(log: SqlTurnLog, turn_ids: Iterable[TurnId], absent_ms: int) -> set[TurnId]:
        looks.append(found := await look(log, turn_ids, absent_ms))
        return found if noted else set()  # the turn waits for its first follower

    async def noting(log: SqlTurnLog, turn_ids: Iterable[TurnId]) -> None:
        await note(log, turn_ids)
        noted.extend(turn_ids)

    monkeypatch.setattr(SqlTurnLog, "unfollowed", looking)
    monkeypatch.setattr(SqlTurnLog, "note_followed", noting)
    bus = LocalBus()
    here, there = nodes.start(bus=bus), nodes.start(bus=bus)
    begun, script = await run(there, store, STOPS)
    async with await open_log(here, begun.turn):
        looks.clear()
        await until(lambda: len(looks) > 3 and len(noted) > 3)
        assert await is_status(store, begun.turn, TurnStatus.RUNNING)
        assert looks[1:] == [set()] * len(looks[1:])
        script.say(Text("whole"), script.done())
        await until(lambda: is_status(store, begun.turn, TurnStatus.COMPLETED))


@pytest.mark.usefixtures("hasty")
async def test_other_turns_are_never_looked_at(nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch):
    async def fail(*_: Any) -> None:
        raise AssertionError("It costs something.")

    monkeypatch.setattr(SqlTurnLog, "unfollowed", fail)
    monkeypatch.setattr(SqlTurnLog, "note_followed", fail)
    node = nodes.start()
    begun, script = await run(node, store)
    script.say(Text("half"))
    await until_shown(node, begun.turn, 2)
    script.say(script.done())
    await until(lambda: is_status(store, begun.turn, TurnStatus.COMPLETED))


async def test_database_knows_who_was_followed_just_now(nodes: Nodes, store: Store):
    node = nodes.start()
    (one, script), (other, another) = await run(node, store), await run(node, store)
    ids = {one.turn.id, other.turn.id}
    assert await store.log.unfollowed(ids, 60_000) == ids
    await store.log.note_followed([one.turn.id])
    assert await store.log.unfollowed(ids, 60_000) == {other.turn.id}
    assert await store.log.unfollowed(ids, -60_000) == ids
    for it in (script, another):
        it.say(Text("whole"), it.done())


@dataclass
class Room:
    """One node's part: the turns that run there, what the database says, and a clock that stands still."""

    now: float = 1_000.0
    unfollowed: set[TurnId] = field(default_factory=set[TurnId])
    noted: list[TurnId] = field(default_factory=list[TurnId])
    stopped: list[TurnId] = field(default_factory=list[TurnId])
    running: dict[TurnId, Any] = field(default_factory=dict[TurnId, Any])

    def __post_init__(self) -> None:
        self.log = SimpleNamespace(note_followed=self._note, unfollowed=self._unfollowed)
        turns = SimpleNamespace(all=lambda: self.running, stop=self._stop)
        self.followers = Followers(cast("SqlTurnLog", self.log), cast("NodeTurns", turns), lambda: self.now)

    async def run(self, store: Store, *, is_resumed: bool = False) -> Turn:
        turn = (await make_begun(store, STOPS)).turn
        held = SimpleNamespace(turn=turn)
        self.running[turn.id] = SimpleNamespace(held=held, begun_at=self.now, is_resumed=is_resumed)
        self.unfollowed.add(turn.id)
        return turn

    async def look_for(self, seconds: float) -> None:
        """Looks every second."""
        for _ in range(int(seconds)):
            self.now += 1
            await self.followers.look()

    def _stop(self, turn_id: TurnId, _: str) -> None:
        self.stopped.append(turn_id)

    async def _note(self, turn_ids: Iterable[TurnId]) -> None:
        self.noted.extend(turn_ids)

    async def _unfollowed(self, turn_ids: Iterable[TurnId], absent_ms: int) -> set[TurnId]:
        assert absent_ms == ABSENT_S * 1000
        return self.unfollowed & set(turn_ids)


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_turn_waits_for_its_first_follower_and_longer_where_it_resumes(store: Store, is_resumed: bool):
    room = Room()
    turn = await room.run(store, is_resumed=is_resumed)
    await room.look_for(RESUMED_S if is_resumed else BEGUN_S)
    assert room.stopped == []
    await room.look_for(SURE_S + 1)
    assert room.stopped == [turn.id]


async def test_turn_whose_followers_are_heard_of_again_goes_on(store: Store):
    room = Room()
    turn = await room.run(store)
    await room.look_for(BEGUN_S + 1)
    room.unfollowed.clear()
    await room.look_for(1)
    room.unfollowed.add(turn.id)
    await room.look_for(SURE_S)
    assert room.stopped == []
    await room.look_for(1)
    assert room.stopped == [turn.id]


async def test_follower_who_comes_while_the_database_is_asked_counts(store: Store):
    room = Room()
    turn = await room.run(store)
    await room.look_for(BEGUN_S + SURE_S)
    async with room.followers.following(turn):
        await room.look_for(5)
        assert room.stopped == []
        assert room.noted == [turn.id] * 6
    await room.look_for(SURE_S + 1)
    assert room.stopped == [turn.id]


async def test_outage_of_the_database_is_no_absence_of_followers(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    room = Room()
    turn = await room.run(store)
    await room.look_for(BEGUN_S + 1)

    async def fail(*_: Any) -> set[TurnId]:
        raise ConnectionError

    with monkeypatch.context() as outage:
        outage.setattr(room.log, "unfollowed", fail)
        room.now += 60
        with pytest.raises(ConnectionError):
            await room.followers.look()
    await room.look_for(SURE_S)
    assert room.stopped == []
    await room.look_for(1)
    assert room.stopped == [turn.id]


async def test_turn_that_has_ended_is_followed_without_a_trace(store: Store):
    room = Room()
    turn = (await make_begun(store, STOPS)).turn.end(TurnStatus.COMPLETED, 2_000_000_000_000)
    async with room.followers.following(turn):
        await room.followers.look()
    assert room.noted == []
