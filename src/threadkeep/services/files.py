"""Files for messages: accepted, prepared, served to their owner, and attached to messages."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

from threadkeep.clock import Clock
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import Conflict, FileNotFound, InvalidRequest, LimitNotAllowed, UnsupportedFile
from threadkeep.domain.file import is_image
from threadkeep.domain.ids import ConversationId, PayloadId, UserId, is_uuid
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Lost
from threadkeep.domain.text import size_text
from threadkeep.domain.uploaded_file import (
    ORIGINAL,
    PREVIEW,
    KeptRendition,
    PreparedFile,
    UploadedFile,
    check_none_expired,
)
from threadkeep.domain.user import User
from threadkeep.engine.large_values import safe_file_name, safe_media_type
from threadkeep.log.writer import persist
from threadkeep.ports.allowances import Allowances
from threadkeep.ports.tools import ReturnedFile
from threadkeep.services.file_intake import FileIntake
from threadkeep.services.reach import is_within_reach
from threadkeep.storage.file_contents import StoredBytes
from threadkeep.storage.files import Room
from threadkeep.storage.store import Store

log = logging.getLogger("threadkeep.files")

HOUR_MS = 60 * 60 * 1000
MOST_FILES_OF_A_MESSAGE = 20
MOST_UNSENT = 200


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file in one of its forms, to be read."""

    file_name: str
    media_type: str
    is_shown: bool
    """Whether a browser may show it inline: only images that Threadkeep encoded itself."""
    content: StoredBytes


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file of a message that nobody stores, with the contents that a model may receive."""

    part: FilePart
    contents: Mapping[PayloadId, bytes]


class Files:
    """The use cases of files for messages."""

    def __init__(
        self,
        store: Store,
        intake: FileIntake,
        allowances: Allowances,
        clock: Clock,
        caps: OperatorCaps,
        *,
        most_unsent_bytes: int,
        ttl_hours: int,
    ) -> None:
        self._store = store
        self._intake = intake
        self._allowances = allowances
        self._clock = clock
        self._caps = caps
        self._most_unsent_bytes = most_unsent_bytes
        self._ttl_ms = ttl_hours * HOUR_MS

    async def add(self, user: User, *sent: tuple[str, BinaryIO]) -> list[UploadedFile]:
        """Accepts files, or none if one is rejected. The content determines each file's type."""
        await self._allowances.take_uploads(user.id, len(sent))
        async with AsyncExitStack() as stack:
            prepared = [
                await stack.enter_async_context(self._intake.prepared(user.id, name, source))
                for name, source in sent
            ]
            await self._store.files.add(user.id, prepared, self._check_room)
            return [it.file for it in prepared]

    async def get(self, user: User, file_id: str) -> UploadedFile:
        """A file of the user, attached to messages or not."""
        id_ = _checked(file_id)
        is_near = await is_within_reach(self._store, user, "file_id", id_)
        file = (await self._store.files.visible(user.id, [id_])).get(id_) if is_near else None
        if file is None:
            raise FileNotFound
        return file

    async def page(
        self, user: User, *, after: str | None, newest_first: bool, limit: int
    ) -> Sequence[UploadedFile]:
        """The user's files in the order in which they were added, after one of them."""
        start = _checked(after) if after is not None else None
        page = await self._store.files.page(user.id, after=start, newest_first=newest_first, limit=limit)
        return [it for it in page if await is_within_reach(self._store, user, "file_id", it.id)]

    async def delete(self, user: User, file_id: str) -> None:
        """Deletes a file that no message uses; others are deleted with the last conversation that does."""
        file = await self.get(user, file_id)
        if not await self._store.files.forget(user.id, file.id):
            raise Conflict("A message has this file. It is deleted with its conversation.")

    async def load_new(self, user: User, file_name: str, source: BinaryIO) -> LoadedFile:
        """Accepts a file like `add`, for a message that is not stored."""
        await self._allowances.take_uploads(user.id, 1)
        async with self._intake.prepared(user.id, file_name, source) as prepared:
            return await asyncio.to_thread(_loaded, prepared)

    async def load(self, user: User, file_id: str) -> LoadedFile:
        """One of the user's files with its contents."""
        file = await self.get(user, file_id)
        return LoadedFile(file.part, await self._contents(file))

    async def load_returned(self, user: User, file: ReturnedFile) -> LoadedFile | None:
        """An image that a tool returned outside any conversation; None if it isn't an image."""
        try:
            async with self._intake_of(user.id, file) as prepared:
                is_shown = is_image(prepared.file.media_type)
                return await asyncio.to_thread(_loaded, prepared) if is_shown else None
        except (InvalidRequest, UnsupportedFile) as exc:
            log.info("couldn't prepare an image from a tool: %s", exc.message)
            return None

    async def open(self, user: User, file_id: str, *, preview: bool) -> OpenedFile:
        """A file of the user, attached to messages or not; its preview if it is an image."""
        id_ = _checked(file_id)
        if (file := (await self._store.files.visible(user.id, [id_])).get(id_)) is None:
            raise FileNotFound
        return await self._open(file, preview=preview)

    async def open_used(
        self, conversation_id: ConversationId, file_id: PayloadId, *, preview: bool
    ) -> OpenedFile:
        """A file that messages of a conversation have, or that a tool returned there."""
        if file := (await self._store.files.used(conversation_id, [file_id])).get(file_id):
            return await self._open(file, preview=preview)
        if (made := (await self._store.payloads.files(conversation_id, [file_id])).get(file_id)) is None:
            raise FileNotFound
        content = await self._store.payloads.open(conversation_id, file_id)
        if isinstance(content, Lost):
            raise FileNotFound(content.reason)
        return OpenedFile(
            file_name=made.file_name or made.id,
            media_type=safe_media_type(made.media_type),
            is_shown=False,
            content=content,
        )

    async def _open(self, file: UploadedFile, *, preview: bool) -> OpenedFile:
        rendition = file.renditions.get(PREVIEW) if preview else None
        form = rendition or file
        if (content := await self._store.files.open(form.id, form.size)) is None:
            log.error("the content of file %s is missing or damaged", file.id)
            raise FileNotFound("The file's content is missing or damaged.")
        return OpenedFile(
            file_name=file.file_name,
            media_type=safe_media_type(form.media_type),
            is_shown=rendition is not None and is_image(rendition.media_type),
            content=content,
        )

    async def content(self, message: Message, ref: PayloadId) -> bytes | None:
        """A message's file in one of its forms; None if it is lost."""
        found = (await self._store.payloads.load(message.conversation_id, [ref]))[ref]
        return None if isinstance(found, Lost) else found

    async def parts(self, user: User, file_ids: Sequence[str]) -> tuple[FilePart, ...]:
        """A user's files as parts of a message; storing the message attaches them to its conversation."""
        if len(file_ids) > MOST_FILES_OF_A_MESSAGE:
            raise InvalidRequest(
                f"A message can have at most {MOST_FILES_OF_A_MESSAGE} files.", param="files"
            )
        ids = [PayloadId(it) for it in dict.fromkeys(map(str.lower, file_ids))]
        possible = [it for it in ids if is_uuid(it)]
        possible = [it for it in possible if await is_within_reach(self._store, user, "file_id", it)]
        known = await self._store.files.visible(user.id, possible)
        check_none_expired(ids, known)
        return tuple(known[it].part for it in ids)

    async def keep_returned(self, conversation: Conversation, file: ReturnedFile) -> FilePart | None:
        """Stores an image that a tool returned, for models and pages; None if it isn't an image."""
        try:
            async with self._intake_of(conversation.user_id, file) as prepared:
                if not is_image(prepared.file.media_type):
                    return None
                await persist(lambda: self._store.files.add_returned(conversation, prepared))
                return prepared.file.part
        except (InvalidRequest, UnsupportedFile) as exc:
            log.info("couldn't create a preview of an image from a tool: %s", exc.message)
            return None

    def _intake_of(self, user_id: UserId, file: ReturnedFile) -> AbstractAsyncContextManager[PreparedFile]:
        name = safe_file_name(file.file_name, file.media_type)
        return self._intake.prepared(user_id, name, BytesIO(file.content))

    async def _contents(self, file: UploadedFile) -> Mapping[PayloadId, bytes]:
        contents: dict[PayloadId, bytes] = {}
        for form in _for_models(file).values():
            if (stored := await self._store.files.open(form.id, form.size)) is not None:
                contents[form.id] = b"".join([it async for it in stored.read(0, stored.size)])
        return contents

    async def sweep(self) -> int:
        """Deletes files that no message used in time, and leftovers of uploads after a crash."""
        await self._intake.sweep()
        return await self._store.files.forget_unsent(self._clock() - self._ttl_ms)

    def _check_room(self, room: Room) -> None:
        if room.unsent > MOST_UNSENT or room.unsent_bytes > self._most_unsent_bytes:
            raise LimitNotAllowed(
                f"These would be {room.unsent} unsent files with {size_text(room.unsent_bytes)}; you can "
                f"have {MOST_UNSENT} with {size_text(self._most_unsent_bytes)}. Send some of them, or wait: "
                f"unsent files are deleted after {self._ttl_ms // HOUR_MS} hours.",
                details={"limit": "unsentFiles", "most": MOST_UNSENT, "mostBytes": self._most_unsent_bytes},
            )
        self._caps.check_bytes(room.total_bytes)


def _loaded(prepared: PreparedFile) -> LoadedFile:
    forms = _for_models(prepared.file)
    contents = {form.id: prepared.contents[name].read_bytes() for name, form in forms.items()}
    return LoadedFile(prepared.file.part, contents)


def _for_models(file: UploadedFile) -> Mapping[str, UploadedFile | KeptRendition]:
    """The forms of a file that models may receive, by name."""
    forms = {ORIGINAL: file, **file.renditions}
    unread = {PREVIEW, ORIGINAL} if is_image(file.media_type) else {PREVIEW}
    return {name: form for name, form in forms.items() if name not in unread}


def _checked(file_id: str) -> PayloadId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(file_id):
        raise FileNotFound
    return PayloadId(file_id.lower())
