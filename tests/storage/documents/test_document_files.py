"""The document files: kept whole or not at all, and no longer than their documents."""

import hashlib
import os
from io import BytesIO
from pathlib import Path

import pytest

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import AgentId, DocumentId, new_uuid
from threadkeep.domain.workspace import Workspaces
from threadkeep.storage.documents.document_files import COPIED_AT_ONCE, FolderDocumentFiles

AGENT = AgentId(new_uuid())
DOCUMENT = DocumentId(new_uuid())
CONTENT = os.urandom(2 * COPIED_AT_ONCE + 1)
HOUR_S = 3600


@pytest.fixture
def files(tmp_path: Path) -> FolderDocumentFiles:
    return FolderDocumentFiles(Workspaces(tmp_path))


async def content(files: FolderDocumentFiles, document_id: DocumentId = DOCUMENT) -> bytes | None:
    file = await files.open(AGENT, document_id)
    if file is None:
        return None
    with file:
        return file.read()


async def test_file_is_found_as_it_was_sent_until_it_is_removed(files: FolderDocumentFiles):
    assert await content(files) is None
    kept = await files.keep(AGENT, DOCUMENT, BytesIO(CONTENT))
    assert kept == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    assert await content(files) == CONTENT
    for _ in range(2):
        await files.remove(AGENT, DOCUMENT)
    assert await content(files) is None


async def test_file_without_end_fills_no_disk(files: FolderDocumentFiles):
    size, _ = await files.keep(AGENT, DOCUMENT, Endless(), most=10)
    assert 10 < size <= 2 * COPIED_AT_ONCE


async def test_file_that_cannot_be_kept_is_told_and_leaves_nothing(
    files: FolderDocumentFiles, tmp_path: Path
):
    Workspaces(tmp_path).root.write_text("a file in the way")
    with pytest.raises(StorageUnavailable, match="Couldn't store"):
        await files.keep(AGENT, DOCUMENT, BytesIO(CONTENT))
    assert await content(files) is None


async def test_files_of_no_document_are_cleared_away_unless_they_are_young(
    files: FolderDocumentFiles, tmp_path: Path
):
    known, young, stray = DOCUMENT, DocumentId(new_uuid()), DocumentId(new_uuid())
    for id_ in (known, young, stray):
        await files.keep(AGENT, id_, BytesIO(b"words"))
    for id_ in (known, stray):
        os.utime(Workspaces(tmp_path).of(AGENT) / "documents" / id_, (0, 0))
    assert await files.agent_ids() == [AGENT]
    await files.keep_only(AGENT, {known}, idle_s=HOUR_S)
    assert [await content(files, id_) for id_ in (known, young, stray)] == [b"words", b"words", None]
    await files.keep_only(AgentId(new_uuid()), (), idle_s=HOUR_S)  # gone since it was listed


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Something of ours that no program may reach, and that is old."""
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / DOCUMENT).write_text("a secret")
    os.utime(folder / DOCUMENT, (0, 0))
    return folder


async def test_link_that_a_program_puts_in_the_place_of_a_file_is_not_followed(
    files: FolderDocumentFiles, tmp_path: Path, ours: Path
):
    await files.keep(AGENT, DOCUMENT, BytesIO(b"words"))
    file = Workspaces(tmp_path).of(AGENT) / "documents" / DOCUMENT
    file.unlink()
    file.symlink_to(ours / DOCUMENT)
    assert await content(files) is None
    with pytest.raises(StorageUnavailable):
        await files.keep(AGENT, DOCUMENT, BytesIO(b"words"))
    os.mkfifo(file)
    assert await content(files) is None
    assert (ours / DOCUMENT).read_text() == "a secret"


async def test_link_that_a_program_puts_in_the_place_of_the_folder_is_not_followed(
    files: FolderDocumentFiles, tmp_path: Path, ours: Path
):
    workspace = Workspaces(tmp_path).of(AGENT)
    workspace.mkdir(parents=True)
    (workspace / "documents").symlink_to(ours)
    assert await content(files) is None
    await files.keep_only(AGENT, (), idle_s=HOUR_S)
    await files.remove(AGENT, DOCUMENT)
    with pytest.raises(StorageUnavailable):
        await files.keep(AGENT, DOCUMENT, BytesIO(b"words"))
    assert (ours / DOCUMENT).read_text() == "a secret"


class Endless(BytesIO):
    """A file that never ends."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size and size > 0
        return b"x" * size
