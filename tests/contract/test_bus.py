"""The bus: heard here at once, by every other node soon, and nobody waits for the others."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from tests.conftest import ONLY_POSTGRES
from threadkeep.ports.bus import MISSED
from threadkeep.storage.bus import LocalBus, PostgresBus, bus_on
from threadkeep.storage.database import Database, Query, Rows
from threadkeep.testing.waiting import until


class Listener:
    """One node's end of a bus, and what came out of it."""

    def __init__(self, bus: LocalBus) -> None:
        self.bus = bus
        self.heard: list[str] = []
        bus.subscribe(self.heard.append)


class SlowDatabase:
    """Takes a NOTIFY only when the gate is open."""

    def __init__(self, database: Database) -> None:
        self.gate = asyncio.Event()
        self.notified: list[str] = []
        self.listen = database.listen
        self._database = database

    async def execute(self, query: Query) -> Rows:
        """Passes it on, in its time."""
        self.notified.append(query.values["payload"])
        await self.gate.wait()
        return await self._database.execute(query)


@pytest.fixture
async def here(database: Database) -> AsyncIterator[Listener]:
    bus = bus_on(database)
    yield Listener(bus)
    await bus.close()


@pytest.fixture
async def there(database: Database, here: Listener) -> AsyncIterator[Listener]:
    """Another node, which hears already."""
    bus = bus_on(database)
    there = Listener(bus)

    async def hears() -> bool:
        await here.bus.publish(["hello"])
        return bool(there.heard)

    await until(hears)
    yield there
    await bus.close()


async def test_who_is_here_hears_at_once_until_they_leave(here: Listener):
    heard: list[str] = []
    leave = here.bus.subscribe(heard.append)
    await here.bus.publish(["wrote 1", "changed 2"])
    assert here.heard == heard == ["wrote 1", "changed 2"]
    leave()
    await here.bus.publish(["wrote 3"])
    assert (here.heard[-1], heard[-1]) == ("wrote 3", "changed 2")


@ONLY_POSTGRES
async def test_other_node_hears_everything_however_much_it_is(here: Listener, there: Listener):
    signals = [f"wrote {number:036}" for number in range(1_000)]  # several payloads
    await here.bus.publish(signals)
    await until(lambda: set(signals) <= set(there.heard))
    assert [it for it in there.heard if it not in {"hello", MISSED}] == signals


@ONLY_POSTGRES
async def test_database_that_takes_nothing_does_not_keep_a_node_from_closing(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.storage.bus.LAST_WORDS_S", 0.01)
    bus = PostgresBus(cast("Database", SlowDatabase(database)))
    await bus.publish(["never told"])
    await bus.close()


@ONLY_POSTGRES
async def test_nobody_waits_for_the_others_and_a_signal_told_often_meanwhile_goes_once(
    database: Database, there: Listener
):
    slow = SlowDatabase(database)
    bus = PostgresBus(cast("Database", slow))
    await bus.publish(["first"])
    await until(lambda: bool(slow.notified))
    for _ in range(100):
        await bus.publish(["wrote 1", "wrote 2"])
    assert slow.notified == ["first"]
    slow.gate.set()
    await bus.close()  # which tells what is left
    assert slow.notified == ["first", "wrote 1\nwrote 2"]
    await until(lambda: there.heard[-3:] == ["first", "wrote 1", "wrote 2"])
