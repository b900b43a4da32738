"""SQLite: one writer thread with group commit, a few reader threads, one process per data folder.

Quick reads, nearly all of them, are not worth a thread: Python runs one at a time, and handing a read over
and its rows back costs more than the read itself. So a read starts in the caller's event loop; a long one
is interrupted there and restarted in a reader thread.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from sys import getsizeof
from typing import Any, Literal, TypeVar, cast

import msgspec

from threadkeep.domain.errors import StorageConflict, StorageRefused, StorageUnavailable, ThreadkeepError
from threadkeep.loops import Loops, Watch
from threadkeep.storage.database.backup import copy_beside
from threadkeep.storage.database.connector import Plan, Query, Row, Rows, single
from threadkeep.storage.database.folder import FolderLock, check_restored, make_private_database
from threadkeep.storage.database.migrate import migrate, migrations, migrations_to_apply

log = logging.getLogger("threadkeep.storage")

T = TypeVar("T")

MOST_UNITS_A_COMMIT = 512
MOST_COMMIT_S = 0.1
"""After this, what else is waiting has a commit of its own: nobody waits for all of a crowd's writes."""
QUICK_VALUE_BYTES = 64 * 1024
QUICK_ROWS = 32
QUICK_BYTES = 1024 * 1024
"""What a read in the event loop returns: no larger value, and more than a few rows only if they are small."""
QUICK_STEPS = 10_000
"""Steps of SQLite's virtual machine, a few milliseconds, that a read may take twice in the event loop."""

MOST_READ_S = 0.001
"""How long the event loop reads before it does other things. If it did so after each read, turns that begin
at once would all wait for one another at every step."""

_decode_rows = msgspec.json.Decoder(list[Row]).decode


class SqliteDatabase:
    """A SQLite file. Callers get their answer only once their work is on disk."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(
        self,
        lock: FolderLock,
        quick: sqlite3.Connection,
        writer: "_Writer",
        readers: list[sqlite3.Connection],
    ) -> None:
        self._lock = lock
        self._quick = _QuickReader(quick)
        self._writes: queue.SimpleQueue[_Unit | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Unit | None] = queue.SimpleQueue()
        self._read_s = 0.0
        self._collected: dict[asyncio.AbstractEventLoop, list[_Unit]] = {}
        # Daemons: a host that forgets to close us can still exit, and all acknowledged work is on disk.
        self._threads = [
            threading.Thread(target=writer.write_all, args=(self._writes,), name="tk-writer", daemon=True)
        ]
        self._threads += [
            threading.Thread(
                target=_read_all, args=(reader, self._reads), name=f"tk-reader-{number}", daemon=True
            )
            for number, reader in enumerate(readers)
        ]
        self._closed = False
        for thread in self._threads:
            thread.start()

    @staticmethod
    async def open(path: Path, *, reader_count: int, loops: Loops | None = None) -> "SqliteDatabase":
        """Opens the file, locks its folder, and migrates it."""
        lock = await asyncio.to_thread(FolderLock.take, path.parent)
        try:
            check_restored(path.parent)
            quick, writer, *readers = await asyncio.to_thread(_prepare, path, 2 + reader_count)
        except BaseException:
            lock.release()
            raise
        watch = (loops or Loops()).watch("SQLite's writer")
        return SqliteDatabase(lock, quick, _Writer(path, writer, watch), readers)

    async def fetch(self, query: Query) -> Rows:
        """Runs one reading statement."""
        return await self.read(lambda: single(query))

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        """Runs a plan of reading statements; a long one in a reader thread."""
        if self._closed:
            raise _closed()
        begun = time.perf_counter()
        try:
            result = self._quick.run(plan)
        except _NotQuick:
            unit = _Unit(plan)
            self._reads.put(unit)
            return await unit.answer
        self._read_s += time.perf_counter() - begun
        if self._read_s > MOST_READ_S:  # callers that keep reading let others run
            self._read_s = 0.0
            await asyncio.sleep(0)
        return result

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        """Runs one writing statement. Readers never block the writer, so nothing is more urgent."""
        return await self.write(lambda: single(query))

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        """Runs a plan in the writer thread, committed together with whatever else is waiting there."""
        if self._closed:
            raise _closed()
        unit = _Unit(plan)
        collected = self._collected.get(unit.loop)
        if collected is None:
            # Others who ask in this round of the event loop share the commit. Woken by the first of them,
            # the writer would commit it alone, and both threads would compete for the interpreter.
            collected = self._collected[unit.loop] = []
            unit.loop.call_soon(self._hand_over, unit.loop)
        collected.append(unit)
        # A caller that is cancelled here leaves its unit in the queue: it is done entirely or not at all.
        return await unit.answer

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        for unit in self._collected.pop(loop, ()):
            self._writes.put(unit)

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        """Nothing: no other process uses this file."""
        return
        yield

    async def close(self) -> None:
        """Finishes the accepted work, then ends the threads."""
        if self._closed:
            return
        self._closed = True
        self._quick.close()
        writer, *readers = self._threads
        for _ in readers:
            self._reads.put(None)
        for reader in readers:
            await asyncio.to_thread(reader.join)
        # Last and alone, so that its closing moves the log into the file, which can then be copied.
        for loop in list(self._collected):
            self._hand_over(loop)
        self._writes.put(None)
        await asyncio.to_thread(writer.join)
        self._lock.release()


class _Unit:
    """A plan on its way through a thread, and the waiting caller's future."""

    __slots__ = ("answer", "error", "is_settled", "loop", "plan", "result")

    def __init__(self, plan: Callable[[], Plan[Any]]) -> None:
        self.plan = plan
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_settled = False
        """Whether the result is on disk or the error final."""

    def run(self, connection: sqlite3.Connection) -> None:
        """Drives the plan to its end and keeps its result or its error for the caller."""
        self.error = None
        try:
            self.result = run(connection, self.plan)
        except Exception as exc:  # noqa: BLE001 - the unit ends here; its caller gets the error
            self.error = exc

    def deliver(self) -> None:
        """Hands over the result or error; runs in the caller's event loop."""
        if self.answer.done():  # the caller was cancelled
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)


