"""docs/typescript.md: its programs in node, with the packages as npm installs them."""

from pathlib import Path

import pytest
from scripts import packages

from tests.docs.pages import DOCS
from tests.docs.scripts import GRAVITY, ROOM, STORY
from tests.docs.walk import Walk
from tests.packages.project import Project
from threadkeep.testing import Reply, Say, UseTool

SCRIPT: dict[str, Reply] = {
    **(GRAVITY | ROOM | STORY),
    "How much is the rent": [Say("900 euros a month.")],
    "How warm": [UseTool("temperature", {"room": "kitchen"})],
    '"degrees"': [Say("It is 21 degrees in the kitchen.")],
}


def test_page_works_as_written(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory):
    client, _ = packages.build(tmp_path_factory.mktemp("tarballs"))
    Project(tmp_path, client)
    with Walk(DOCS / "typescript.md", tmp_path, SCRIPT) as walk:
        walk.all()
