"""Other accounts of the machine read nothing of ours, whatever the folder's own mode."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SECRET
from tests.serving import Server, run
from threadkeep import Settings, create_app
from threadkeep.testing import running_app


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    """What other accounts can get at in a folder that they can enter."""
    found: list[str] = []
    for path in folder.iterdir():
        if mode(path) & 0o077:
            found += [path.name, *(open_to_others(path) if path.is_dir() else [])]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A data folder that everybody can enter, on a machine whose files everybody can read."""
    before = os.umask(0o022)
    (tmp_path / "data").mkdir(mode=0o755)
    yield tmp_path / "data"
    os.umask(before)


def test_server_backup_and_export_in_an_open_folder_are_private(folder: Path):
    with Server(folder.parent) as server, server.client() as client:
        agent = client.post("/api/agents", json={"name": "a"}).json()["id"]
        client.put(f"/api/agents/{agent}/prompt/RULES.md", json={"text": "x"}).raise_for_status()
        names = {path.name for path in folder.iterdir()}
        assert {"threadkeep.db", "threadkeep.db-wal", "threadkeep.db-shm", "agents"} <= names
        assert open_to_others(folder) == []
        for command in ("backup", "export"):
            file = folder.parent / f"{command}.out"
            arguments = [*([] if command == "backup" else ["--user", "local"]), str(file)]
            ended = run(command, "--data", "data", *arguments, folder=folder.parent)
            assert ended.returncode == 0, ended.stderr
            assert mode(file) == 0o600
    assert mode(folder) == 0o755  # it is the operator's


async def test_files_that_were_open_become_private_at_the_start_also_inside_a_host(folder: Path):
    async with running_app(data=folder):
        pass
    before = [folder / "threadkeep.db", folder / "threadkeep.lock", folder / "agents", folder / "theirs.txt"]
    (folder / "agents").mkdir(exist_ok=True)
    (folder / "theirs.txt").write_text("not ours")
    for path in before:
        path.chmod(0o755)
    app = create_app(Settings.load({}, data=folder, jwt_secret=SECRET, gateway="openai"))
    async with app.lifespan():
        await app.services()
        assert open_to_others(folder) == ["theirs.txt"]
        assert (folder / "threadkeep.db-wal").exists()


async def test_new_database_is_private_inside_a_host_too(folder: Path):
    async with running_app(data=folder) as running:
        await running.conversation()
        assert mode(folder / "threadkeep.db") == mode(folder / "threadkeep.db-wal") == 0o600
