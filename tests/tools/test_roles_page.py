"""The role that docs/roles.md writes, and what is told where a part of it is missing."""

import re
from pathlib import Path

import pytest

from tests.making import make_agent
from tests.mcp.roles import write
from threadkeep.cli import main
from threadkeep.domain.workspace import Workspaces
from threadkeep.ports.roles import Role
from threadkeep.tools.roles import WorkspaceRoles

PAGE = (Path(__file__).parents[2] / "docs" / "roles.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`(\S+)`\n```markdown\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the page's files."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, FILES)


async def read(folder: Path, role_id: str) -> Role:
    return await WorkspaceRoles(Workspaces(folder / ".threadkeep")).read(make_agent(), role_id)


async def test_role_of_the_page_is_whole(folder: Path):
    assert len(FILES) == 2
    role = await read(folder, "tea-merchant")
    assert (role.title, role.missing) == ("茶商", ())
    assert "the leaf, the water" in role.text
    assert "promptx_recall" in role.text


def test_doctor_lists_what_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor"]) == 0
    assert "roles: Every file they refer to exists." in capsys.readouterr().out
    next(folder.rglob("tasting.thought.md")).unlink()
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"roles: tea-merchant in \S+/role/tea-merchant misses thought://tasting\.", told)
