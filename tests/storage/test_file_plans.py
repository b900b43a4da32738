"""Each statement about files finds its rows by an index, however many files everybody has."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from threadkeep.storage import file_contents, file_folder, file_rows, files
from threadkeep.storage.database.connector import Database, Plan, Rows, Statement
from threadkeep.storage.payloads import database as payloads

MODULES = (file_contents, file_folder, file_rows, files, payloads)
# What has no index by what it removes: contents of values and tools, which `storage/payloads` sweeps.
SWEEPING = {"COLLECT"}
VALUES: Mapping[str, Any] = {
    "ids": '["00000000-0000-0000-0000-000000000000"]', "hashes": '["00"]', "user_id": "alice", "before": 1,
    "now": 1,
    "number": 0, "limit": 1, "size": 1, "sha256": "00", "kind": "value", "media_type": "text/plain",
    "file_name": "f", "created_at": 1, "unsent_since": None, "renditions": "{}", "content": b"",
}  # fmt: skip
ANY_ID = "00000000-0000-0000-0000-000000000000"


def statements() -> dict[str, Statement]:
    found = {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, Statement) and name not in SWEEPING
    }
    return {name: it for name, it in found.items() if not it.sqlite.startswith("INSERT INTO tk_payload")}


@pytest.mark.parametrize("name", statements())
async def test_statement_about_files_scans_no_table(database: Database, name: str):
    statement = statements()[name]
    is_sqlite = database.dialect == "sqlite"
    names = statement.sqlite_names if is_sqlite else statement.postgres_names
    values = {it: VALUES.get(it, ANY_ID) for it in (*names, "width", "height", "pages")}
    values |= dict.fromkeys(("width", "height", "pages"))
    if is_sqlite:
        rows = await database.fetch(_explained("EXPLAIN QUERY PLAN", statement)(**values))
        scans = [
            row[-1] for row in rows if re.match(r"SCAN (tk_\w+|file|used|form|content|payload)\b", row[-1])
        ]
    else:
        plan = Statement("SELECT 1", postgres="SET LOCAL enable_seqscan = off")

        def explain() -> Plan[Rows]:
            yield plan()
            return (yield _explained("EXPLAIN", statement)(**values))

        rows = await database.write(explain)
        scans = [row[0] for row in rows if "Seq Scan on tk_" in row[0]]
    assert scans == []


def _explained(how: str, statement: Statement) -> Statement:
    """The same statement, asked how it would run."""
    explained = Statement("SELECT 1")
    explained.sqlite = f"{how} {statement.sqlite}"
    explained.sqlite_names = statement.sqlite_names
    explained.postgres = f"{how} {statement.postgres}"
    explained.postgres_names = statement.postgres_names
    return explained
