"""The files of documents: kept whole or not at all, and no longer than their documents."""

import hashlib
import os
from io import BytesIO
from pathlib import Path

import pytest

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import AgentId, DocumentId, new_uuid
from threadkeep.domain.workspace import Workspaces
from threadkeep.storage.document_files import COPIED_AT_ONCE, FolderDocumentFiles

AGENT = AgentId(new_uuid())
DOCUMENT = DocumentId(new_uuid())
CONTENT = os.urandom(2 * COPIED_AT_ONCE + 1)
HOUR_S = 3600


@pytest.fixture
def files(tmp_path: Path) -> FolderDocumentFiles:
    return FolderDocumentFiles(Workspaces(tmp_path))


async def test_file_is_found_as_it_was_sent_until_it_is_removed(files: FolderDocumentFiles):
    assert await files.find(AGENT, DOCUMENT) is None
    kept = await files.keep(AGENT, DOCUMENT, BytesIO(CONTENT))
    assert kept == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    path = await files.find(AGENT, DOCUMENT)
    assert path and path.read_bytes() == CONTENT
    for _ in range(2):
        await files.remove(AGENT, DOCUMENT)
    assert await files.find(AGENT, DOCUMENT) is None


async def test_file_without_end_fills_no_disk(files: FolderDocumentFiles):
    size, _ = await files.keep(AGENT, DOCUMENT, Endless(), most=10)
    assert 10 < size <= 2 * COPIED_AT_ONCE


async def test_file_that_cannot_be_kept_is_told_and_leaves_nothing(
    files: FolderDocumentFiles, tmp_path: Path
):
    Workspaces(tmp_path).root.write_text("a file in the way")
    with pytest.raises(StorageUnavailable, match="cannot be kept"):
        await files.keep(AGENT, DOCUMENT, BytesIO(CONTENT))
    assert await files.find(AGENT, DOCUMENT) is None


async def test_files_of_no_document_are_cleared_away_unless_they_are_young(files: FolderDocumentFiles):
    known, young, stray = DOCUMENT, DocumentId(new_uuid()), DocumentId(new_uuid())
    for id_ in (known, young, stray):
        await files.keep(AGENT, id_, BytesIO(b"words"))
    for id_ in (known, stray):
        path = await files.find(AGENT, id_)
        assert path
        os.utime(path, (0, 0))
    assert await files.agent_ids() == [AGENT]
    await files.keep_only(AGENT, {known}, idle_s=HOUR_S)
    assert [await files.find(AGENT, id_) is not None for id_ in (known, young, stray)] == [True, True, False]
    await files.keep_only(AgentId(new_uuid()), (), idle_s=HOUR_S)  # gone since it was listed


class Endless(BytesIO):
    """A file that never ends."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size and size > 0
        return b"x" * size
