"""What is particular to SQLite: group commit, one process a folder, nothing acknowledged is lost."""

import asyncio
import itertools
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from threadkeep.domain.errors import StorageConflict, StorageRefused, StorageUnavailable
from threadkeep.loops import Loops
from threadkeep.storage.database.connector import Plan, Query, Rows, Statement
from threadkeep.storage.database.sqlite import (
    MOST_UNITS_A_COMMIT,
    QUICK_ROWS,
    QUICK_VALUE_BYTES,
    SqliteDatabase,
)

ADD = Statement("INSERT INTO tk_meta (name, value) VALUES (:name, :value)")
NAMES = Statement("SELECT name FROM tk_meta ORDER BY name")
NOTHING = Statement("SELECT 1")
PATIENCE_S = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "threadkeep.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[SqliteDatabase]:
    database = await SqliteDatabase.open(path, reader_count=2)
    yield database
    await database.close()


@pytest.fixture
def outside(database: SqliteDatabase, path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is not ours, such as a backup tool's; it never waits for a lock."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        yield connection


def add_pair(name: str) -> Plan[None]:
    yield ADD(name=f"{name} 1", value="")
    yield ADD(name=f"{name} 2", value="")


def pair(name: str) -> set[str]:
    return {f"{name} 1", f"{name} 2"}


def names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute(NAMES.sqlite)}


class Held:
    """A plan that stops in the middle of its work, in the writer thread, until it is let go."""

    def __init__(self, *queries: str) -> None:
        self._queries = queries
        self._reached, self._go = threading.Event(), threading.Event()

    def plan(self) -> Plan[None]:
        for name in self._queries[:1]:
            yield ADD(name=name, value="")
        self._reached.set()
        assert self._go.wait(PATIENCE_S)
        for name in self._queries[1:]:
            yield ADD(name=name, value="")
        yield NOTHING()

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, PATIENCE_S)

    def let_go(self) -> None:
        self._go.set()


@asynccontextmanager
async def writer_busy(database: SqliteDatabase) -> AsyncGenerator[None]:
    """Whatever is handed to the writer meanwhile waits, and is then taken up together."""
    held = Held()
    holding = asyncio.create_task(database.write(held.plan))
    await held.reached()
    yield
    await asyncio.sleep(0)  # tasks made just now begin, and
    await asyncio.sleep(0)  # their work is handed over
    held.let_go()
    await holding


