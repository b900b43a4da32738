"""A disk that takes its time.

How much a group commit gains depends on what a commit costs: a consumer's SSD or a disk over the network
takes milliseconds to sync, the disk of a virtual machine often only pretends to. So the writers are
measured a second time with a wait at every commit, the same for both sides.
"""

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

SYNC_S = 0.002


class SlowConnection(sqlite3.Connection):
    """A connection whose commits wait for the disk, letting other threads run as a real sync does."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Runs a statement."""
        cursor = super().execute(sql, parameters)
        if sql == "COMMIT":
            time.sleep(SYNC_S)
        return cursor


@contextmanager
def slow_disk() -> Generator[None]:
    """Whoever connects to SQLite within this block has a slow disk."""
    with patch("sqlite3.connect", partial(sqlite3.connect, factory=SlowConnection)):
        yield
