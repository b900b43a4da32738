"""A SQLite file is copied before it is migrated, and keeps its rows whatever happens."""

import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.making import keep_agent, keep_conversation, keep_turn
from threadkeep.domain.data_folder import DATABASE
from threadkeep.domain.errors import StorageRefused
from threadkeep.storage.database.backup import back_up
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.database.migrate import Migration, migrations
from threadkeep.storage.store import open_database, store_on

NEXT = f"{migrations('sqlite')[-1].version + 1:04}"
"""The number of the migration after those that are shipped, as in names of files."""
LATER = "CREATE TABLE tk_later (name text NOT NULL)"
TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'tk_*' AND name NOT GLOB '*_terms*'"
)

ShipLater = Callable[[str], None]


@pytest.fixture
async def file(sqlite_template: Path, tmp_path: Path) -> Path:
    """A database of this version with a turn in it."""
    file = tmp_path / "data" / DATABASE
    file.parent.mkdir(mode=0o700)
    shutil.copy(sqlite_template, file)
    store = await store_on(await open_database(f"sqlite:///{file}"))
    await keep_turn(store, await keep_conversation(store, await keep_agent(store)), "q", "a")
    await store.close()
    return file


@pytest.fixture
def ship_later(monkeypatch: pytest.MonkeyPatch) -> ShipLater:
    """Makes this Threadkeep one that ships one migration more."""

    def ship(statement: str) -> None:
        shipped = [*migrations("sqlite"), Migration(int(NEXT), f"{NEXT}_later", (Statement(statement),))]

        def migrations_then(dialect: str) -> list[Migration]:
            return shipped

        monkeypatch.setattr("threadkeep.storage.database.sqlite.migrations", migrations_then)

    return ship


async def open_and_close(file: Path) -> None:
    await (await open_database(f"sqlite:///{file}", pool_size=1)).close()


def counts_of(file: Path) -> dict[str, int]:
    """How many rows each table has."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        return {it: connection.execute(f"SELECT count(*) FROM {it}").fetchone()[0] for it in tables}


def copies_in(folder: Path) -> list[Path]:
    return list(folder.glob("*before*"))


def dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


async def test_database_is_copied_beside_itself_before_it_is_migrated(
    file: Path, ship_later: ShipLater, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    counts = counts_of(file)
    with sqlite3.connect(file) as unfinished:  # what is still in the log beside the file is copied too
        unfinished.execute("PRAGMA journal_mode = WAL")
        unfinished.execute("INSERT INTO tk_meta VALUES ('last', 'word')")
    copy = file.with_name(f"threadkeep.db.before-{NEXT}")
    ship_later(LATER)
    with caplog.at_level(logging.INFO):
        await open_and_close(file)
    unfinished.close()
    assert str(copy) in caplog.text
    assert copy.stat().st_mode & 0o777 == 0o600
    assert counts_of(copy) == {**counts, "tk_meta": counts["tk_meta"] + 1}
    assert "tk_later" in counts_of(file)
    caplog.clear()
    written = copy.stat().st_mtime_ns
    await open_and_close(file)
    assert copy.stat().st_mtime_ns == written and not caplog.text
    assert copies_in(copy.parent) == [copy]
    # It is a backup itself, and in no other.
    back_up(file.parent, tmp_path / "backup.tar")
    assert f"before-{NEXT}".encode() not in (tmp_path / "backup.tar").read_bytes()


@pytest.mark.parametrize("table", ["tk_users", "tk_messages"])
async def test_rows_that_refer_to_one_deleted_by_hand_are_kept_and_the_operator_reads_of_it(
    file: Path, ship_later: ShipLater, caplog: pytest.LogCaptureFixture, table: str
):
    with closing(sqlite3.connect(file)) as connection, connection:  # in which foreign keys are off
        connection.execute(
            "INSERT INTO tk_entries SELECT 1, conversation_id, id, '' FROM tk_messages LIMIT 1"
        )
        connection.execute(f"DELETE FROM {table}")
    counts = counts_of(file)
    ship_later(LATER)
    await open_and_close(file)
    assert counts_of(file) == {**counts, "tk_later": 0, "tk_migrations": counts["tk_migrations"] + 1}
    assert f"refer to missing rows of {table}" in caplog.text


async def test_migration_that_would_lose_rows_is_undone_and_says_what_to_do(
    file: Path, ship_later: ShipLater
):
    before = dump(file)
    ship_later("DELETE FROM tk_turns")
    with pytest.raises(StorageRefused, match=r"rolled back: .* missing rows of tk_turns.* Continue with"):
        await open_database(f"sqlite:///{file}", pool_size=1)
    assert dump(file) == before


async def test_new_database_is_not_copied(tmp_path: Path):
    await open_and_close(tmp_path / DATABASE)
    assert not copies_in(tmp_path)


class DiskUsage(NamedTuple):
    """What `shutil.disk_usage` tells."""

    total: int
    used: int
    free: int


def nearly_full(_: Path) -> DiskUsage:
    return DiskUsage(total=10**9, used=10**9 - 10**6, free=10**6)


async def test_disk_without_room_is_told_before_anything_is_changed(
    file: Path, ship_later: ShipLater, monkeypatch: pytest.MonkeyPatch
):
    before = dump(file)
    ship_later(LATER)
    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    with pytest.raises(StorageRefused, match=r"takes \d MB on the disk .* 1 MB are free\. Free up space"):
        await open_database(f"sqlite:///{file}")
    assert dump(file) == before
    assert not copies_in(file.parent)


async def test_copy_that_fails_leaves_the_database_as_it_was(file: Path, ship_later: ShipLater):
    before = dump(file)
    ship_later(LATER)
    file.with_name(f"threadkeep.db.before-{NEXT}.partial").mkdir()
    with pytest.raises(StorageRefused, match=r"couldn't be copied .* Nothing was changed"):
        await open_database(f"sqlite:///{file}")
    assert dump(file) == before