class _NotQuick(Exception):
    """A read that the event loop must not wait for."""


class _QuickReader:
    """Reads in the event loop, within limits."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._free = threading.Lock()  # event loops of several threads may use one database
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA busy_timeout = 0")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, QUICK_VALUE_BYTES)
        self._progress = 0
        connection.set_progress_handler(self._is_long, QUICK_STEPS)

    def run(self, plan: Callable[[], Plan[T]]) -> T:
        """Drives a plan to its end, or raises _NotQuick."""
        if not self._free.acquire(blocking=False):
            raise _NotQuick
        self._progress = 0
        try:
            return run(self._connection, plan, _quick_rows)
        except StorageUnavailable as exc:  # interrupted, too large, or another process holds the file
            raise _NotQuick from exc
        finally:
            self._free.release()

    def _is_long(self) -> bool:
        """Whether to interrupt: not at the first call, since SQLite counts on from a statement's last use."""
        self._progress += 1
        return self._progress > 1

    def close(self) -> None:
        """Closes the connection."""
        with self._free:
            self._connection.close()


def _closed() -> StorageUnavailable:
    return StorageUnavailable("The database is closed.")


_GetRows = Callable[[sqlite3.Connection, Query], Rows]


def run(connection: sqlite3.Connection, plan: Callable[[], Plan[T]], get_rows: "_GetRows | None" = None) -> T:
    """Drives a plan to its end; translates the database's errors."""
    try:
        return _drive(connection, plan(), get_rows or _rows)
    except sqlite3.Error as exc:
        raise _translate(exc) from exc
    except (UnicodeEncodeError, OverflowError) as exc:  # half a surrogate pair, more than 64 bits
        raise StorageConflict(f"The database rejected the row: {exc}.") from exc


def _drive(connection: sqlite3.Connection, plan: Plan[T], get_rows: "_GetRows") -> T:
    try:
        query = next(plan)
        while True:
            query = plan.send(get_rows(connection, query))
    except StopIteration as stop:
        return cast("T", stop.value)


def _rows(connection: sqlite3.Connection, query: Query) -> Rows:
    statement, values = query
    given = [values[name] for name in statement.sqlite_names]
    if statement.sqlite_page is not None:
        return _decode_rows(connection.execute(statement.sqlite_page, given).fetchone()[0])
    cursor = connection.execute(statement.sqlite, given)
    if not cursor.description:
        return [()] * cursor.rowcount
    most_bytes = values.get("most_bytes")
    return cursor.fetchall() if most_bytes is None else _rows_up_to(cursor, most_bytes)


def _quick_rows(connection: sqlite3.Connection, query: Query) -> Rows:
    # Full-text search does much within one step, which the step count misses.
    if query.statement.sqlite_searches:
        raise _NotQuick
    statement, values = query
    if statement.sqlite_page is not None or "most_bytes" in values:
        return _rows(connection, query)
    cursor = connection.execute(statement.sqlite, [values[name] for name in statement.sqlite_names])
    rows = cursor.fetchmany(QUICK_ROWS)
    left = QUICK_BYTES
    while some := cursor.fetchmany(QUICK_ROWS):
        rows += some
        left -= sum(map(_size, some))
        if left < 0:
            raise _NotQuick
    return rows


