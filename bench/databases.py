"""The two databases, each with the same rows twice: once for the floor, once for Threadkeep."""

import shutil
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import floor_postgres, floor_sqlite
from bench.contender import Floor
from bench.data import Dataset
from bench.floor_postgres import PostgresFloor
from bench.floor_sqlite import SqliteFloor
from tests.postgres import PostgresServer
from threadkeep.storage.store import open_store, sqlite_path


@dataclass(frozen=True, slots=True)
class Copies:
    """Where the rows lie."""

    title: str
    floor_url: str
    ours_url: str


@asynccontextmanager
async def sqlite_copies(dataset: Dataset) -> AsyncGenerator[Copies]:
    """Two files in the system's folder for temporary things (TMPDIR chooses the disk)."""
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        first, second = Path(folder, "floor", "threadkeep.db"), Path(folder, "ours", "threadkeep.db")
        await _migrate(_url(first))
        floor_sqlite.load(first, dataset)
        second.parent.mkdir()
        shutil.copy(first, second)
        title = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"
        yield Copies(title, _url(first), _url(second))


@asynccontextmanager
async def postgres_copies(dataset: Dataset) -> AsyncGenerator[Copies]:
    """Two databases on one server that waits for the disk at every commit."""
    with PostgresServer(durable=True) as server:
        loaded = server.create_database("loaded")
        await _migrate(loaded)
        await floor_postgres.load(loaded, dataset)
        copies = [server.create_database(name, template="loaded") for name in ("floor", "ours")]
        server.drop_database("loaded")
        connection = await floor_postgres.connect(copies[0])
        title = f"PostgreSQL {connection.info.server_version // 10_000}, fsync=on, synchronous_commit=on"
        await connection.close()
        yield Copies(title, *copies)


DATABASES = {"sqlite": sqlite_copies, "postgres": postgres_copies}


async def open_floor(url: str, dataset: Dataset) -> Floor:
    """The floor of the database that a URL names."""
    if url.startswith("sqlite"):
        return SqliteFloor(sqlite_path(url), dataset)
    return PostgresFloor(await floor_postgres.connect(url), dataset)


async def _migrate(url: str) -> None:
    await (await open_store(url)).close()


def _url(path: Path) -> str:
    return f"sqlite:///{path}"
