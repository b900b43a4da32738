"""What must hold, whatever happened."""

import sqlite3

from tests.proof.seen import Seen


def check(seen: Seen, database: sqlite3.Connection) -> list[str]:
    """What broke, in sentences; nothing if all is well."""
    return [*seen.left, *seen.leaks, *seen.unexpected]
