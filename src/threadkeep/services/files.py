"""Files for messages: taken in, prepared, shown to their owner, and given to the message that has them."""

import asyncio
import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from threadkeep.clock import Clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.document import DOCX, MOST_NAME_CHARACTERS, PDF, TEXT
from threadkeep.domain.errors import FileNotFound, InvalidRequest, LimitNotAllowed, UnsupportedFile
from threadkeep.domain.file import HEAD_BYTES, TAIL_BYTES, detect, is_image
from threadkeep.domain.ids import PayloadId, is_uuid, new_uuid
from threadkeep.domain.parts import FilePart
from threadkeep.domain.text import check_line
from threadkeep.domain.uploaded_file import AS_TEXT, FOR_MODEL, ORIGINAL, PREVIEW, KeptRendition, UploadedFile
from threadkeep.domain.user import User
from threadkeep.engine.large_values import safe_file_name
from threadkeep.log.writer import persist
from threadkeep.ports.documents import ExtractedPart, ExtractionBroke, ExtractionFailed, Extractor
from threadkeep.ports.images import ImagePreparer
from threadkeep.ports.payloads import Lost
from threadkeep.ports.pdfs import PdfInspector
from threadkeep.ports.store import Store
from threadkeep.ports.tools import ProducedFile

log = logging.getLogger("threadkeep.files")

HOUR_MS = 60 * 60 * 1000
MOST_FILES_OF_A_MESSAGE = 20
MOST_UNSENT = 200
MOST_UPLOAD_S = 60 * 60
_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that is being read."""

    file_name: str
    media_type: str
    size: int
    is_shown: bool
    """Whether a browser may show it: it is an image that we have encoded ourselves."""
    pieces: AsyncGenerator[bytes]


@dataclass(frozen=True, slots=True)
class _Measured:
    """What is known of a file's bytes."""

    size: int
    sha256: str
    head: bytes
    tail: bytes