def commits(path: Path) -> int:
    """How many transactions the write-ahead log holds: a frame that ends one names the file's new size."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    page_size, salts = int.from_bytes(log[8:12]), log[16:24]
    frames = (log[at : at + 24] for at in range(32, len(log), 24 + page_size))
    return sum(any(frame[4:8]) for frame in frames if frame[8:16] == salts)


async def test_file_is_a_write_ahead_log_that_waits_for_the_disk(database: SqliteDatabase, path: Path):
    for ask in (database.fetch, database.execute):
        assert await ask(Statement("PRAGMA journal_mode")()) == [("wal",)]
        assert await ask(Statement("PRAGMA synchronous")()) == [(2,)]  # FULL
        assert await ask(Statement("PRAGMA foreign_keys")()) == [(1,)]


async def test_writes_that_wait_together_are_committed_together(
    database: SqliteDatabase, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.storage.database.sqlite.MOST_COMMIT_S", PATIENCE_S)
    before = commits(path)
    async with writer_busy(database):
        writes = [
            asyncio.create_task(database.execute(ADD(name=f"{number}", value="")))
            for number in range(MOST_UNITS_A_COMMIT + 1)
        ]
    await asyncio.gather(*writes)
    assert commits(path) - before == 2


async def test_writes_that_take_long_together_are_committed_apart_and_none_is_lost(
    database: SqliteDatabase, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.storage.database.sqlite.MOST_COMMIT_S", -1)
    before, waiting = commits(path), [f"{number}" for number in range(5)]
    async with writer_busy(database):
        writes = [asyncio.create_task(database.execute(ADD(name=name, value=""))) for name in waiting]
    await asyncio.gather(*writes)
    assert commits(path) - before == len(waiting)
    assert {name for (name,) in await database.fetch(NAMES())} == {*waiting}


async def test_writes_asked_for_in_the_same_round_of_the_event_loop_share_a_commit(
    database: SqliteDatabase, path: Path
):
    before = commits(path)
    await asyncio.gather(*(database.execute(ADD(name=f"{number}", value="")) for number in range(10)))
    # The writing thread may begin with the first of them while the others are being handed over.
    assert commits(path) - before <= 2


async def test_write_alone_is_committed_at_once(database: SqliteDatabase, path: Path):
    before = commits(path)
    for number in range(3):
        await database.execute(ADD(name=f"{number}", value=""))
    assert commits(path) - before == 3


async def test_caller_is_answered_only_after_the_commit(
    database: SqliteDatabase, outside: sqlite3.Connection
):
    held = Held("last")
    async with writer_busy(database):
        first = asyncio.create_task(database.execute(ADD(name="first", value="")))
        await asyncio.sleep(0)
        last = asyncio.create_task(database.write(held.plan))
    await held.reached()  # `first` has been run, in the transaction that `last` now holds up
    assert not first.done()
    assert "first" not in names(outside)
    held.let_go()
    await first
    assert "first" in names(outside)
    await last


async def test_every_answered_write_is_seen_from_outside(
    database: SqliteDatabase, outside: sqlite3.Connection
):
    async def write(writer: int) -> None:
        for number in range(5):
            await database.write(lambda n=number: add_pair(f"{writer}-{n}"))
            assert pair(f"{writer}-{number}") <= names(outside)

    await asyncio.gather(*map(write, range(8)))


async def test_reader_sees_what_was_answered(database: SqliteDatabase):
    for number in range(20):
        await database.execute(ADD(name=f"{number:02}", value=""))
        assert (await database.fetch(NAMES()))[-1] == (f"{number:02}",)


async def test_unit_that_fails_leaves_nothing_and_takes_nobody_with_it(
    database: SqliteDatabase, outside: sqlite3.Connection
):
    def fail(error: Exception | None) -> Plan[None]:
        yield ADD(name="half", value="")
        if error:
            raise error
        yield ADD(name="half", value="")

    async with writer_busy(database):
        writes = [
            asyncio.create_task(database.write(plan))
            for plan in (
                lambda: add_pair("before"),
                lambda: fail(None),
                lambda: fail(ValueError("no")),
                lambda: add_pair("after"),
            )
        ]
    before, conflict, refused, after = await asyncio.gather(*writes, return_exceptions=True)
    assert (before, after) == (None, None)
    assert isinstance(conflict, StorageConflict) and isinstance(refused, ValueError)
    assert names(outside) == pair("before") | pair("after")


async def test_failed_unit_alone_leaves_nothing(database: SqliteDatabase, outside: sqlite3.Connection):
    def fail() -> Plan[None]:
        yield ADD(name="half", value="")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await database.write(fail)
    await database.write(lambda: add_pair("next"))
    assert names(outside) == pair("next")


async def test_caller_cancelled_in_the_middle_leaves_no_half_unit(
    database: SqliteDatabase, outside: sqlite3.Connection
):
    held = Held(*sorted(pair("unit")))
    writing = asyncio.create_task(database.write(held.plan))
    await held.reached()
    waiting = asyncio.create_task(database.write(lambda: add_pair("waiting")))
    await asyncio.sleep(0)
    for task in (writing, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    held.let_go()
    await database.execute(NOTHING())
    assert names(outside) == pair("unit") | pair("waiting")


async def test_close_finishes_what_was_accepted(path: Path):
    database = await SqliteDatabase.open(path, reader_count=2)
    held = Held()
    holding = asyncio.create_task(database.write(held.plan))
    await held.reached()
    writes = [asyncio.create_task(database.write(lambda n=n: add_pair(f"{n}"))) for n in range(50)]
    reads = [asyncio.create_task(database.fetch(NOTHING())) for _ in range(50)]
    await asyncio.sleep(0)
    closing_ = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    with pytest.raises(StorageUnavailable):
        await database.execute(ADD(name="late", value=""))
    with pytest.raises(StorageUnavailable):
        await database.fetch(NOTHING())
    held.let_go()
    await asyncio.gather(holding, closing_, *writes, *reads)
    await database.close()
    with closing(sqlite3.connect(path)) as connection:
        assert names(connection) == set[str]().union(*(pair(f"{n}") for n in range(50)))
    assert not path.with_name(f"{path.name}-wal").exists()


async def test_nobody_meets_a_locked_database(database: SqliteDatabase, path: Path, tmp_path: Path):
    def meddle() -> None:
        """Reads at length, copies the file and empties its log, over and over."""
        with (
            closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as reader,
            closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as keeper,
            closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
        ):
            for _ in range(20):
                reader.execute("BEGIN")
                reader.execute(NAMES.sqlite).fetchall()
                keeper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                keeper.backup(copy)
                reader.execute("COMMIT")
                keeper.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    meddling = asyncio.create_task(asyncio.to_thread(meddle))
    written: set[str] = set()

    async def write(writer: int) -> None:
        for number in itertools.count():
            if meddling.done():
                return
            await database.write(lambda n=number: add_pair(f"{writer}-{n}"))
            written.update(pair(f"{writer}-{number}"))

    async def read() -> None:
        while not meddling.done():
            await database.fetch(NAMES())

    await asyncio.gather(meddling, *map(write, range(32)), *(read() for _ in range(8)))
    assert {name for (name,) in await database.fetch(NAMES())} == written


async def test_write_waits_while_somebody_outside_writes(
    database: SqliteDatabase, outside: sqlite3.Connection
):
    outside.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(database.execute(ADD(name="ours", value="")))
    assert await database.fetch(NAMES()) == []
    outside.execute("INSERT INTO tk_meta VALUES ('theirs', '')")
    assert not writing.done()
    outside.execute("COMMIT")
    await writing
    assert names(outside) == {"ours", "theirs"}


async def test_writes_fail_clearly_when_somebody_outside_never_lets_go(
    database: SqliteDatabase, outside: sqlite3.Connection
):
    await database.execute(Statement("PRAGMA busy_timeout = 1")())
    outside.execute("BEGIN IMMEDIATE")
    writes = (database.execute(ADD(name=f"{number}", value="")) for number in range(20))
    errors = await asyncio.gather(*writes, return_exceptions=True)
    assert {type(error) for error in errors} == {StorageUnavailable}
    assert await database.fetch(NAMES()) == []
    outside.execute("ROLLBACK")
    await database.execute(ADD(name="again", value=""))
    assert names(outside) == {"again"}


OPEN = """
import asyncio, sys
from pathlib import Path
from threadkeep.domain.errors import StorageRefused
from threadkeep.storage.database.sqlite import SqliteDatabase

