"""A backup taken under load is whole, and what cannot be done leaves nothing behind."""

import asyncio
import io
import os
import signal
import socket
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import pytest
from PIL import Image

from tests.serving import environment, run, serving
from threadkeep.cli.open_page import _way_to  # pyright: ignore[reportPrivateUsage]
from threadkeep.client import Client
from threadkeep.domain.data_folder import KINDS, PAYLOADS, RESTORING, SECRET_KEY, Kind, is_backed_up, kind_of
from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import AgentId, ContentId, ConversationId, DocumentId, UserId, new_uuid
from threadkeep.domain.payload import content_hash
from threadkeep.domain.secret import Secret
from threadkeep.domain.workspace import PromptComponent, Workspaces
from threadkeep.http.sign_in.local_token import make_token, require_token
from threadkeep.mcp.personal import prepare
from threadkeep.mcp.processes.programs import _private_folders  # pyright: ignore[reportPrivateUsage]
from threadkeep.storage.database import archive, backup
from threadkeep.storage.database.archive import UnreadableFile
from threadkeep.storage.database.backup import back_up, copy_beside, restore
from threadkeep.storage.database.connector import Database
from threadkeep.storage.database.folder import FolderLock
from threadkeep.storage.database.folder_contents import MOST_FOLDERS, BackupFile, open_file
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.file_folder import FolderFileContents
from threadkeep.storage.payloads.folder import FolderContents
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import open_database
from threadkeep.testing import Say, ScriptedModel

TALKS, TURNS = 3, 5
ALWAYS = {"threadkeep.lock", ".gitignore"}
"""What a data folder has before anything is in it."""
CONTINUED = "So I go on."
AGENT, CONVERSATION = AgentId(new_uuid()), ConversationId(new_uuid())


async def told(client: Client) -> dict[str, list[tuple[int, str, object, str]]]:
    return {
        it.id: [(m.seq, m.role, m.content, m.status) async for m in client.messages(it.id)]
        async for it in client.conversations()
    }


def picture(number: int) -> tuple[str, bytes]:
    """One so small that its rendition for the model is the file itself: two names of one content."""
    raw = io.BytesIO()
    Image.new("RGB", (8, 8), (number, 0, 0)).save(raw, "PNG")
    return f"{number}.png", raw.getvalue()


