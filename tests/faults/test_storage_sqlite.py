"""A disk that is full or read-only, a file that is no database: a clear error, and nothing half-written."""

import asyncio
import os
import pwd
import resource
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from tests.postgres import is_open_to_all
from threadkeep.domain.errors import StorageRefused, StorageUnavailable
from threadkeep.storage.database.connector import Plan, Statement
from threadkeep.storage.database.migrate import Migration, migrations
from threadkeep.storage.database.sqlite import SqliteDatabase

Fill = Callable[[SqliteDatabase, Path], AbstractAsyncContextManager[None]]

ADD = Statement("INSERT INTO tk_meta (name, value) VALUES (:name, :value)")
NAMES = Statement("SELECT name FROM tk_meta")
SMALL, LARGE = 500, 2_000_000
ROOM = 200_000


def add_pair(name: str, size: int = SMALL) -> Plan[None]:
    yield ADD(name=f"{name} 1", value="x" * size)
    yield ADD(name=f"{name} 2", value="x" * size)


def pairs(*names: str) -> set[str]:
    return {f"{name} {number}" for name in names for number in (1, 2)}


async def stored(database: SqliteDatabase) -> set[str]:
    return {name for (name,) in await database.fetch(NAMES())}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "threadkeep.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[SqliteDatabase]:
    database = await SqliteDatabase.open(path, reader_count=2)
    yield database
    await database.close()


@contextmanager
def no_file_larger_than(size: int) -> Generator[None]:
    """The operating system refuses to let any file grow beyond this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@asynccontextmanager
async def failing_to_grow(_: SqliteDatabase, path: Path) -> AsyncGenerator[None]:
    """Writing fails at the very end, when the transaction goes into the log."""
    with no_file_larger_than(path.with_name(f"{path.name}-wal").stat().st_size + ROOM):
        yield


@asynccontextmanager
async def out_of_pages(database: SqliteDatabase, path: Path) -> AsyncGenerator[None]:
    """Writing fails in the middle of the transaction, which SQLite then ends by itself."""
    ((pages, size),) = await database.fetch(Statement("SELECT * FROM pragma_page_count, pragma_page_size")())
    await database.execute(Statement(f"PRAGMA max_page_count = {pages + ROOM // size}")())
    yield
    await database.execute(Statement("PRAGMA max_page_count = 1073741823")())


every_kind_of_full = pytest.mark.parametrize("full", [failing_to_grow, out_of_pages])


@every_kind_of_full
async def test_full_disk_fails_the_write_and_nothing_else(database: SqliteDatabase, path: Path, full: Fill):
    await database.write(lambda: add_pair("before"))
    async with full(database, path):
        with pytest.raises(StorageUnavailable):
            await database.write(lambda: add_pair("large", LARGE))
        assert await stored(database) == pairs("before")
        await database.write(lambda: add_pair("small"))
        assert await stored(database) == pairs("before", "small")
    await database.write(lambda: add_pair("large", LARGE))
    assert await stored(database) == pairs("before", "small", "large")


@every_kind_of_full
async def test_disk_that_fills_up_loses_nothing_that_was_acknowledged(
    database: SqliteDatabase, path: Path, full: Fill
):
    acknowledged: set[str] = set()

    async def write(writer: int) -> None:
        for number in range(1_000):
            name = f"{writer}-{number}"
            await database.write(lambda n=name: add_pair(n, 5_000))
            acknowledged.update(pairs(name))

    async with full(database, path):
        errors = await asyncio.gather(*map(write, range(4)), return_exceptions=True)
        assert {type(error) for error in errors} == {StorageUnavailable}
        assert acknowledged
        assert await stored(database) == acknowledged
    await database.write(lambda: add_pair("after"))
    await database.close()

    again = await SqliteDatabase.open(path, reader_count=1)
    assert await stored(again) == acknowledged | pairs("after")
    assert [*await again.fetch(Statement("PRAGMA integrity_check")())] == [("ok",)]
    await again.close()


@every_kind_of_full
async def test_unit_that_does_not_fit_fails_without_the_others(
    database: SqliteDatabase, path: Path, full: Fill
):
    async with full(database, path):
        # Handed over at once, so that they are written together.
        sizes = {"a": SMALL, "large": LARGE, "b": SMALL, "c": SMALL}
        results = await asyncio.gather(
            database.execute(Statement("SELECT 1")()),
            *(database.write(lambda it=it: add_pair(*it)) for it in sizes.items()),
            return_exceptions=True,
        )
        assert [type(it) for it in results[1:]] == [type(None), StorageUnavailable, type(None), type(None)]
    assert await stored(database) == pairs("a", "b", "c")


def start(path: Path) -> None:
    """Opens, writes and closes."""

    async def start() -> None:
        database = await SqliteDatabase.open(path, reader_count=1)
        await database.execute(
            Statement("INSERT INTO tk_meta (name, value) SELECT count(*), '' FROM tk_meta")()
        )
        await database.close()

    asyncio.run(start())


def refuses(path: Path, why: str) -> None:
    with pytest.raises(StorageRefused, match=why):
        start(path)


def test_disk_too_full_to_start_is_refused_and_can_be_tried_again(path: Path):
    with no_file_larger_than(20_000):
        refuses(path, f"open the database {path}")
    start(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that belongs to an ordinary account, which the test then is: root may write everywhere."""
    # That account need not be able to read our own files, so all of them are read before.
    start(tmp_path / "threadkeep.db")
    known = migrations("sqlite")

    def known_ones(dialect: str) -> list[Migration]:
        return known

    monkeypatch.setattr("threadkeep.storage.database.sqlite.migrations", known_ones)
    temporary = Path(tempfile.gettempdir())
    parent = temporary if is_open_to_all(temporary) else Path("/tmp")
    with tempfile.TemporaryDirectory(prefix="threadkeep-", dir=parent) as name:
        if os.geteuid() != 0:
            yield Path(name)
            return
        account = pwd.getpwnam("nobody")
        os.chown(name, account.pw_uid, account.pw_gid)
        os.seteuid(account.pw_uid)
        try:
            yield Path(name)
        finally:
            os.seteuid(0)


