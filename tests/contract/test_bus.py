"""The bus: heard here at once, by every other node soon, and nobody waits for the others."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from tests.conftest import ONLY_POSTGRES
from tests.faults.relaying import relay_to
from threadkeep import loops
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.loops import Loops
from threadkeep.ports.bus import MISSED
from threadkeep.storage.database import postgres
from threadkeep.storage.database.bus import LocalBus, PostgresBus, bus_on
from threadkeep.storage.database.connector import Database, Query, Rows
from threadkeep.storage.store import open_database
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
    bus = bus_on(database, Loops())
    yield Listener(bus)
    await bus.close()


@pytest.fixture
async def there(database: Database, here: Listener) -> AsyncIterator[Listener]:
    """Another node, which hears already."""
    bus = bus_on(database, Loops())
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
    monkeypatch.setattr("threadkeep.storage.database.bus.LAST_WORDS_S", 0.01)
    bus = PostgresBus(cast("Database", SlowDatabase(database)), Loops())
    await bus.publish(["never told"])
    await bus.close()


@ONLY_POSTGRES
async def test_nobody_waits_for_the_others_and_a_signal_told_often_meanwhile_goes_once(
    database: Database, there: Listener
):
    slow = SlowDatabase(database)
    bus = PostgresBus(cast("Database", slow), Loops())
    await bus.publish(["first"])
    await until(lambda: bool(slow.notified))
    for _ in range(100):
        await bus.publish(["wrote 1", "wrote 2"])
    assert slow.notified == ["first"]
    slow.gate.set()
    await bus.close()  # which tells what is left
    assert slow.notified == ["first", "wrote 1\nwrote 2"]
    await until(lambda: there.heard[-3:] == ["first", "wrote 1", "wrote 2"])


async def test_listener_that_fails_keeps_no_other_from_hearing(database: Database):
    bus, heard = bus_on(database, Loops()), list[str]()

    def fail(signal: str) -> None:
        raise ZeroDivisionError(signal)

    bus.subscribe(fail)
    bus.subscribe(heard.append)
    await bus.publish(["wrote 1", "wrote 2"])
    assert heard == ["wrote 1", "wrote 2"]
    await bus.close()


@ONLY_POSTGRES
async def test_nodes_that_could_not_be_notified_are_told_later_that_they_missed_something(
    database: Database, there: Listener, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.001)

    class FailingDatabase(SlowDatabase):
        async def execute(self, query: Query) -> Rows:
            self.notified.append(query.values["payload"])
            if len(self.notified) <= 2:
                raise [StorageUnavailable("away"), ZeroDivisionError()][len(self.notified) - 1]
            return await database.execute(query)

    there.heard.clear()
    bus = PostgresBus(cast("Database", FailingDatabase(database)), Loops())
    await bus.publish(["lost"])
    await until(lambda: MISSED in there.heard)
    await bus.publish(["wrote 1"])
    await until(lambda: there.heard[-1] == "wrote 1")
    assert "lost" not in there.heard
    await bus.close()


@ONLY_POSTGRES
async def test_listening_connection_that_dies_silently_is_noticed_and_replaced(
    database_url: str, here: Listener, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(postgres, "LISTEN_CHECK_S", 0.05)
    monkeypatch.setattr(postgres, "WAIT_FOR_CONNECTION_S", 1.0)
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.001)
    async with relay_to(database_url) as (url, relay):
        database = await open_database(url, pool_size=1)
        bus = bus_on(database, Loops())
        there = Listener(bus)
        await until(lambda: there.heard == [MISSED])
        relay.freeze()  # what is connected stays so, and nothing gets through
        await here.bus.publish(["lost"])
        await until(lambda: there.heard == [MISSED, MISSED])
        await here.bus.publish(["wrote 1"])
        await until(lambda: there.heard[-1] == "wrote 1")
        relay.freeze()
        await bus.close()  # immediately, though nobody answers
        await database.close()