def _rows_up_to(cursor: sqlite3.Cursor, most_bytes: int) -> Rows:
    rows: list[Row] = []
    left, measured, unmeasured = most_bytes, 0, 0
    for row in cursor:
        rows.append(row)
        # Never less than `_size`, and quick: most pages are so small that nothing has to be measured.
        unmeasured += 4 * sum(map(getsizeof, row))
        if unmeasured >= left:
            left -= sum(map(_size, rows[measured:]))
            measured, unmeasured = len(rows), 0
            if left <= 0:
                break
    return rows


def _size(row: Row) -> int:
    """How many bytes the texts of a row take at most."""
    return sum(len(it) if it.isascii() else 4 * len(it) for it in row if isinstance(it, str | bytes))


def _read_all(connection: sqlite3.Connection, units: "queue.SimpleQueue[_Unit | None]") -> None:
    connection.execute("PRAGMA query_only = ON")
    while unit := units.get():
        unit.run(connection)
        _deliver((unit,))
    connection.close()


class _Writer:
    """The only thread that writes. It goes on after whatever happens to a batch."""

    def __init__(self, path: Path, connection: sqlite3.Connection, watch: Watch) -> None:
        self._path = path
        self._connection = connection
        self._watch = watch

    def write_all(self, units: "queue.SimpleQueue[_Unit | None]") -> None:
        """Commits what is waiting, until None arrives."""
        waiting: deque[_Unit] = deque()
        open_for_more = True
        while True:
            if not waiting:
                if not open_for_more or (unit := units.get()) is None:
                    break
                waiting.append(unit)
            while open_for_more and len(waiting) < MOST_UNITS_A_COMMIT and not units.empty():
                if (another := units.get()) is None:
                    open_for_more = False
                else:
                    waiting.append(another)
            batch = list(waiting)
            self._commit(batch)
            for _ in batch:
                waiting.popleft()
            _deliver(batch)
        self._connection.close()

    def _commit(self, batch: list[_Unit]) -> None:
        try:
            self._roll_back()  # nothing, unless reconnecting failed
            self._commit_together(batch)
        except Exception as exc:  # noqa: BLE001 - the batch ends here; its callers get the error
            self._watch.failed(exc)
            for unit in batch:
                if not unit.is_settled:
                    unit.error = _unwritten(exc)
            self._reconnect()
        else:
            self._watch.succeeded()

    def _commit_together(self, batch: list[_Unit]) -> None:
        """One transaction, one fsync for the whole batch; a failing unit doesn't affect the others."""
        connection = self._connection
        if len(batch) == 1:
            self._commit_alone(batch[0])
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as exc:  # another process holds the file: no unit would fare better alone
            for unit in batch:
                unit.error, unit.is_settled = _translate(exc), True
            return
        try:
            if not self._run_together(batch):
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                self._run_apart(batch)
            connection.execute("COMMIT")
        except sqlite3.Error:
            # The commit failed, or an error such as a full disk ended the transaction for all. Nothing of it
            # was written, so each unit gets its own transaction, and only those that can't be done fail.
            self._roll_back()
            for unit in batch:
                self._commit_alone(unit)
        for unit in batch:
            unit.is_settled = True

    def _run_together(self, batch: list[_Unit]) -> bool:
        """Runs units, unless one fails that has written: what it wrote must be undone, and only that.

        Takes those out of the batch that would keep the first ones waiting for long.
        """
        connection = self._connection
        until = time.perf_counter() + MOST_COMMIT_S
        for at, unit in enumerate(batch):
            if at and time.perf_counter() > until:
                del batch[at:]
                return True
            changes = connection.total_changes
            unit.run(connection)
            has_failed = unit.error is not None
            if has_failed and (connection.total_changes != changes or not connection.in_transaction):
                return False
        return True

    def _run_apart(self, batch: list[_Unit]) -> None:
        """Runs units so that each can be undone. That costs a copy of each page that each of them changes."""
        for unit in batch:
            self._connection.execute("SAVEPOINT unit")
            unit.run(self._connection)
            if unit.error is not None:
                self._connection.execute("ROLLBACK TO unit")
            self._connection.execute("RELEASE unit")

    def _commit_alone(self, unit: _Unit) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            unit.run(self._connection)
            if unit.error is None:
                self._connection.execute("COMMIT")
        except sqlite3.Error as exc:
            unit.error = _translate(exc)
        unit.is_settled = True
        self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _reconnect(self) -> None:
        """Drops a connection in an unknown state, and with it its transaction."""
        try:
            connection = _connect(self._path)
            _configure(connection)
        except sqlite3.Error as exc:
            log.warning("couldn't open the database again: %s", exc)
            return  # the next batch fails and tries again
        self._connection.close()
        self._connection = connection


