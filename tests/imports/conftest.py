"""Two Threadkeeps between which data is taken along."""

from pathlib import Path

import pytest

from tests.conftest import TEMPLATE, secret_key_for
from tests.postgres import Postgres
from threadkeep.settings import Settings


@pytest.fixture
def here(database_url: str, tmp_path: Path) -> Settings:
    """A Threadkeep on either database."""
    return Settings.load(
        {}, data=tmp_path / "data", database_url=database_url, secret_key=secret_key_for(database_url)
    )


@pytest.fixture
def there(here: Settings, tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    """Another one on an empty database of the same kind."""
    url = f"sqlite:///{tmp_path}/there/threadkeep.db"
    if not here.database.startswith("sqlite"):
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.create_database(template=TEMPLATE)
    return Settings.load({}, data=tmp_path / "there", database_url=url, secret_key=secret_key_for(url))