async def main():
    try:
        database = await SqliteDatabase.open(Path(sys.argv[1]), reader_count=1)
    except StorageRefused as exc:
        print(exc)
    else:
        await database.close()
        print("opened")

asyncio.run(main())
"""

FORGET = """
import asyncio, sys
from pathlib import Path
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.database.sqlite import SqliteDatabase

async def main():
    database = await SqliteDatabase.open(Path(sys.argv[1]), reader_count=1)
    await database.execute(Statement("INSERT INTO tk_meta VALUES ('kept', '')")())

asyncio.run(main())
"""

# Sixteen writers; what the database has acknowledged is said at once, a line each.
WRITE = """
import asyncio, sys
from pathlib import Path
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.database.sqlite import SqliteDatabase

ADD = Statement("INSERT INTO tk_meta (name, value) VALUES (:name, :value)")

def add_pair(name):
    yield ADD(name=f"{name} 1", value="x" * 500)
    yield ADD(name=f"{name} 2", value="x" * 500)

async def write(database, writer):
    for number in range(1_000_000):
        name = f"{sys.argv[2]}-{writer}-{number}"
        await database.write(lambda: add_pair(name))
        sys.stdout.write(f"{name}\\n")
        sys.stdout.flush()

async def main():
    database = await SqliteDatabase.open(Path(sys.argv[1]), reader_count=1)
    await asyncio.gather(*(write(database, writer) for writer in range(16)))

asyncio.run(main())
"""


@contextmanager
def running(program: str, *arguments: object) -> Generator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().rstrip("\n")


async def test_folder_in_use_is_refused_with_the_name_of_the_process(database: SqliteDatabase, path: Path):
    said = f"The data folder {path.parent} is in use by another Threadkeep (process {os.getpid()})"
    with pytest.raises(StorageRefused) as refused:
        await SqliteDatabase.open(path.with_name("other.db"), reader_count=1)
    assert said in refused.value.message
    with running(OPEN, path) as second:
        assert said in line(second)
    await database.execute(ADD(name="still ours", value=""))


async def test_folder_can_be_opened_after_it_was_closed(database: SqliteDatabase, path: Path):
    await database.execute(ADD(name="kept", value=""))
    await database.close()
    with running(OPEN, path) as second:
        assert line(second) == "opened"
    again = await SqliteDatabase.open(path, reader_count=1)
    assert await again.fetch(NAMES()) == [("kept",)]
    await again.close()


async def test_process_that_never_closes_ends_all_the_same(path: Path):
    with running(FORGET, path) as process:
        assert await asyncio.to_thread(process.wait) == 0
    again = await SqliteDatabase.open(path, reader_count=1)
    assert await again.fetch(NAMES()) == [("kept",)]
    await again.close()


async def test_killed_process_frees_the_folder_and_loses_nothing_acknowledged(path: Path):
    acknowledged: set[str] = set()
    for round_ in range(4):
        with running(WRITE, path, round_) as writer:
            assert writer.stdout
            for _ in range(random.randrange(1, 400)):
                acknowledged.add(line(writer))
            with pytest.raises(StorageRefused, match=f"process {writer.pid}"):
                await SqliteDatabase.open(path, reader_count=1)
            writer.kill()
            # The last line may have been cut off, and then it says nothing.
            acknowledged |= {said.rstrip("\n") for said in writer.stdout if said.endswith("\n")}

        database = await SqliteDatabase.open(path, reader_count=1)
        kept = {name for (name,) in await database.fetch(NAMES())}
        await database.close()
        assert set[str]().union(*map(pair, acknowledged)) <= kept
        assert {f"{name[:-1]}{end}" for name in kept for end in (1, 2)} == kept
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


COUNTING = Statement(
    """WITH RECURSIVE counting (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counting LIMIT :most)
    SELECT max(number) FROM counting"""
)


class ReadingThreads:
    """A plan of one statement that notes in which thread it ran, each time that it began."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self.seen: list[bool] = []

    def __call__(self) -> Plan[Rows]:
        self.seen.append(threading.current_thread() is threading.main_thread())
        return (yield self._query)


