"""The bus: heard here at once, by every other node soon, and nobody waits for the others."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import cast

import psycopg
import pytest

from tests.conftest import ONLY_POSTGRES
from tests.faults.relaying import relay_to
from tests.pooling import NEEDS_PGBOUNCER, PgBouncer
from threadkeep import loops
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.loops import Loops
from threadkeep.ports.bus import MISSED
from threadkeep.storage.database import postgres
from threadkeep.storage.database.bus import LocalBus, PostgresBus, bus_on, listening
from threadkeep.storage.database.bus.sending import CHANNEL
from threadkeep.storage.database.bus.signal_rows import ORDER_LOCK, SignalRows
from threadkeep.storage.database.connector import Database, Query, Rows, Statement
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


@asynccontextmanager
async def node(way: str, database_url: str) -> AsyncGenerator[Listener]:
    """A node that hears the others in this way, which knows that it may have missed something."""
    with PgBouncer(database_url) if way == "pooled" else nullcontext() as pooler:
        database = await open_database(pooler.url if pooler else database_url, pool_size=2)
        listener = Listener(bus_on(database, Loops(), polls=way != "listens"))
        if database.dialect == "postgres":
            await until(lambda: listener.heard == [MISSED])
        yield listener
        await listener.bus.close()
        await database.close()


LISTENS = ("listens", "listens")
HOW_TWO_NODES_HEAR = pytest.mark.parametrize(
    "ways",
    [
        LISTENS,
        ("polls", "polls"),
        ("listens", "polls"),
        ("polls", "listens"),
        pytest.param(("pooled", "pooled"), marks=NEEDS_PGBOUNCER),
    ],
    ids="-".join,
)


@pytest.fixture
def ways() -> tuple[str, str]:
    """How `here` and `there` hear each other."""
    return LISTENS


@pytest.fixture
async def here(database_url: str, ways: tuple[str, str]) -> AsyncIterator[Listener]:
    async with node(ways[0], database_url) as here:
        here.heard.clear()
        yield here


@pytest.fixture
async def there(database_url: str, ways: tuple[str, str], here: Listener) -> AsyncIterator[Listener]:
    """Another node, which hears already."""
    async with node(ways[1], database_url) as there:
        yield there


async def test_who_is_here_hears_at_once_until_they_leave(here: Listener):
    heard: list[str] = []
    leave = here.bus.subscribe(heard.append)
    await here.bus.publish(["wrote 1", "changed 2"])
    assert here.heard == heard == ["wrote 1", "changed 2"]
    leave()
    await here.bus.publish(["wrote 3"])
    assert (here.heard[-1], heard[-1]) == ("wrote 3", "changed 2")


@ONLY_POSTGRES
@HOW_TWO_NODES_HEAR
async def test_other_node_hears_everything_however_much_it_is(here: Listener, there: Listener):
    signals = [f"wrote {number:036}" for number in range(1_000)]  # several payloads
    await here.bus.publish(signals)
    await until(lambda: set(signals) <= set(there.heard))
    assert [it for it in there.heard if it != MISSED] == signals
    await there.bus.publish(["answered"])
    await until(lambda: here.heard[-1] == "answered")


@ONLY_POSTGRES
async def test_polling_node_hears_each_signal_once_however_long_commits_take(
    database: Database, database_url: str
):
    writers = [SignalRows(database, CHANNEL) for _ in range(4)]
    async with node("polls", database_url) as there:
        async with asyncio.TaskGroup() as writing:
            for number, rows in enumerate(writers):
                writing.create_task(write_each(rows, [f"wrote {number} {count}" for count in range(25)]))
        await until(lambda: len(there.heard) >= 101)
        for number in range(len(writers)):
            ours = [it for it in there.heard if it.startswith(f"wrote {number} ")]
            assert ours == [f"wrote {number} {count}" for count in range(25)]


async def write_each(rows: SignalRows, signals: Sequence[str]) -> None:
    for signal in signals:
        await rows.add(signal)


@ONLY_POSTGRES
async def test_row_becomes_visible_only_after_all_before_it(database: Database, database_url: str):
    """A number taken first whose commit comes last would be passed over."""
    rows = SignalRows(database, CHANNEL)
    seen = await rows.add("first")
    async with await psycopg.AsyncConnection.connect(database_url) as slow:
        await slow.execute("SELECT pg_advisory_xact_lock(%s)", [ORDER_LOCK])
        await slow.execute("INSERT INTO tk_signals (node, payload, written_at) VALUES ('slow', 'second', 0)")
        third = asyncio.create_task(SignalRows(database, CHANNEL).add("third"))
        await until_somebody_waits(database)
        assert await rows.read(seen) == ([], seen)
        await slow.commit()
    await third
    read = await rows.read(seen)
    assert read and read[0] == ["second", "third"]


async def until_somebody_waits(database: Database) -> None:
    waiting = Statement(
        "SELECT 1", postgres="SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    )

    async def waits() -> bool:
        return bool(await database.fetch(waiting()))

    await until(waits)


@ONLY_POSTGRES
async def test_rows_go_after_a_minute_and_who_was_away_longer_knows_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    rows, others = SignalRows(database, CHANNEL), SignalRows(database, CHANNEL)
    seen = await rows.add("")
    await others.add("wrote 1")
    await others.trim()
    read = await rows.read(seen)
    assert read and read[0] == ["wrote 1"]
    monkeypatch.setattr("threadkeep.storage.database.bus.signal_rows.KEPT_MS", -1)
    await others.add("wrote 2")
    await others.trim()
    assert await rows.read(seen) is None
    assert await rows.read(read[1]) is None
    newest = await rows.add("")
    assert await others.read(newest) == ([], newest)


@ONLY_POSTGRES
async def test_polling_node_whose_place_is_gone_catches_up(database: Database, database_url: str):
    """As after a replica took over, which has other rows."""
    async with node("polls", database_url) as there:
        await database.execute(Statement("SELECT 1", postgres="DELETE FROM tk_signals")())
        await until(lambda: there.heard == [MISSED, MISSED])
        await SignalRows(database, CHANNEL).add("wrote 1")
        await until(lambda: there.heard[-1] == "wrote 1")


@ONLY_POSTGRES
@NEEDS_PGBOUNCER
async def test_node_that_listens_behind_a_pooler_names_the_setting(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(listening, "COMES_BACK_S", 0.05)
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.001)
    running = Loops()
    with PgBouncer(database_url) as pooler:
        database = await open_database(pooler.url, pool_size=1)
        bus = bus_on(database, running)

        async def fails() -> bool:
            await bus.publish(["wrote 1"])
            return running.failing == ["listening to other nodes"]

        await until(fails)
        await bus.close()
        await database.close()
    assert "set THREADKEEP_BUS_URL=poll:" in caplog.text


@ONLY_POSTGRES
async def test_database_that_takes_nothing_does_not_keep_a_node_from_closing(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.storage.database.bus.sending.LAST_WORDS_S", 0.01)
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