def test_read_only_folder_is_refused(folder: Path):
    folder.chmod(0o500)
    for place in (folder, folder / "data"):
        refuses(place / "threadkeep.db", f"data folder {place}: Permission denied")
    folder.chmod(0o700)
    start(folder / "threadkeep.db")


def test_folder_that_became_read_only_is_refused(folder: Path):
    path = folder / "threadkeep.db"
    start(path)
    folder.chmod(0o500)
    refuses(path, f"open the database {path}")
    folder.chmod(0o700)
    start(path)


def test_read_only_file_is_refused(folder: Path):
    path = folder / "threadkeep.db"
    start(path)
    path.chmod(0o400)
    refuses(path, f"open the database {path}: attempt to write a readonly database")
    for file in folder.iterdir():  # SQLite gives the files beside it the same rights
        file.chmod(0o600)
    start(path)


def test_file_that_is_no_database_is_refused_and_left_alone(path: Path):
    path.parent.mkdir()
    path.write_text("my diary\n" * 1_000)
    refuses(path, f"open the database {path}: file is not a database")
    assert path.read_text() == "my diary\n" * 1_000
    path.unlink()
    start(path)


def test_file_that_was_cut_off_is_refused(path: Path):
    start(path)
    os.truncate(path, path.stat().st_size // 2)
    refuses(path, f"open the database {path}: database disk image is malformed")


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path):
    occupied = tmp_path / "data"
    occupied.write_text("")
    for folder in (occupied, occupied / "deeper"):
        refuses(folder / "threadkeep.db", f"Can't write to the data folder {folder}")


def test_folder_in_place_of_the_file_is_refused(path: Path):
    path.mkdir(parents=True)
    refuses(path, f"open the database {path}")


async def test_damaged_page_fails_what_needs_it_and_nothing_else(path: Path):
    await (await SqliteDatabase.open(path, reader_count=1)).close()
    damage(path, "tk_jobs")
    database = await SqliteDatabase.open(path, reader_count=1)
    for ask in (database.fetch, database.execute):
        with pytest.raises(StorageUnavailable):
            await ask(Statement("SELECT * FROM tk_jobs")())
    await database.write(lambda: add_pair("elsewhere"))
    assert await stored(database) == pairs("elsewhere")
    await database.close()


def damage(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        ((page, size),) = connection.execute(
            "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = ?", [table]
        )
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