async def test_quick_read_needs_no_thread(database: SqliteDatabase):
    reading = ReadingThreads(COUNTING(most=10))
    assert list(await database.read(reading)) == [(10,)]
    assert reading.seen == [True]


async def test_quick_read_needs_no_thread_however_often_it_is_repeated(database: SqliteDatabase):
    reading = ReadingThreads(COUNTING(most=100))
    for _ in range(200):
        await database.read(reading)
    assert all(reading.seen)


async def test_long_read_is_begun_again_in_a_thread(database: SqliteDatabase):
    reading = ReadingThreads(COUNTING(most=100_000))
    assert list(await database.read(reading)) == [(100_000,)]
    assert reading.seen == [True, False]


ROWS = Statement(
    """WITH RECURSIVE numbered(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbered WHERE n < :rows)
    SELECT hex(zeroblob(:size / 2)) FROM numbered"""
)


@pytest.mark.parametrize(
    ("rows", "size", "is_quick"),
    [
        (QUICK_ROWS, 1_000, True),
        (1, QUICK_VALUE_BYTES + 2, False),
        (QUICK_ROWS, QUICK_VALUE_BYTES // 2, True),
        (500, 1_000, True),
        (500, 5_000, False),
    ],
)
async def test_event_loop_reads_neither_large_values_nor_many_bytes(
    database: SqliteDatabase, rows: int, size: int, is_quick: bool
):
    reading = ReadingThreads(ROWS(rows=rows, size=size))
    assert [len(text) for (text,) in await database.read(reading)] == [size] * rows
    assert reading.seen == ([True] if is_quick else [True, False])


async def test_rows_end_with_the_one_that_reaches_the_bytes_asked_for(database: SqliteDatabase):
    for most_bytes, count in ((1, 1), (1_000, 1), (1_001, 2), (9_500, 10), (99_000, 50)):
        assert len(await database.fetch(ROWS(rows=50, size=1_000, most_bytes=most_bytes))) == count


async def test_full_text_search_is_never_waited_for_by_the_event_loop(database: SqliteDatabase):
    search = Statement("SELECT count(*) FROM tk_entry_terms WHERE tk_entry_terms MATCH 'word'")
    reading = ReadingThreads(search())
    assert list(await database.read(reading)) == [(0,)]
    assert reading.seen == [True, False]


async def test_reading_on_and_on_leaves_others_their_turn(database: SqliteDatabase):
    reading = asyncio.create_task(read_for_ever(database))
    for _ in range(10):
        await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def read_for_ever(database: SqliteDatabase) -> None:
    while True:
        await database.fetch(NOTHING())


class Unruly(sqlite3.Connection):
    """A connection that fails to do what nobody expects to fail."""

    faults: ClassVar[dict[str, BaseException]] = {}

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:  # type: ignore[override]
        if fault := self.faults.pop(sql, None):
            raise fault
        return super().execute(sql, *parameters)


@pytest.mark.parametrize(
    "faults",
    [
        {"ROLLBACK": sqlite3.OperationalError("disk I/O error")},
        {"COMMIT": MemoryError()},
        {"BEGIN IMMEDIATE": ZeroDivisionError()},
    ],
)
async def test_writer_goes_on_after_what_nobody_expected(
    path: Path, monkeypatch: pytest.MonkeyPatch, faults: dict[str, BaseException]
):
    def connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Unruly)

    monkeypatch.setattr("threadkeep.storage.database.sqlite._connect", connect)
    loops = Loops()
    database = await SqliteDatabase.open(path, reader_count=1, loops=loops)

    def fail() -> Plan[None]:
        yield ADD(name="lost", value="")
        if "ROLLBACK" in faults:  # else it fails by itself
            raise ValueError("a plan that fails")

    Unruly.faults.update(faults)
    with pytest.raises((StorageUnavailable, ValueError)):
        await asyncio.wait_for(database.write(fail), PATIENCE_S)
    assert not Unruly.faults
    assert loops.failures == {"SQLite's writer": 1}
    await asyncio.wait_for(database.write(lambda: add_pair("a")), PATIENCE_S)
    assert {name for (name,) in await database.fetch(NAMES())} >= pair("a")
    assert "lost" not in {name for (name,) in await database.fetch(NAMES())}
    await database.close()
