"""Memories in a project's folder."""

import asyncio
from pathlib import Path

import pytest

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import MemoryId, new_uuid
from threadkeep.domain.memory import Memory
from threadkeep.tools import notebook
from threadkeep.tools.notebook import FILE, FileNotebook


def memory(content: str) -> Memory:
    return Memory(MemoryId(new_uuid()), content, ("茶",), 1)


async def test_memories_come_back_newest_first_from_any_process(tmp_path: Path):
    kept = [memory(content) for content in ("一", "two\nlines", "三")]
    for it in kept:
        await FileNotebook(tmp_path, most=10).add(it)
    assert await FileNotebook(tmp_path, most=10).latest() == kept[::-1]
    assert await FileNotebook(tmp_path, most=2).latest() == kept[:0:-1]


async def test_same_content_is_given_once_as_the_newest(tmp_path: Path):
    book = FileNotebook(tmp_path, most=10)
    for content in ("a", "b", "a"):
        await book.add(memory(content))
    assert [it.content for it in await book.latest()] == ["a", "b"]


async def test_nothing_is_remembered_at_first(tmp_path: Path):
    assert await FileNotebook(tmp_path, most=10).latest() == []


async def test_many_at_once_are_all_kept(tmp_path: Path):
    await asyncio.gather(*(FileNotebook(tmp_path, most=99).add(memory(str(n))) for n in range(50)))
    assert len(await FileNotebook(tmp_path, most=99).latest()) == 50


async def test_damaged_lines_are_skipped_and_harm_no_other(tmp_path: Path):
    book = FileNotebook(tmp_path, most=10)
    await book.add(memory("first"))
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'\n\xff\n[]\n{"id": 1}\n{"id":"1","content":" ","tags":[],"created_at":1}\n{"id":"cut o')
    await book.add(memory("last"))
    assert [it.content for it in await book.latest()] == ["last", "first"]


async def test_full_notebook_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notebook, "MOST_BYTES", 10)
    book = FileNotebook(tmp_path, most=10)
    await book.add(memory("first"))
    with pytest.raises(InvalidRequest, match="full"):
        await book.add(memory("second"))


async def test_folder_that_cannot_be_written_says_so(tmp_path: Path):
    (tmp_path / ".promptx").touch()
    book = FileNotebook(tmp_path, most=10)
    with pytest.raises(InvalidRequest, match="Couldn't write"):
        await book.add(memory("lost"))
    with pytest.raises(InvalidRequest, match="Couldn't read"):
        await book.latest()


async def test_link_is_not_written_through(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.touch()
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).symlink_to(victim)
    with pytest.raises(InvalidRequest, match="Couldn't write"):
        await FileNotebook(tmp_path, most=10).add(memory("lost"))
    assert victim.read_bytes() == b""
