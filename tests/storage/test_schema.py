"""What the migrations build is what `schema.sqlite.sql` and `schema.postgres.sql` say."""

from tests.storage.schema import POSTGRES, SQLITE, postgres_schema, sqlite_schema
from threadkeep.storage.store import sqlite_path


def test_migrations_build_the_written_schema(database_url: str):
    """After a change you meant to make, `python -m tests.storage.schema` writes the files anew."""
    if database_url.startswith("sqlite"):
        assert sqlite_schema(sqlite_path(database_url)) == SQLITE.read_text(encoding="utf-8")
    else:
        assert postgres_schema(database_url) == POSTGRES.read_text(encoding="utf-8")