async def test_backup_under_load_is_restored_message_by_message_and_file_by_file(
    tmp_path: Path, model: ScriptedModel
):
    model.script(*([Say(f"Answer {number}. " + "x" * 5000)] for number in range(TALKS * TURNS + 1)))
    settings = {"gateway": "openai", "gateway_url": model.url}
    with serving(tmp_path, **settings) as server:
        async with Client(server.url) as client:
            agent = await client.create_agent("Advisor")
            conversations = [await client.create_conversation(agent.id) for _ in range(TALKS)]

            async def talk(conversation_id: str) -> None:
                for number in range(TURNS):
                    await client.ask(conversation_id, f"Question {number}?")

            async def upload() -> None:
                for number in range(1, TURNS):
                    await client.upload_file(picture(number))

            sent, unsent = await client.upload_file(picture(100)), await client.upload_file(picture(200))
            await client.ask(conversations[0].id, "First of all?", files=[sent])
            await client.add_document(agent.id, "law.txt", b"Everyone may ask.")
            talking = asyncio.gather(upload(), *(talk(it.id) for it in conversations))
            before = await told(client)
            done = await asyncio.to_thread(run, "backup", "--data", "data", "backup.tar", folder=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
            await talking
            after = await told(client)
        unknown = [it for it in paths_in(tmp_path / "data") if kind_of(it) is None]
    assert unknown == []
    assert (tmp_path / "backup.tar").stat().st_mode & 0o077 == 0
    (tmp_path / "again").mkdir()
    done = run("restore", "--data", "again/data", "backup.tar", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    model.script(*([Say(CONTINUED)] for _ in range(TALKS + 1)))
    with serving(tmp_path / "again", **settings) as server:
        async with Client(server.url) as client:
            kept = await told(client)
            assert await client.read_file(sent.id) == picture(100)[1]
            assert await client.read_file(unsent.id) == picture(200)[1]
            await client.ask(conversations[1].id, "And this one?", files=[unsent])
    # All that was answered before is in it, and nothing that was never said; a turn that ran goes on.
    assert kept.keys() == before.keys() == after.keys()
    for id_, messages in kept.items():
        finished = {it for it in messages if it[3] == "COMPLETED" and not str(it[2]).endswith(CONTINUED)}
        assert {it for it in before[id_] if it[3] == "COMPLETED"} <= finished <= set(after[id_])


# What is in the folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a database."""

    async def create() -> None:
        await (await open_database(f"sqlite:///{tmp_path}/data/threadkeep.db", pool_size=1)).close()

    asyncio.run(create())
    return tmp_path / "data"


def paths_in(folder: Path) -> list[PurePosixPath]:
    """The files and links of a folder."""
    found = (it for it in folder.rglob("*") if it.is_symlink() or not it.is_dir())
    return sorted(PurePosixPath(it.relative_to(folder)) for it in found)


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(it): (folder / it).read_bytes() for it in paths_in(folder) if is_backed_up(it)}


def put(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


async def write_every_kind(data: Path) -> None:
    """Every file that the product creates, made by what creates it."""
    workspaces, payloads = Workspaces(data), FolderContents(data / PAYLOADS)
    workspace = workspaces.of(AGENT)
    SecretBox(key_file=data / SECRET_KEY).seal(Secret("s"))
    make_token(data)
    require_token(data)
    _way_to(data, "http://127.0.0.1:8710/")
    copy_beside(data / "threadkeep.db", 9)
    await payloads.write(CONVERSATION, content_hash(b"large"), b"large")
    uploaded = put(data / "uploads" / "tmp1" / "original", b"unsent")
    files = FolderFileContents(data / PAYLOADS, cast("Database", None))
    await files.stage({ContentId(new_uuid()): uploaded})
    await FolderPromptFiles(workspaces).write(AGENT, PromptComponent.RULES, "Be brief.")
    await FolderDocumentFiles(workspaces).keep(AGENT, DocumentId(new_uuid()), io.BytesIO(b"law"))
    prepare(workspace, UserId("u"))
    put(Path(_private_folders(workspace)["npm_config_cache"]) / "package", b"again")


# Those that exist only for a moment.
MOMENTARY = {
    "threadkeep.db-*", ".threadkeep-backup-*", ".token.*", "secret.new", "payloads/**.part", RESTORING,
}  # fmt: skip


async def test_every_kind_of_file_is_in_the_list_and_restored_as_it_says(data: Path, tmp_path: Path):
    await write_every_kind(data)
    kinds: dict[PurePosixPath, Kind | None] = {it: kind_of(it) for it in paths_in(data)}
    assert [it for it, kind in kinds.items() if kind is None] == []
    assert {kind.pattern for kind in kinds.values() if kind} == {it.pattern for it in KINDS} - MOMENTARY
    assert back_up(data, tmp_path / "backup.tar").left_out == []
    assert restore(tmp_path / "backup.tar", tmp_path / "again") == []
    there, again = contents_of(data), contents_of(tmp_path / "again")
    for files in (there, again):
        assert files.pop("threadkeep.db")
    assert again == there
    assert {str(it) for it in paths_in(tmp_path / "again")} == {*again, *ALWAYS, "threadkeep.db"}
    modes = {stat.S_IMODE(it.stat().st_mode) for it in (tmp_path / "again").rglob("*")}
    assert modes == {0o600, 0o700}


def test_what_others_put_into_an_agents_folder_is_copied_or_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    workspace = data / "agents" / AGENT
    tool = put(workspace / "bin" / "tool", b"#!")
    tool.chmod(0o755)
    os.link(tool, workspace / "bin" / "same-tool")
    for name in (b"line\nbreak", b"not utf-8 \xff", b"-rf", b"back\\slash", b"n" * 255, "押金".encode()):
        put(workspace / os.fsdecode(name), name)
    (workspace / "link").symlink_to("/etc/passwd")
    (workspace / "folder-link").symlink_to("/etc")
    os.mkfifo(workspace / "pipe")
    (deep := workspace.joinpath(*["d"] * MOST_FOLDERS)).mkdir(parents=True)
    put(deep / "file")
    put(workspace / "locked", b"x").chmod(0)
    put(data / "notes.txt", b"the operator's")

    def open_or_refuse(found: BackupFile) -> int:  # the tests' account may read everything
        if found.path.name == "locked":
            raise UnreadableFile("Permission denied")
        return open_file(found)

    monkeypatch.setattr(backup, "open_file", open_or_refuse)
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(workspace)
        listening.bind("socket")
        left_out = {it.name: it.why for it in back_up(data, tmp_path / "backup.tar").left_out}
    inside = f"agents/{AGENT}"
    assert left_out == {
        "notes.txt": "Threadkeep creates no such file",
        f"{inside}/link": "it is a symbolic link",
        f"{inside}/folder-link": "it is a symbolic link",
        f"{inside}/pipe": "it isn't a regular file",
        f"{inside}/socket": "it isn't a regular file",
        f"{inside}/locked": "Permission denied",
        f"{inside}/{'/'.join('d' * (MOST_FOLDERS - 1))}": "its path is too long",
    }
    restore(tmp_path / "backup.tar", tmp_path / "again")
    again = tmp_path / "again" / inside
    for path in (it for it in workspace.rglob("*") if it.is_file() and not it.is_symlink()):
        if str(path.relative_to(data)) not in left_out and path != deep / "file":
            assert (again / path.relative_to(workspace)).read_bytes() == path.read_bytes()
    assert os.access(again / "bin" / "same-tool", os.X_OK)
    assert not os.access(again / "-rf", os.X_OK)


def test_file_of_ours_that_cannot_be_read_is_no_reason_for_half_a_backup(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put(data / "payloads" / CONVERSATION / "content", b"x")

    def refuse(found: BackupFile) -> int:
        raise UnreadableFile("Input/output error")

    monkeypatch.setattr(backup, "open_file", refuse)
    with pytest.raises(StorageRefused, match=r"payloads/.*Input/output error"):
        back_up(data, tmp_path / "backup.tar")
    assert [*tmp_path.iterdir()] == [data]


def test_file_that_shrinks_while_it_is_copied_spoils_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    workspace = data / "agents" / AGENT
    put(workspace / "log", b"x" * 100_000)
    put(workspace / "other", b"y")
    real = os.fstat

    def stat_larger(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        grown = [*found]
        grown[stat.ST_SIZE] += 1 if found.st_size == 100_000 else 0
        return os.stat_result(grown)

    monkeypatch.setattr(archive.os, "fstat", stat_larger)
    left_out = back_up(data, tmp_path / "backup.tar").left_out
    monkeypatch.undo()
    assert [it.name for it in left_out] == [f"agents/{AGENT}/log"]
    restore(tmp_path / "backup.tar", tmp_path / "again")
    assert (tmp_path / "again" / "agents" / AGENT / "other").read_bytes() == b"y"


def test_files_that_come_and_go_while_the_database_is_copied_are_in_the_backup(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    goes, comes = data / "payloads" / CONVERSATION / "goes", data / "payloads" / CONVERSATION / "comes"
    put(goes, b"purged after the copy")
    copy_database: Callable[[Path, Path], None] = backup._copy_database  # pyright: ignore[reportPrivateUsage]

    def copy_meanwhile(database: Path, copy: Path) -> None:
        put(comes, b"written before the copy")
        copy_database(database, copy)
        goes.unlink()

    monkeypatch.setattr(backup, "_copy_database", copy_meanwhile)
    back_up(data, tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "again")
    assert {it.name for it in (tmp_path / "again" / "payloads" / CONVERSATION).iterdir()} == {"goes", "comes"}


def test_payloads_that_an_operator_keeps_on_another_disk_are_in_the_backup(data: Path, tmp_path: Path):
    put(tmp_path / "disk" / CONVERSATION / "content", b"x")
    (data / "payloads").symlink_to(tmp_path / "disk")
    back_up(data, tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "again")
    assert (tmp_path / "again" / "payloads" / CONVERSATION / "content").read_bytes() == b"x"
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    with pytest.raises(StorageRefused, match="Couldn't back up the folder 'payloads'"):
        back_up(data, tmp_path / "second.tar")
    (data / "payloads").unlink()
    (data / SECRET_KEY).symlink_to("nowhere")
    with pytest.raises(StorageRefused, match=r"'secret\.key'.*leads nowhere"):
        back_up(data, tmp_path / "second.tar")


def test_backup_in_the_data_folder_contains_no_backup(data: Path, tmp_path: Path):
    back_up(data, data / "first.tar")
    assert [it.name for it in back_up(data, data / "second.tar").left_out] == ["first.tar"]
    restore(data / "second.tar", tmp_path / "again")


# What cannot be done


def test_backup_that_cannot_be_written_leaves_nothing(data: Path, tmp_path: Path):
    with pytest.raises(StorageRefused, match="no file was left behind"):
        back_up(data, Path("/dev/full/backup.tar"))
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(StorageRefused, match="already exists"):
        back_up(data, full)
    full.unlink()
    with pytest.raises(StorageRefused, match="No database found"):
        back_up(tmp_path / "nowhere", tmp_path / "second.tar")
    assert [*tmp_path.iterdir()] == [data]


@pytest.mark.parametrize("room", [100_000, 3_000_000], ids=["for the database's copy", "for the archive"])
def test_disk_that_fills_up_during_a_backup_leaves_nothing(data: Path, tmp_path: Path, room: int):
    """No file may grow beyond the room: the system itself refuses the write, in the middle of it."""
    if room > 1_000_000:
        put(data / "payloads" / "large", bytes(4_000_000))
    done = run_python(
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); "
        "from threadkeep.cli import main; sys.exit(main(['backup', '--data', 'data', 'backup.tar']))",
        tmp_path,
    )
    assert done.returncode == 1
    assert "no file was left behind" in done.stderr
    assert [*tmp_path.iterdir()] == [data]


def run_python(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment({}),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


CONTENT = b"What was said."


def spoil(file: BinaryIO) -> None:
    """Changes one byte of the content."""
    file.seek(0)
    file.seek(file.read().index(CONTENT))
    file.write(b"?")
    file.flush()


def test_backup_that_is_not_what_was_written_is_noticed_at_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put(data / "payloads" / CONVERSATION / "content", CONTENT)
    finish = archive.ArchiveWriter.finish

    def finish_and_spoil(writer: archive.ArchiveWriter) -> None:
        finish(writer)
        spoil(writer._raw)  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(archive.ArchiveWriter, "finish", finish_and_spoil)
    with pytest.raises(StorageRefused, match=r"damaged: 'payloads/.*/content'"):
        back_up(data, tmp_path / "backup.tar")
    assert [*tmp_path.iterdir()] == [data]


def test_damaged_or_shortened_backup_is_refused_and_leaves_an_empty_folder(data: Path, tmp_path: Path):
    put(data / "payloads" / CONVERSATION / "content", CONTENT)
    whole, damaged, short = (tmp_path / f"{it}.tar" for it in ("whole", "damaged", "short"))
    back_up(data, whole)
    damaged.write_bytes(whole.read_bytes())
    with damaged.open("r+b") as file:
        spoil(file)
    with tarfile.open(whole) as read:
        short.write_bytes(whole.read_bytes()[: read.getmembers()[-1].offset])
    for file, why in ((damaged, "is damaged: 'payloads/"), (short, "its end is missing")):
        with pytest.raises(StorageRefused, match=why):
            restore(file, tmp_path / "again")
        assert {it.name for it in (tmp_path / "again").iterdir()} == ALWAYS
    restore(whole, tmp_path / "again")


def test_git_leaves_out_a_folder_that_is_made_and_another_is_left_as_it_is(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (theirs := tmp_path / "theirs").mkdir()
    for folder in (tmp_path / "ours", theirs):
        FolderLock.take(folder).release()
    said = ["git", "-C", tmp_path, "status", "--porcelain", "--untracked-files=all"]
    found = subprocess.run(said, check=True, capture_output=True, text=True).stdout
    assert found.split() == ["??", "theirs/threadkeep.lock"]


async def test_restore_that_is_killed_starts_over_and_no_server_starts_before(data: Path, tmp_path: Path):
    put(data / "payloads" / CONVERSATION / "content", b"x")
    back_up(data, tmp_path / "backup.tar")
    killed = await asyncio.to_thread(
        run_python,
        "import os; from pathlib import Path; from threadkeep.storage.database import backup; "
        "backup._sync_all = lambda folder: os.kill(os.getpid(), 9); "
        "backup.restore(Path('backup.tar'), Path('again'))",
        tmp_path,
    )
    assert killed.returncode == -signal.SIGKILL
    put(tmp_path / "again" / "payloads" / "left", b"of the first try")
    with pytest.raises(StorageRefused, match="Run `threadkeep restore` again"):
        await open_database(f"sqlite:///{tmp_path}/again/threadkeep.db", pool_size=1)
    with pytest.raises(StorageRefused, match="Run `threadkeep restore` again"):
        back_up(tmp_path / "again", tmp_path / "half.tar")
    restore(tmp_path / "backup.tar", tmp_path / "again")
    assert not (tmp_path / "again" / "payloads" / "left").exists()
    await (await open_database(f"sqlite:///{tmp_path}/again/threadkeep.db", pool_size=1)).close()


def test_restore_refuses_a_folder_with_something_in_it_and_what_is_no_backup(data: Path, tmp_path: Path):
    back_up(data, tmp_path / "backup.tar")
    with pytest.raises(StorageRefused, match="isn't empty"):
        restore(tmp_path / "backup.tar", data)
    for name, kind in (("../outside", tarfile.REGTYPE), ("link", tarfile.SYMTYPE)):
        with tarfile.open(tmp_path / "evil.tar", "w") as evil:
            evil.addfile(tarfile.TarInfo("threadkeep.db"))
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            evil.addfile(member)
        with pytest.raises(StorageRefused, match="isn't part of a Threadkeep backup"):
            restore(tmp_path / "evil.tar", tmp_path / name.strip("./"))
    (tmp_path / "letter").write_text("Dear Threadkeep")
    with pytest.raises(StorageRefused, match="restore the backup"):
        restore(tmp_path / "letter", tmp_path / "other")


def test_backup_of_an_older_version_is_restored_though_it_links_its_files(data: Path, tmp_path: Path):
    """What `tarfile` makes of a folder by itself, as those versions did."""
    put(data / "payloads" / "staged" / "id" / "original", b"x")
    put(data / "uploads" / "tmp" / "half", b"y")
    put(data / "letter.txt", b"z")
    os.link(data / "payloads" / "staged" / "id" / "original", data / "payloads" / "staged" / "id" / "model")
    with tarfile.open(tmp_path / "backup.tar", "w") as old:
        for path in paths_in(data):
            old.add(data / path, str(path))
        assert any(it.islnk() for it in old.getmembers())
    assert [it.name for it in restore(tmp_path / "backup.tar", tmp_path / "again")] == ["letter.txt"]
    staged = tmp_path / "again" / "payloads" / "staged" / "id"
    assert {it.name: it.read_bytes() for it in staged.iterdir()} == {"original": b"x", "model": b"x"}
    assert not (tmp_path / "again" / "uploads").exists()


@pytest.mark.parametrize(
    ("url", "advice"),
    [("postgresql://u:secret@db/x", "pg_dump"), ("sqlite:///elsewhere.db", "Move the database")],
)
def test_backup_of_a_database_elsewhere_is_refused_with_what_to_do(tmp_path: Path, url: str, advice: str):
    told = run("backup", "x.tar", folder=tmp_path, database_url=url)
    assert told.returncode == 1
    assert advice in told.stderr
    assert "secret" not in told.stderr
