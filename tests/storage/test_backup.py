"""A backup taken under load is whole, and what cannot be done leaves nothing behind."""

import asyncio
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.serving import environment, run, serving
from threadkeep.client import Client
from threadkeep.domain.errors import StorageRefused
from threadkeep.storage.backup import back_up, restore
from threadkeep.testing import Say, ScriptedModel

TALKS, TURNS = 4, 12
CONTINUED = "So I go on."


async def told(client: Client) -> dict[str, list[tuple[int, str, object, str]]]:
    return {
        it.id: [(m.seq, m.role, m.content, m.status) async for m in client.messages(it.id)]
        async for it in client.conversations()
    }


async def test_backup_under_load_is_restored_message_by_message(tmp_path: Path, model: ScriptedModel):
    model.script(*([Say(f"Answer {number}. " + "x" * 5000)] for number in range(TALKS * TURNS + 1)))
    settings = {"gateway": "openai", "gateway_url": model.url}
    with serving(tmp_path, **settings) as server:
        async with Client(server.url) as client:
            agent = await client.create_agent("Advisor")

            conversations = [await client.create_conversation(agent.id) for _ in range(TALKS)]

            async def talk(conversation_id: str) -> None:
                for number in range(TURNS):
                    await client.ask(conversation_id, f"Question {number}?")

            await client.ask(conversations[0].id, "First of all?")
            talking = asyncio.gather(*(talk(it.id) for it in conversations))
            before = await told(client)
            done = await asyncio.to_thread(run, "backup", "--data", "data", "backup.tar", folder=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
            await talking
            after = await told(client)
    assert (tmp_path / "backup.tar").stat().st_mode & 0o077 == 0
    (tmp_path / "again").mkdir()
    assert run("restore", "--data", "again/data", "backup.tar", folder=tmp_path).returncode == 0
    model.script(*([Say(CONTINUED)] for _ in range(TALKS)))
    with serving(tmp_path / "again", **settings) as server:
        async with Client(server.url) as client:
            kept = await told(client)
    # All that was answered before is in it, and nothing that was never said; a turn that ran goes on.
    assert kept.keys() == before.keys() == after.keys()
    for id_, messages in kept.items():
        finished = {it for it in messages if it[3] == "COMPLETED" and not str(it[2]).endswith(CONTINUED)}
        assert {it for it in before[id_] if it[3] == "COMPLETED"} <= finished <= set(after[id_])


def test_backup_that_cannot_be_written_leaves_nothing(tmp_path: Path):
    with serving(tmp_path):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(StorageRefused, match="no file was left behind"):
            back_up(tmp_path / "data", Path("/dev/full/backup.tar"))
        full = tmp_path / "full"
        full.symlink_to("/dev/full")
        with pytest.raises(StorageRefused, match="already exists"):
            back_up(tmp_path / "data", full)
        full.unlink()
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("room", [100_000, 3_000_000], ids=["for the database's copy", "for the archive"])
def test_disk_that_fills_up_during_a_backup_leaves_nothing(tmp_path: Path, room: int):
    """No file may grow beyond the room: the system itself refuses the write, in the middle of it."""
    with serving(tmp_path):
        (tmp_path / "data" / "payloads").mkdir(exist_ok=True)
        (tmp_path / "data" / "payloads" / "large").write_bytes(bytes(4_000_000))
        before = sorted(tmp_path.iterdir())
        code = (
            f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); "
            "from threadkeep.cli import main; sys.exit(main(['backup', '--data', 'data', 'backup.tar']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment({}),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert "no file was left behind" in done.stderr
        assert sorted(tmp_path.iterdir()) == before


def test_restore_refuses_a_folder_with_something_in_it_and_what_is_no_backup(tmp_path: Path):
    with serving(tmp_path):
        back_up(tmp_path / "data", tmp_path / "backup.tar")
    with pytest.raises(StorageRefused, match="isn't empty"):
        restore(tmp_path / "backup.tar", tmp_path / "data")
    for name, kind in (("../outside", tarfile.REGTYPE), ("link", tarfile.SYMTYPE)):
        with tarfile.open(tmp_path / "evil.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo("threadkeep.db"))
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        with pytest.raises(StorageRefused, match="isn't part of a Threadkeep backup"):
            restore(tmp_path / "evil.tar", tmp_path / name.strip("./"))
    (tmp_path / "letter").write_text("Dear Threadkeep")
    with pytest.raises(StorageRefused, match="restore the backup"):
        restore(tmp_path / "letter", tmp_path / "other")
    with pytest.raises(StorageRefused, match="No database found"):
        back_up(tmp_path / "nowhere", tmp_path / "second.tar")


def test_backup_of_postgresql_is_left_to_its_own_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told = run("backup", "x.tar", folder=tmp_path, database_url="postgresql://u:secret@db/x")
    assert told.returncode == 1
    assert "pg_dump" in told.stderr
    assert "secret" not in told.stderr
