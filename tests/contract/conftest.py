"""Where the contents of files and payloads are kept: each store of them is tested with both."""

from pathlib import Path

import pytest


@pytest.fixture(params=["folder", "table"])
def payload_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """A folder for contents, or None: then they are in the database."""
    return tmp_path / "payloads" if request.param == "folder" else None
