"""Where the bytes of files and payloads are stored: in a folder or in a table, on both databases."""

from pathlib import Path

import pytest

from tests.contract.stored import Stored
from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import store_on


@pytest.fixture(params=["folder", "table"])
async def stored(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Stored:
    """A store that has its bytes in one of these places."""
    folder = tmp_path / "payloads" if request.param == "folder" else None
    return Stored(await store_on(database, payload_folder=folder), database, folder)
