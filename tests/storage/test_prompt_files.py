"""Files of prompts: read anew when they change, and harmless whatever lies there."""

import os
import socket
import time
from pathlib import Path

import pytest

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import AgentId, new_uuid
from threadkeep.domain.workspace import PromptComponent, Workspaces
from threadkeep.storage import prompt_files
from threadkeep.storage.prompt_files import FolderPromptFiles

AGENT = AgentId(new_uuid())
RULES, MEMORY = PromptComponent.RULES, PromptComponent.MEMORY


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    spaces = Workspaces(tmp_path / "data")
    spaces.of(AGENT).mkdir(parents=True)
    return spaces


@pytest.fixture
def files(workspaces: Workspaces) -> FolderPromptFiles:
    return FolderPromptFiles(workspaces)


async def texts(files: FolderPromptFiles) -> dict[str, str]:
    return {file.name: file.text for file in await files.read(AGENT)}


async def problem(files: FolderPromptFiles) -> str:
    (file,) = await files.read(AGENT)
    assert file.text == ""
    assert file.problem
    return file.problem


def settle(path: Path) -> None:
    """Waits until a file is old enough to be remembered."""
    while time.time_ns() - path.stat().st_ctime_ns <= prompt_files.SETTLED_NS:
        time.sleep(0.01)


async def test_agent_without_files_has_none(tmp_path: Path):
    assert await FolderPromptFiles(Workspaces(tmp_path / "nowhere")).read(AGENT) == []


async def test_files_come_in_the_order_of_components_shared_ones_first(
    files: FolderPromptFiles, workspaces: Workspaces
):
    workspaces.shared.mkdir()
    for component in reversed(PromptComponent):
        (workspaces.of(AGENT) / component).write_text(f"own {component}")
        (workspaces.shared / component).write_text(f"all {component}")
    (workspaces.of(AGENT) / "OTHER.md").write_text("not a component")
    expected = [name for it in PromptComponent for name in (f"shared/{it}", f"{it}")]
    assert list(await texts(files)) == expected
    assert expected[1::2] == ["IDENTITY.md", "ROLE.md", "RULES.md", "TOOLS.md", "USER.md", "MEMORY.md"]
    assert (await texts(files))["shared/RULES.md"] == "all RULES.md"


async def test_edit_is_seen_although_size_and_times_stay(files: FolderPromptFiles, workspaces: Workspaces):
    path = workspaces.of(AGENT) / RULES
    path.write_text("one")
    settle(path)
    before = path.stat()
    assert await texts(files) == {RULES: "one"}
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_mtime_ns, path.stat().st_size) == (before.st_mtime_ns, before.st_size)
    assert await texts(files) == {RULES: "two"}


async def test_edit_right_after_reading_is_seen(files: FolderPromptFiles, workspaces: Workspaces):
    path = workspaces.of(AGENT) / RULES
    for number in range(200):
        path.write_text(f"{number:03}")
        assert await texts(files) == {RULES: f"{number:03}"}


async def test_unchanged_file_is_read_once(
    files: FolderPromptFiles, workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
):
    path = workspaces.of(AGENT) / RULES
    path.write_text("one")
    settle(path)
    assert await texts(files) == {RULES: "one"}
    monkeypatch.setattr(os, "pread", None)
    assert await texts(files) == {RULES: "one"}


async def test_cache_does_not_grow_without_end(
    workspaces: Workspaces, files: FolderPromptFiles, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(prompt_files, "MOST_CACHED", 2)
    paths = [workspaces.of(AGENT) / component for component in PromptComponent]
    for path in paths:
        path.write_text(path.name)
    settle(paths[-1])
    for _ in range(3):
        assert await texts(files) == {component: str(component) for component in PromptComponent}


async def test_link_out_of_the_folder_is_not_followed(files: FolderPromptFiles, workspaces: Workspaces):
    (workspaces.of(AGENT) / RULES).symlink_to("/etc/passwd")
    assert "symbolic link" in await problem(files)


async def test_folder_that_is_a_link_is_not_followed(
    files: FolderPromptFiles, workspaces: Workspaces, tmp_path: Path
):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / RULES).write_text("secret")
    workspaces.of(AGENT).rmdir()
    workspaces.of(AGENT).symlink_to(tmp_path / "elsewhere")
    found = await files.read(AGENT)
    assert [file.text for file in found] == [""] * len(PromptComponent)
    assert all(file.problem for file in found)
    with pytest.raises(StorageUnavailable):
        await files.write(AGENT, RULES, "x")
    await files.remove(AGENT)
    assert (tmp_path / "elsewhere" / RULES).read_text() == "secret"
    assert not workspaces.of(AGENT).exists()


