"""Files for messages: accepted, prepared, served to their owner, and attached to messages."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import BinaryIO

from threadkeep.clock import Clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import FileNotFound, InvalidRequest, LimitNotAllowed, UnsupportedFile
from threadkeep.domain.file import is_image
from threadkeep.domain.ids import PayloadId, is_uuid
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import ORIGINAL, PREVIEW, UploadedFile, check_none_expired
from threadkeep.domain.user import User
from threadkeep.engine.large_values import safe_file_name
from threadkeep.log.writer import persist
from threadkeep.ports.payloads import Lost
from threadkeep.ports.store import Store
from threadkeep.ports.tools import ProducedFile
from threadkeep.services.file_intake import FileIntake, PreparedFile

log = logging.getLogger("threadkeep.files")

HOUR_MS = 60 * 60 * 1000
MOST_FILES_OF_A_MESSAGE = 20
MOST_UNSENT = 200


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that is being read."""

    file_name: str
    media_type: str
    size: int
    is_shown: bool
    """Whether a browser may show it inline: only images that Threadkeep encoded itself."""
    pieces: AsyncGenerator[bytes]


class Files:
    """The use cases of files for messages."""

    def __init__(
        self,
        store: Store,
        intake: FileIntake,
        clock: Clock,
        *,
        most_unsent_bytes: int,
        ttl_hours: int,
    ) -> None:
        self._store = store
        self._intake = intake
        self._clock = clock
        self._most_unsent_bytes = most_unsent_bytes
        self._ttl_ms = ttl_hours * HOUR_MS

    async def add(self, user: User, *sent: tuple[str, BinaryIO]) -> list[UploadedFile]:
        """Accepts files, or none if one is rejected. The content determines each file's type."""
        async with AsyncExitStack() as stack:
            prepared = [
                await stack.enter_async_context(self._intake.prepared(name, source)) for name, source in sent
            ]
            for it in prepared:
                await self._store.files.add(user.id, it.file, it.contents, self._check_room)
            return [it.file for it in prepared]

    async def open(self, user: User, file_id: str, *, preview: bool) -> OpenedFile:
        """A file of the user, attached to a message or not; its preview if it is an image."""
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

    async def content(self, message: Message, ref: PayloadId) -> bytes | None:
        """A message's file in one of its forms; None if it is lost."""
        found = (await self._store.payloads.load(message.conversation_id, [ref]))[ref]
        return None if isinstance(found, Lost) else found

    async def parts(
        self, user: User, conversation: Conversation, file_ids: Sequence[str]
    ) -> tuple[FilePart, ...]:
        """Attaches files to a message of a conversation, as its parts."""
        if len(file_ids) > MOST_FILES_OF_A_MESSAGE:
            raise InvalidRequest(
                f"A message can have at most {MOST_FILES_OF_A_MESSAGE} files.", param="files"
            )
        ids = [PayloadId(it) for it in dict.fromkeys(map(str.lower, file_ids))]
        possible = [it for it in ids if is_uuid(it)]
        waiting = await self._store.files.unsent(user.id, possible)
        known = {**await self._store.files.sent(conversation.id, possible), **waiting}
        check_none_expired(ids, known)
        await self._store.files.give(list(waiting.values()), conversation.id)
        return tuple(known[it].part for it in ids)

    async def keep_returned(self, conversation: Conversation, file: ProducedFile) -> FilePart | None:
        """Stores an image that a tool returned, for models and pages; None if it isn't an image."""
        name = safe_file_name(file.file_name, file.media_type)
        try:
            async with self._intake.prepared(name, BytesIO(file.content)) as prepared:
                if not is_image(prepared.file.media_type):
                    return None
                await self._keep(conversation, prepared)
                return prepared.file.part
        except (InvalidRequest, UnsupportedFile) as exc:
            log.info("couldn't create a preview of an image from a tool: %s", exc.message)
            return None

    async def _keep(self, conversation: Conversation, prepared: PreparedFile) -> None:
        """Stores the file and its renditions as payloads of a conversation."""
        file = prepared.file
        names = {file.id: ORIGINAL, **{it.id: name for name, it in file.renditions.items()}}
        for payload in file.payloads(conversation.id):
            content = await asyncio.to_thread(prepared.contents[names[payload.id]].read_bytes)
            await persist(partial(self._store.payloads.add, payload, content))
        await persist(lambda: self._store.files.add_returned(conversation, file))

    async def sweep(self) -> int:
        """Deletes files that no message used in time, and leftovers of uploads after a crash."""
        await self._intake.sweep()
        return await self._store.files.forget_unsent(self._clock() - self._ttl_ms)

    def _check_room(self, count: int, size: int) -> None:
        if count >= MOST_UNSENT or size >= self._most_unsent_bytes:
            raise LimitNotAllowed(
                f"You have {count} unsent files with {size} bytes in total. Send them, or wait: unsent "
                f"files are deleted after {self._ttl_ms // HOUR_MS} hours.",
                details={"limit": "unsentFiles", "most": MOST_UNSENT, "mostBytes": self._most_unsent_bytes},
            )


def _checked(file_id: str) -> PayloadId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(file_id):
        raise FileNotFound
    return PayloadId(file_id.lower())


def _opened(file: UploadedFile, name: str, pieces: AsyncGenerator[bytes]) -> OpenedFile:
    rendition = file.renditions.get(name)
    return OpenedFile(
        file_name=file.file_name,
        media_type=rendition.media_type if rendition else file.media_type,
        size=rendition.size if rendition else file.size,
        is_shown=rendition is not None and is_image(rendition.media_type),
        pieces=pieces,
    )


async def _one(content: bytes) -> AsyncGenerator[bytes]:
    yield content