def _unwritten(error: Exception) -> ThreadkeepError:
    """For a unit that was not committed because something unexpected happened."""
    if isinstance(error, sqlite3.Error):
        return _translate(error)
    unwritten = StorageUnavailable("The database is unavailable. Try again in a moment.")
    unwritten.__cause__ = error
    return unwritten


def _deliver(units: Iterable[_Unit]) -> None:
    """Wakes the callers, each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Unit]] = {}
    for unit in units:
        by_loop.setdefault(unit.loop, []).append(unit)
    for loop, its_units in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_here, its_units)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits for it
            continue


def _deliver_here(units: Iterable[_Unit]) -> None:
    for unit in units:
        unit.deliver()


def _prepare(path: Path, connection_count: int) -> list[sqlite3.Connection]:
    """Connects and migrates; any fault of the file surfaces here, before anyone is served."""
    connections: list[sqlite3.Connection] = []
    make_private_database(path)
    try:
        while len(connections) < connection_count:
            connections.append(_connect(path))
            _configure(connections[-1])
        _migrate(connections[0], path)
    except (sqlite3.Error, StorageRefused) as exc:
        for connection in connections:
            connection.close()
        if isinstance(exc, StorageRefused):
            raise
        raise StorageRefused(f"Couldn't open the database {path}: {exc}.") from exc
    return connections


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrates the schema in one transaction, after copying the database."""
    known = migrations("sqlite")
    missing = _drive(connection, migrations_to_apply(known), _rows)
    if not missing:
        # Only this write reveals a read-only file.
        connection.executescript("BEGIN IMMEDIATE; DELETE FROM tk_migrations WHERE FALSE; COMMIT")
        return
    if len(missing) < len(known):
        copy = copy_beside(path, missing[0].version)
        log.info("migrated the database; a copy of the previous version is in %s until you delete it", copy)
    # Neither can change within a transaction. Rebuilding a table drops it, which with foreign keys on would
    # delete all rows that refer to it; and references in other tables must keep the name it gets back.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA legacy_alter_table = ON")
    connection.execute("BEGIN IMMEDIATE")
    before = _dangling_rows(connection)
    _drive(connection, migrate(known), _rows)
    _check_foreign_keys(before, _dangling_rows(connection))
    connection.execute("COMMIT")
    connection.execute("PRAGMA legacy_alter_table = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _dangling_rows(connection: sqlite3.Connection) -> Counter[tuple[str, str]]:
    """How many of our rows refer to a missing row, by their table and the missing row's table."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'tk_*'")
    return Counter(
        (table, missing_in)
        for (name,) in tables.fetchall()
        for table, _, missing_in, _ in connection.execute(f"PRAGMA foreign_key_check({name})")
    )


def _check_foreign_keys(before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]) -> None:
    """Refuses a migration that loses a row that another refers to. Rows missing before are ignored."""
    for (table, missing_in), count in (after - before).items():
        raise StorageRefused(
            f"The migration was rolled back: {count} rows of {table} would refer to missing rows of "
            f"{missing_in}. The database is unchanged. Continue with the previous version of Threadkeep "
            "and report this."
        )
    for (table, missing_in), count in before.items():
        log.warning(
            "%d rows of %s refer to missing rows of %s, as they did before the migration: someone deleted "
            "those rows by hand. Nothing else is affected, and you don't need to do anything",
            count,
            table,
            missing_in,
        )


def _connect(path: Path) -> sqlite3.Connection:
    # Created in one thread and used in another, but never by two at once.
    return sqlite3.connect(path, isolation_level=None, cached_statements=256, check_same_thread=False)


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -32768")
    # Only a checkpoint or a backup tool can make us wait, and then not for long.
    connection.execute("PRAGMA busy_timeout = 10000")


def _translate(error: sqlite3.Error) -> ThreadkeepError:
    if isinstance(error, sqlite3.IntegrityError):
        translated = StorageConflict(f"The database rejected the row: {error}.")
    else:
        translated = StorageUnavailable(f"The database is unavailable: {error}.")
    translated.__cause__ = error
    return translated
