"""The files in an export: ours must match their hashes, other products' must be types that we accept."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from threadkeep.domain.document import Document
from threadkeep.domain.errors import InvalidRequest, UnsupportedFile
from threadkeep.domain.ids import UserId
from threadkeep.domain.uploaded_file import PreparedFile, UploadedFile
from threadkeep.engine.large_values import MOST_FILE_BYTES
from threadkeep.imports.source import ENDING, ForeignContent, ForeignOutline, ImportSource
from threadkeep.services.file_intake import FileIntake
from threadkeep.storage.documents.document_files import FolderDocumentFiles

MOST_PAYLOAD_BYTES = 1024 * 1024 * 1024
"""For our own exports: a message may have a file of any size that the operator allows."""
MOST_FOREIGN_FILES = 1_000
MOST_FOREIGN_BYTES = 1024 * 1024 * 1024
"""For all files of one conversation: they are on the disk until it is stored."""


async def keep_document(
    source: ImportSource, name: str, document: Document, files: FolderDocumentFiles
) -> None:
    """Stores a document's file, which has this name in the export."""
    path = await source.unpack(name, most=document.size)
    if path is None:
        raise InvalidRequest("the export doesn't contain its file")
    with path.open("rb") as file:
        kept = await files.keep(document.agent_id, document.id, file, most=document.size)
    if kept != (document.size, document.sha256):
        await files.remove(document.agent_id, document.id)
        raise InvalidRequest("its file is damaged")


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """The files of another product's conversation that can be stored, and where their contents are."""

    known: Mapping[int, UploadedFile]
    paths: Mapping[str, Path]


@asynccontextmanager
async def foreign_files(
    source: ImportSource,
    conversation: ForeignOutline,
    intake: FileIntake,
    user_id: UserId,
    note: Callable[[str], None],
) -> AsyncGenerator[ForeignFiles]:
    """Prepares a conversation's files; calls `note` with the reason if one can't be stored."""
    prepared: dict[int, PreparedFile] = {}
    size = 0
    async with AsyncExitStack() as stack:
        for number in range(conversation.file_count):
            try:
                found = await source.unpack_file(number, most=MOST_FILE_BYTES)
                if found is None:
                    continue
                size += found.path.stat().st_size
                if len(prepared) >= MOST_FOREIGN_FILES or size > MOST_FOREIGN_BYTES:
                    note(f"{conversation.name} has too many files; the rest are listed by name only.")
                    break
                async with source.unless_stopped():
                    prepared[number] = await _prepare(stack, intake, user_id, found)
                await asyncio.to_thread(found.path.unlink)
            except (InvalidRequest, UnsupportedFile) as exc:
                note(f"{conversation.name} lists a file by name only: {exc.message}")
        yield ForeignFiles(
            {number: it.file for number, it in prepared.items()},
            {it.file.hashes[name]: path for it in prepared.values() for name, path in it.contents.items()},
        )


async def _prepare(
    stack: AsyncExitStack, intake: FileIntake, user_id: UserId, found: ForeignContent
) -> PreparedFile:
    with found.path.open("rb") as file:
        try:
            return await stack.enter_async_context(intake.prepared(user_id, found.name, file))
        except UnsupportedFile:
            if not found.is_text:
                raise
        # Text extracted from another type, such as a PDF, whose name would mislead.
        return await stack.enter_async_context(intake.prepared(user_id, found.name + ENDING, file))
