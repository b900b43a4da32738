"""docs/postgresql.md, carried out with a real database."""

from pathlib import Path

from tests.docs.pages import DOCS
from tests.docs.scripts import STORY
from tests.docs.walk import Walk
from tests.postgres import Postgres


def test_page_works_as_written(tmp_path: Path, postgres: Postgres):
    settings = {"DATABASE_URL": postgres.create_database()}
    with Walk(DOCS / "postgresql.md", tmp_path, STORY, settings) as walk:
        walk.all()
