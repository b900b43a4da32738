"""Prepares files for messages: detects their type by content and creates the forms that models and lists
need.
"""

import asyncio
import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from threadkeep.clock import Clock
from threadkeep.domain.document import DOCX, MOST_NAME_CHARACTERS, PDF, TEXT
from threadkeep.domain.errors import StorageRefused, UnsupportedFile
from threadkeep.domain.file import HEAD_BYTES, TAIL_BYTES, detect, is_image
from threadkeep.domain.ids import PayloadId, UserId, new_uuid
from threadkeep.domain.text import check_line
from threadkeep.domain.uploaded_file import (
    AS_TEXT,
    FOR_MODEL,
    ORIGINAL,
    PREVIEW,
    KeptRendition,
    PreparedFile,
    UploadedFile,
)
from threadkeep.fair_slots import FairSlots
from threadkeep.ports.attachments import ImagePreparer, PdfInspector
from threadkeep.ports.documents import ExtractedPart, ExtractionBroke, ExtractionFailed, Extractor

log = logging.getLogger("threadkeep.files")

MOST_UPLOAD_S = 60 * 60
_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Measured:
    """The properties of a file's bytes."""

    size: int
    sha256: str
    head: bytes
    tail: bytes


class FileIntake:
    """Detects files' types and prepares them; rejects what messages don't accept.

    Images, PDFs and Word documents each need a process, which may take a gigabyte: few run at once on a node,
    and users take turns.
    """

    def __init__(
        self,
        images: ImagePreparer,
        pdfs: PdfInspector,
        extractor: Extractor,
        folder: Path,
        clock: Clock,
        workers: FairSlots,
    ) -> None:
        self._images = images
        self._pdfs = pdfs
        self._extractor = extractor
        self._folder = folder
        self._clock = clock
        self._workers = workers

    @asynccontextmanager
    async def prepared(
        self, user_id: UserId, file_name: str, source: BinaryIO
    ) -> AsyncGenerator[PreparedFile]:
        """A file by its content, an image with its renditions; temporary files are deleted afterwards."""
        check_line(file_name, "fileName", most=MOST_NAME_CHARACTERS)
        async with self._work_folder() as folder:
            original = folder / ORIGINAL
            try:
                measured = await asyncio.to_thread(_copy, source, original)
            except OSError as exc:
                raise _cannot_be_written(exc) from exc
            media_type = detect(measured.head, file_name, tail=measured.tail)
            file = UploadedFile(
                id=PayloadId(new_uuid()),
                file_name=file_name,
                media_type=media_type,
                size=measured.size,
                sha256=measured.sha256,
                created_at=self._clock(),
            )
            yield await self._prepared(user_id, file, original, folder)

    async def _prepared(
        self, user_id: UserId, file: UploadedFile, original: Path, folder: Path
    ) -> PreparedFile:
        if is_image(file.media_type):
            async with self._workers.slot(user_id):
                return await self._with_images(file, original, folder)
        if file.media_type in (PDF, DOCX):
            async with self._workers.slot(user_id):
                pages = await self._pages(original, file.file_name) if file.media_type == PDF else None
                return await self._with_text(replace(file, pages=pages), original, folder)
        return PreparedFile(file, {ORIGINAL: original})

    async def sweep(self) -> None:
        """Deletes leftovers of uploads after a crash."""
        await asyncio.to_thread(_remove_old, self._folder)

    async def _pages(self, original: Path, file_name: str) -> int | None:
        """The number of pages of a PDF; None if providers wouldn't open it."""
        facts = await self._pdfs.inspect(original)
        if facts.needs_password:
            raise UnsupportedFile(
                f"{file_name} is password-protected. Remove the password, then upload it again."
            )
        return None if facts.encrypted else facts.page_count

    async def _with_images(self, file: UploadedFile, original: Path, folder: Path) -> PreparedFile:
        """An image with its renditions, and where their contents are."""
        try:
            image = await self._images.prepare(original, folder)
        except UnsupportedFile as exc:
            raise UnsupportedFile(f"{file.file_name}: {exc.message}", param="fileName") from exc
        made = {FOR_MODEL: image.model, PREVIEW: image.preview}
        kept = {name: await asyncio.to_thread(_kept, it.path, it.media_type) for name, it in made.items()}
        paths = {ORIGINAL: original, **{name: it.path for name, it in made.items()}}
        return PreparedFile(replace(file, width=image.width, height=image.height, renditions=kept), paths)

    async def _with_text(self, file: UploadedFile, original: Path, folder: Path) -> PreparedFile:
        """A PDF or Word document with its text, or without it if there is none, as in a scan."""
        text = folder / AS_TEXT
        try:
            with original.open("rb") as source, text.open("w", encoding="utf-8") as target:
                async with aclosing(self._extractor.extract(source, file.media_type)) as parts:
                    async for part in parts:
                        target.writelines(_lines(part))
        except (ExtractionFailed, ExtractionBroke) as exc:
            log.info("couldn't extract text from a file: %s", exc.message)
            return PreparedFile(file, {ORIGINAL: original})
        kept = {AS_TEXT: await asyncio.to_thread(_kept, text, TEXT)}
        return PreparedFile(replace(file, renditions=kept), {ORIGINAL: original, AS_TEXT: text})

    @asynccontextmanager
    async def _work_folder(self) -> AsyncGenerator[Path]:
        """A temporary folder for the duration of the block."""
        try:
            await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True, mode=0o700)
            folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._folder))
        except OSError as exc:
            raise _cannot_be_written(exc) from exc
        try:
            yield folder
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _cannot_be_written(exc: OSError) -> StorageRefused:
    return StorageRefused(f"Can't write to the uploads folder: {exc.strerror}.")


def _remove_old(folder: Path) -> None:
    """Removes leftovers too old for any upload still to need them."""
    oldest = time.time() - MOST_UPLOAD_S
    for left in folder.glob("*"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < oldest:
                shutil.rmtree(left, ignore_errors=True)


def _copy(source: BinaryIO, target: Path) -> _Measured:
    """Copies a file piece by piece; returns the properties of its bytes."""
    size, sha256, head, tail = 0, hashlib.sha256(), b"", b""
    source.seek(0)
    with target.open("wb") as file:
        while piece := source.read(_PIECE_BYTES):
            file.write(piece)
            sha256.update(piece)
            size += len(piece)
            head += piece[: HEAD_BYTES - len(head)]
            tail = (tail + piece)[-TAIL_BYTES:]
    return _Measured(size, sha256.hexdigest(), head, tail if size > HEAD_BYTES else b"")


def _kept(path: Path, media_type: str) -> KeptRendition:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return KeptRendition(
        id=PayloadId(new_uuid()), media_type=media_type, size=path.stat().st_size, sha256=sha256
    )


def _lines(part: ExtractedPart) -> Iterator[str]:
    """Pieces of a file's text, each page after its number."""
    for indexed in part.chunks:
        chunk = indexed.chunk
        page = f"[Page {chunk.page}]\n" if chunk.page is not None else ""
        yield f"{page}{chunk.text}\n\n"
