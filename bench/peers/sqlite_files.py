"""SQLite files, whoever makes them."""

import contextlib
import sqlite3
from pathlib import Path


def use_wal(path: Path) -> None:
    """Gives a file write-ahead logging, which it keeps: the best case of whoever opens it later.

    `synchronous` stays FULL, which is SQLite's default: every contender's commits wait for the disk.
    """
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def take_in_logs(folder: Path) -> None:
    """Moves what a folder's SQLite files have in their logs into the files."""
    for path in folder.rglob("*"):
        if path.is_file() and _is_sqlite(path):
            with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
