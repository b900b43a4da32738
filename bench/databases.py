"""The two databases, each with the same rows twice: once for the floor, once for Threadkeep."""

import os
import shutil
import sqlite3
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.postgres import PostgresServer

from bench import floor_postgres, floor_sqlite
from bench.contender import Floor
from bench.data import Dataset, Rows
from bench.floor_postgres import PostgresFloor
from bench.floor_sqlite import SqliteFloor
from bench.slow_disk import SYNC_S, slow_disk
from bench.table import Aim
from threadkeep.storage.store import open_store, sqlite_path

LOADED = "loaded"
GROUP_COMMIT_AIM, QUICK_DISK_AIM = Aim("≥", 5), Aim("≥", 3_000, "Threadkeep")


@dataclass(frozen=True, slots=True)
class Copies:
    """Where the rows lie."""

    title: str
    floor_url: str
    ours_url: str
    writers_aim: Aim | None = None


@asynccontextmanager
async def loaded_sqlite(dataset: Rows) -> AsyncGenerator[str]:
    """A file in the system's folder for temporary things (TMPDIR chooses the disk)."""
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        path = Path(folder, "loaded", "threadkeep.db")
        await _migrate(_url(path))
        floor_sqlite.load(path, dataset)
        yield _url(path)


@asynccontextmanager
async def sqlite_copies(dataset: Dataset) -> AsyncGenerator[Copies]:
    """A file and its copy."""
    async with loaded_sqlite(dataset) as url:
        path = sqlite_path(url)
        copy = path.parents[1] / "copy" / path.name
        copy.parent.mkdir()
        shutil.copy(path, copy)
        disk_ms = sync_ms(path.parents[1])
        title = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL, {disk_ms:.2f} ms a sync"
        # Where a commit costs next to nothing there is nothing to gain by sharing it.
        yield Copies(title, url, _url(copy), GROUP_COMMIT_AIM if disk_ms >= 1 else QUICK_DISK_AIM)


@asynccontextmanager
async def slow_sqlite_copies(dataset: Dataset) -> AsyncGenerator[Copies]:
    """The same on a disk that is slow for certain."""
    with slow_disk():
        async with sqlite_copies(dataset) as copies:
            title = f"SQLite, every commit made to wait {SYNC_S * 1000:.0f} ms, as on a common disk"
            yield replace(copies, title=title, writers_aim=GROUP_COMMIT_AIM)


@asynccontextmanager
async def loaded_postgres(dataset: Rows) -> AsyncGenerator[str]:
    """A database on a server that waits for the disk at every commit."""
    with PostgresServer(durable=True) as server:
        yield await _load(server, dataset)


@asynccontextmanager
async def postgres_copies(dataset: Dataset) -> AsyncGenerator[Copies]:
    """Two copies of a database on one server."""
    with PostgresServer(durable=True) as server:
        await _load(server, dataset)
        floor, ours = (server.create_database(name, template=LOADED) for name in ("floor", "ours"))
        title = f"PostgreSQL {await floor_postgres.version(floor)}, fsync=on, synchronous_commit=on"
        yield Copies(title, floor, ours)


@contextmanager
def empty_database(name: str) -> Generator[str]:
    """A database that nobody has migrated yet, as durable as the loaded ones."""
    if name == "postgres":
        with PostgresServer(durable=True) as server:
            yield server.create_database("empty")
    else:
        with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
            yield _url(Path(folder, "threadkeep.db"))


DATABASES = {"sqlite": sqlite_copies, "slow-disk": slow_sqlite_copies, "postgres": postgres_copies}
LARGE_DATABASES = {"sqlite": loaded_sqlite, "postgres": loaded_postgres}


async def open_floor(url: str, dataset: Dataset) -> Floor:
    """The floor of the database that a URL names."""
    if url.startswith("sqlite"):
        return SqliteFloor(sqlite_path(url), dataset)
    return PostgresFloor(await floor_postgres.connect(url), dataset)


async def _load(server: PostgresServer, dataset: Rows) -> str:
    url = server.create_database(LOADED)
    await _migrate(url)
    await floor_postgres.load(url, dataset)
    return url


async def _migrate(url: str) -> None:
    await (await open_store(url)).close()


def sync_ms(folder: Path) -> float:
    """What the disk takes to make two pages durable."""
    with Path(folder, "sync").open("wb", buffering=0) as file:
        return median(_timed_sync(file) for _ in range(50))


def _timed_sync(file: FileIO) -> float:
    file.write(b"x" * 8192)
    begun = time.perf_counter()
    os.fsync(file.fileno())
    return (time.perf_counter() - begun) * 1000


def _url(path: Path) -> str:
    return f"sqlite:///{path}"