class Files:
    """The use cases of files for messages."""

    def __init__(
        self,
        store: Store,
        images: ImagePreparer,
        pdfs: PdfInspector,
        extractor: Extractor,
        folder: Path,
        clock: Clock,
        *,
        most_unsent_bytes: int,
        ttl_hours: int,
    ) -> None:
        self._store = store
        self._images = images
        self._pdfs = pdfs
        self._extractor = extractor
        self._folder = folder
        self._clock = clock
        self._most_unsent_bytes = most_unsent_bytes
        self._ttl_ms = ttl_hours * HOUR_MS

    async def add(self, user: User, file_name: str, source: BinaryIO) -> UploadedFile:
        """Takes a file in. Its content decides what it is; an image is prepared for models and lists."""
        check_line(file_name, "fileName", most=MOST_NAME_CHARACTERS)
        async with self._work_folder() as folder:
            original = folder / ORIGINAL
            measured = await asyncio.to_thread(_copy, source, original)
            media_type = detect(measured.head, file_name, tail=measured.tail)
            pages = await self._pages(original, file_name) if media_type == PDF else None
            file = self._new_file(file_name, media_type, measured, pages)
            contents: Mapping[str, Path] = {ORIGINAL: original}
            if is_image(media_type):
                file, contents = await self._with_images(file, original, folder)
            elif media_type in (PDF, DOCX):
                file, contents = await self._with_text(file, original, folder)
            await self._store.files.add(user.id, file, contents, self._check_room)
            return file

    async def open(self, user: User, file_id: str, *, preview: bool) -> OpenedFile:
        """A file of the user, whether a message has it or not; its preview where it is an image."""
        id_ = _checked(file_id)
        if (waiting := (await self._store.files.unsent(user.id, [id_])).get(id_)) is not None:
            name = PREVIEW if preview and PREVIEW in waiting.renditions else ORIGINAL
            return _opened(waiting, name, self._store.files.read(waiting, name))
        if (found := await self._store.files.sent_by(user.id, id_)) is None:
            raise FileNotFound
        file, conversation_id = found
        name = PREVIEW if preview and PREVIEW in file.renditions else ORIGINAL
        payload_id = file.id if name == ORIGINAL else file.renditions[name].id
        content = (await self._store.payloads.load(conversation_id, [payload_id]))[payload_id]
        if isinstance(content, Lost):
            raise FileNotFound(content.reason)
        return _opened(file, name, _one(content))

    async def parts(
        self, user: User, conversation: Conversation, file_ids: Sequence[str]
    ) -> tuple[FilePart, ...]:
        """The files as parts of a message in a conversation, which has them from now on."""
        if len(file_ids) > MOST_FILES_OF_A_MESSAGE:
            raise InvalidRequest(
                f"A message may have at most {MOST_FILES_OF_A_MESSAGE} files.", param="files"
            )
        ids = [PayloadId(it) for it in dict.fromkeys(map(str.lower, file_ids))]
        possible = [it for it in ids if is_uuid(it)]
        waiting = await self._store.files.unsent(user.id, possible)
        known = {**await self._store.files.sent(conversation.id, possible), **waiting}
        if missing := [it for it in ids if it not in known]:
            raise FileNotFound(
                "This file does not exist, or has expired because no message had it. Upload it again.",
                param="files",
                details={"fileId": missing[0]},
            )
        await self._store.files.give(list(waiting.values()), conversation.id)
        return tuple(known[it].part for it in ids)

    async def keep_returned(self, conversation: Conversation, file: ProducedFile) -> FilePart | None:
        """Keeps an image that a tool returned as models and pages take it; None where it is not one."""
        if not file.media_type.startswith("image/"):
            return None
        async with self._work_folder() as folder:
            try:
                image, paths = await self._prepare_returned(file, folder)
            except UnsupportedFile as exc:
                log.info("an image that a tool returned cannot be shown: %s", exc.message)
                return None
            contents = {name: await asyncio.to_thread(path.read_bytes) for name, path in paths.items()}
        names = {image.id: ORIGINAL, **{it.id: name for name, it in image.renditions.items()}}
        for payload in image.payloads(conversation.id):
            await persist(partial(self._store.payloads.add, payload, contents[names[payload.id]]))
        await persist(lambda: self._store.files.add_returned(conversation, image))
        return image.part

    async def _prepare_returned(
        self, file: ProducedFile, folder: Path
    ) -> tuple[UploadedFile, Mapping[str, Path]]:
        original = folder / ORIGINAL
        measured = await asyncio.to_thread(_copy, BytesIO(file.content), original)
        media_type = detect(measured.head, "", tail=measured.tail)
        if not is_image(media_type):
            raise UnsupportedFile(f"{file.file_name} is no image.")
        name = safe_file_name(file.file_name, media_type)
        return await self._with_images(self._new_file(name, media_type, measured), original, folder)

    def _new_file(
        self, file_name: str, media_type: str, measured: _Measured, pages: int | None = None
    ) -> UploadedFile:
        return UploadedFile(
            id=PayloadId(new_uuid()),
            file_name=file_name,
            media_type=media_type,
            size=measured.size,
            sha256=measured.sha256,
            created_at=self._clock(),
            pages=pages,
        )

    async def sweep(self) -> int:
        """Removes files that no message has got in time, and what a crash has left of an upload."""
        await asyncio.to_thread(_remove_old, self._folder)
        return await self._store.files.forget_unsent(self._clock() - self._ttl_ms)

    async def _pages(self, original: Path, file_name: str) -> int | None:
        """How many pages a PDF has; None where providers would not open it."""
        facts = await self._pdfs.inspect(original)
        if facts.needs_password:
            raise UnsupportedFile(
                f"{file_name} is protected by a password. Remove the password, then upload it again."
            )
        return None if facts.encrypted else facts.page_count

    async def _with_images(
        self, file: UploadedFile, original: Path, folder: Path
    ) -> tuple[UploadedFile, Mapping[str, Path]]:
        """An image with its renditions, and where their contents lie."""
        image = await self._images.prepare(original, folder)
        made = {FOR_MODEL: image.model, PREVIEW: image.preview}
        kept = {name: await asyncio.to_thread(_kept, it.path, it.media_type) for name, it in made.items()}
        paths = {ORIGINAL: original, **{name: it.path for name, it in made.items()}}
        return replace(file, width=image.width, height=image.height, renditions=kept), paths

    async def _with_text(
        self, file: UploadedFile, original: Path, folder: Path
    ) -> tuple[UploadedFile, Mapping[str, Path]]:
        """A PDF or Word document with its text; without it where there is none, as in a scan."""
        text = folder / AS_TEXT
        try:
            with original.open("rb") as source, text.open("w", encoding="utf-8") as target:
                async with aclosing(self._extractor.extract(source, file.media_type)) as parts:
                    async for part in parts:
                        target.writelines(_lines(part))
        except (ExtractionFailed, ExtractionBroke) as exc:
            log.info("a file for a message has no text: %s", exc.message)
            return file, {ORIGINAL: original}
        kept = {AS_TEXT: await asyncio.to_thread(_kept, text, TEXT)}
        return replace(file, renditions=kept), {ORIGINAL: original, AS_TEXT: text}

    def _check_room(self, count: int, size: int) -> None:
        if count >= MOST_UNSENT or size >= self._most_unsent_bytes:
            raise LimitNotAllowed(
                f"{count} files of yours with {size} bytes wait for a message. Send them, or wait:"
                f" each is removed after {self._ttl_ms // HOUR_MS} hours.",
                details={"limit": "unsentFiles", "most": MOST_UNSENT, "mostBytes": self._most_unsent_bytes},
            )

    @asynccontextmanager
    async def _work_folder(self) -> AsyncGenerator[Path]:
        """A folder that is gone when the block ends."""
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._folder))
        try:
            yield folder
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _remove_old(folder: Path) -> None:
    """Removes what no upload of this long ago can still need."""
    oldest = time.time() - MOST_UPLOAD_S
    for left in folder.glob("*"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < oldest:
                shutil.rmtree(left, ignore_errors=True)


def _checked(file_id: str) -> PayloadId:
    """What is no id at all is answered like an id that does not exist."""
    if not is_uuid(file_id):
        raise FileNotFound
    return PayloadId(file_id.lower())


def _opened(file: UploadedFile, name: str, pieces: AsyncGenerator[bytes]) -> OpenedFile:
    rendition = file.renditions.get(name)
    return OpenedFile(
        file_name=file.file_name,
        media_type=rendition.media_type if rendition else file.media_type,
        size=rendition.size if rendition else file.size,
        is_shown=rendition is not None,
        pieces=pieces,
    )


async def _one(content: bytes) -> AsyncGenerator[bytes]:
    yield content


def _copy(source: BinaryIO, target: Path) -> _Measured:
    """Copies a file piece by piece, and tells what is known of its bytes."""
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
