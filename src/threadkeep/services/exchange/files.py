"""The files in an export: ours must match their hashes, other products' must be types that we accept."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath

from threadkeep.domain.document import MOST_NAME_CHARACTERS, Document
from threadkeep.domain.errors import InvalidRequest, UnsupportedFile
from threadkeep.domain.ids import UserId
from threadkeep.domain.payload import Payload, content_hash
from threadkeep.domain.text import one_line, storable
from threadkeep.domain.uploaded_file import PreparedFile, UploadedFile
from threadkeep.engine.large_values import MOST_FILE_BYTES
from threadkeep.ports.documents import DocumentFiles
from threadkeep.ports.exchange.foreign import ForeignConversation, ForeignFile
from threadkeep.ports.exchange.source import ImportSource
from threadkeep.services.exchange.exports import payload_name
from threadkeep.services.file_intake import FileIntake

MOST_PAYLOAD_BYTES = 1024 * 1024 * 1024
"""For our own exports: a message may have a file of any size that the operator allows."""
MOST_FOREIGN_FILES = 1_000
MOST_FOREIGN_BYTES = 1024 * 1024 * 1024
"""For all files of one conversation: they are on the disk until it is stored."""
_ENDING = ".txt"


def payload_content(source: ImportSource, payload: Payload, most: int = MOST_PAYLOAD_BYTES) -> bytes:
    """The content of a payload."""
    file = source.open(payload_name(payload))
    if file is None:
        raise InvalidRequest(f"the export doesn't contain payload {payload.id}")
    with file:
        content = file.read(min(payload.size, most) + 1)
    if len(content) != payload.size or content_hash(content) != payload.sha256:
        raise InvalidRequest(f"payload {payload.id} is damaged or too large")
    return content


async def keep_document(source: ImportSource, name: str, document: Document, files: DocumentFiles) -> None:
    """Stores a document's file, which has this name in the export."""
    file = source.open(name)
    if file is None:
        raise InvalidRequest("the export doesn't contain its file")
    with file:
        kept = await files.keep(document.agent_id, document.id, file, most=document.size)
    if kept != (document.size, document.sha256):
        await files.remove(document.agent_id, document.id)
        raise InvalidRequest("its file is damaged")


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """The files of another product's conversation that can be stored, and where their contents are."""

    known: Mapping[ForeignFile, UploadedFile]
    paths: Mapping[str, Path]

    def read(self, sha256: str) -> bytes:
        """The content with this hash."""
        return self.paths[sha256].read_bytes()


def files_in(conversation: ForeignConversation) -> Iterator[ForeignFile]:
    """The files that a conversation names, each once."""
    parts = (part for message in conversation.messages for part in message.parts)
    return iter(dict.fromkeys(part for part in parts if isinstance(part, ForeignFile)))


@asynccontextmanager
async def foreign_files(
    source: ImportSource,
    conversation: ForeignConversation,
    intake: FileIntake,
    user_id: UserId,
    note: Callable[[str], None],
) -> AsyncGenerator[ForeignFiles]:
    """Prepares a conversation's files; calls `note` with the reason if one can't be stored."""
    prepared: dict[ForeignFile, PreparedFile] = {}
    size = 0
    async with AsyncExitStack() as stack:
        for file in files_in(conversation):
            try:
                if (found := await asyncio.to_thread(_find, source, file)) is None:
                    continue
                name, content = found
                size += len(content)
                if len(prepared) >= MOST_FOREIGN_FILES or size > MOST_FOREIGN_BYTES:
                    note(
                        f"{conversation.title or conversation.id!r} has too many files; the rest are "
                        "listed by name only."
                    )
                    break
                prepared[file] = await _prepare(stack, intake, user_id, name, content, file)
            except (InvalidRequest, UnsupportedFile) as exc:
                note(f"{conversation.title or conversation.id!r} lists a file by name only: {exc.message}")
        yield ForeignFiles(
            {file: it.file for file, it in prepared.items()},
            {it.file.hashes[name]: path for it in prepared.values() for name, path in it.contents.items()},
        )


def _find(source: ImportSource, file: ForeignFile) -> tuple[str, bytes] | None:
    """A file's name and content; None if the export doesn't have it."""
    if file.content is not None:
        return _name(file.file_name), storable(file.content).encode()
    if file.asset_id is None:
        return None
    found = source.read_asset(file.asset_id, most=MOST_FILE_BYTES)
    return (_name(file.file_name or found[0]), found[1]) if found else None


async def _prepare(
    stack: AsyncExitStack, intake: FileIntake, user_id: UserId, name: str, content: bytes, file: ForeignFile
) -> PreparedFile:
    try:
        return await stack.enter_async_context(intake.prepared(user_id, name, BytesIO(content)))
    except UnsupportedFile:
        if file.content is None:
            raise
    # Text extracted from another type, such as a PDF, whose name would mislead.
    return await stack.enter_async_context(intake.prepared(user_id, name + _ENDING, BytesIO(content)))


def _name(foreign_name: str) -> str:
    """A name without folders, within the length limit."""
    name = one_line(storable(PurePosixPath(foreign_name.replace("\\", "/")).name))
    return name[-(MOST_NAME_CHARACTERS - len(_ENDING)) :] or "file"
