"""What readers of a user's events are told, and what when they, or the bus, do not keep up."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.making import ALICE, BOB
from threadkeep.domain.ids import ConversationId
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.ports.bus import MISSED
from threadkeep.runtime import user_events
from threadkeep.runtime.user_events import UserEventReader, UserEvents, UserEventWithId
from threadkeep.storage.database.bus import LocalBus


def event(name: str) -> UserEvent:
    return UserEvent(ALICE, UserEventType.CONVERSATION_CHANGED, ConversationId(name))


def told(read: Sequence[UserEventWithId]) -> list[str | None]:
    """The conversations that were told of; None for a reset."""
    return [it and it.conversation_id for _, it in read]


async def read(reader: UserEventReader) -> list[str | None]:
    return told(await anext(reader))


async def test_nobody_hears_of_anybody_elses_things():
    events = UserEvents(LocalBus())
    async with events.read(ALICE, None) as hers, events.read(BOB, None) as his:
        assert await read(hers) == await read(his) == [None]
        await events.publish(event("c"))
        his.wake()
        assert await read(hers) == ["c"]
        assert await read(his) == []


async def test_event_of_a_later_version_is_passed_over():
    bus = LocalBus()
    events = UserEvents(bus)
    async with events.read(ALICE, None) as reader:
        await read(reader)
        later = f'user ["node",1,{{"user_id":"{ALICE}","type":"conversation_sung"}}]'
        await bus.publish([later])
        await events.publish(event("c"))
        assert await read(reader) == ["c"]


async def test_reader_who_takes_nothing_is_told_to_read_everything_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(user_events, "MOST_UNREAD", 3)
    events = UserEvents(LocalBus())
    async with events.read(ALICE, None) as reader:
        await read(reader)
        await events.publish(*map(event, "abcde"))
        assert await read(reader) == [None, "e"]


async def test_reader_who_was_away_for_too_long_is_told_to_read_everything_again(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(user_events, "MOST_REMEMBERED", 3)
    events = UserEvents(LocalBus())
    async with events.read(ALICE, None) as reader:
        ((seen, _),) = await anext(reader)
    for missed, expected in ((3, ["0", "1", "2"]), (4, [None])):
        for number in range(missed):
            await events.publish(event(str(number)))
        async with events.read(ALICE, seen) as reader:
            assert await read(reader) == expected


async def test_whoever_reads_is_told_when_signals_of_other_nodes_may_be_lost():
    bus = LocalBus()
    events = UserEvents(bus)
    async with events.read(ALICE, None) as reader:
        await read(reader)
        await events.publish(event("a"))
        await bus.publish([MISSED])
        ((after, missing),) = await anext(reader)
        assert missing is None
        await events.publish(event("b"))
        assert await read(reader) == ["b"]
    async with events.read(ALICE, after) as reader:
        assert await read(reader) == ["b"]


async def test_stream_ends_now_and_then_so_that_its_reader_signs_in_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(user_events, "MOST_OPEN_S", 0)
    async with UserEvents(LocalBus()).read(ALICE, None) as reader, asyncio.timeout(10):
        assert [told(read) async for read in reader] == [[None]]


async def test_what_is_stored_stays_stored_when_nobody_can_be_told(caplog: pytest.LogCaptureFixture):
    class Broken(LocalBus):
        async def publish(self, signals: object) -> None:
            raise OSError

    await UserEvents(Broken()).publish(event("c"))
    assert "couldn't notify" in caplog.text