async def test_directory_is_no_component(files: FolderPromptFiles, workspaces: Workspaces):
    (workspaces.of(AGENT) / RULES).mkdir()
    assert "regular file" in await problem(files)
    with pytest.raises(StorageUnavailable, match=r"Can't write .*RULES.md"):
        await files.write(AGENT, RULES, "x")
    assert [path.name for path in workspaces.of(AGENT).iterdir()] == [RULES]


async def test_fifo_holds_nobody_up(files: FolderPromptFiles, workspaces: Workspaces):
    os.mkfifo(workspaces.of(AGENT) / RULES)
    assert "regular file" in await problem(files)


async def test_socket_is_no_component(
    files: FolderPromptFiles, workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(workspaces.of(AGENT))  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(RULES)
        assert "can't be read" in await problem(files)


async def test_broken_utf8_is_shown_as_such(files: FolderPromptFiles, workspaces: Workspaces):
    (workspaces.of(AGENT) / RULES).write_bytes(b"be \xff brief \xe4\xb8")
    (file,) = await files.read(AGENT)
    assert file.text == "be \ufffd brief \ufffd"
    assert "UTF-8" in (file.problem or "")


async def test_of_a_huge_file_only_both_ends_are_read(files: FolderPromptFiles, workspaces: Workspaces):
    path = workspaces.of(AGENT) / RULES
    size = 50 * 1024**3
    with path.open("wb") as file:
        file.write(b"first")
        file.truncate(size - 4)
        file.seek(0, os.SEEK_END)
        file.write(b"last")
    (huge,) = await files.read(AGENT)
    assert (huge.text[:5], huge.text[-4:]) == ("first", "last")
    assert len(huge.text) + huge.unread == size
    assert len(huge.text) == 2 * prompt_files.MOST_BYTES_AN_END


async def test_writing_replaces_and_an_empty_text_removes(files: FolderPromptFiles, workspaces: Workspaces):
    other = AgentId(new_uuid())
    await files.write(other, MEMORY, "記憶")
    await files.write(other, MEMORY, "二")
    assert [(it.name, it.text) for it in await files.read(other)] == [(MEMORY, "二")]
    assert await texts(files) == {}
    assert [path.name for path in workspaces.of(other).iterdir()] == [MEMORY]
    for _ in range(2):
        await files.write(other, MEMORY, "")
        assert await files.read(other) == []


async def test_writing_over_a_link_leaves_what_it_led_to(
    files: FolderPromptFiles, workspaces: Workspaces, tmp_path: Path
):
    (tmp_path / "target").write_text("untouched")
    (workspaces.of(AGENT) / RULES).symlink_to(tmp_path / "target")
    await files.write(AGENT, RULES, "mine")
    assert await texts(files) == {RULES: "mine"}
    assert (tmp_path / "target").read_text() == "untouched"


async def test_folders_are_listed_and_removed_with_everything(
    files: FolderPromptFiles, workspaces: Workspaces
):
    await files.write(AGENT, RULES, "x")
    workspaces.shared.mkdir()
    (workspaces.of(AGENT) / "deep" / "er").mkdir(parents=True)
    assert await files.agent_ids() == [AGENT]
    assert [await files.remove(AGENT) for _ in range(2)] == [True, False]
    assert await files.agent_ids() == []
    assert workspaces.shared.exists()
