"""SQL on a test's database, beside the running Threadkeep: for states that no route makes yet."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from threadkeep.storage.store import sqlite_path


def run_sql(database_url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Runs one statement, with `?` for its values, commits it and gives its rows."""
    if database_url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(database_url), timeout=10)) as connection, connection:
            return connection.execute(statement, values).fetchall()
    with psycopg.connect(database_url) as connection:
        cursor = connection.execute(statement.replace("?", "%s").encode(), values)
        return cursor.fetchall() if cursor.description else []
