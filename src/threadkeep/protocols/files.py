"""Files inside the messages of other protocols: in base64, in both directions."""

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.file import JPEG, PNG, is_image
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import FOR_MODEL
from threadkeep.domain.user import User
from threadkeep.services.files import MOST_FILES_OF_A_MESSAGE, Files, LoadedFile

MOST_SHOWN_FILE_BYTES = 1024 * 1024
"""Files have their own URLs: a larger one isn't in the history, which is one response."""
MOST_SHOWN_BYTES = 8 * 1024 * 1024
MOST_PERCENT_ENCODED_CHARACTERS = 64 * 1024
"""Decoding this takes a thousand times as long as base64."""

_OUR_FILE = re.compile(r"(?:^|/)api/files/([0-9a-fA-F-]{36})(?:$|[/?#])")


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A file of a message: its name, perhaps with folders, and its content in base64 or as a data URL, or the
    id of one that the user has uploaded. The content determines its type.
    """

    name: str
    data: str = ""
    file_id: str | None = None


def file_at(address: str, name: str, *, param: str) -> ReceivedFile:
    """The file at an address: one of ours, or its content as a data URL."""
    if address.startswith("data:"):
        return ReceivedFile(name, address)
    if ours := _OUR_FILE.search(address):
        return ReceivedFile(name, file_id=ours[1])
    shown = _without_folders(name)
    raise InvalidRequest(
        f"Send the content of {shown} as a data URL; Threadkeep doesn't fetch addresses.", param=param
    )


async def take_in(
    files: Files, user: User, sent: Sequence[ReceivedFile], *, param: str
) -> tuple[FilePart, ...]:
    """The files of a message in their order: new ones, once all are accepted, and those that we have."""
    if len(sent) > MOST_FILES_OF_A_MESSAGE:
        raise InvalidRequest(f"A message can have at most {MOST_FILES_OF_A_MESSAGE} files.", param=param)
    contents = [await _named_content(file, param) for file in sent if file.file_id is None]
    ids = [file.file_id.lower() for file in sent if file.file_id is not None]
    known = {part.file_id: part for part in await files.parts(user, ids)} if ids else {}
    new = iter([file.part for file in await files.add(user, *contents)] if contents else ())
    return tuple(next(new) if it.file_id is None else known[PayloadId(it.file_id.lower())] for it in sent)


async def load(files: Files, user: User, sent: Sequence[ReceivedFile], *, param: str) -> list[LoadedFile]:
    """The same files for messages that are not stored."""
    return [
        await files.load(user, file.file_id)
        if file.file_id is not None
        else await files.load_new(user, *await _named_content(file, param))
        for file in sent
    ]


async def _named_content(file: ReceivedFile, param: str) -> tuple[str, BytesIO]:
    return _without_folders(file.name), BytesIO(await asyncio.to_thread(_content, file, param))


def _without_folders(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name or "file"


def _content(file: ReceivedFile, param: str) -> bytes:
    head, _, data = file.data.partition(",") if file.data.startswith("data:") else (";base64", "", file.data)
    name = _without_folders(file.name)
    if not head.endswith(";base64"):
        if len(data) > MOST_PERCENT_ENCODED_CHARACTERS:
            raise InvalidRequest(f"Send {name} in base64: it is too large for another encoding.", param=param)
        return unquote_to_bytes(data)
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(
            f"{name} isn't base64. Put the file's content in `data`; Threadkeep doesn't fetch addresses.",
            param=param,
        ) from None


class ShownFile(NamedTuple):
    """A file in a history."""

    data: str
    """Its content in base64."""
    media_type: str


@dataclass(slots=True)
class HistoryFiles:
    """The files of a history, up to a total size per response; ask for the newest first."""

    files: Files
    left: int = MOST_SHOWN_BYTES

    async def shown(self, message: Message, file: FilePart) -> ShownFile | None:
        """A message's file: an image as models see it, another as it is; None if it is too large or lost."""
        ref = _shown_ref(file)
        if ref is None or self.left <= 0:
            return None
        content = await self.files.content(message, ref)
        if content is None or len(content) > min(self.left, MOST_SHOWN_FILE_BYTES):
            return None
        self.left -= len(content)
        return ShownFile(base64.b64encode(content).decode(), _media_type(file, content))


def _shown_ref(file: FilePart) -> PayloadId | None:
    if is_image(file.media_type):
        return file.refs.get(FOR_MODEL)
    return file.file_id if file.size <= MOST_SHOWN_FILE_BYTES else None


def _media_type(file: FilePart, content: bytes) -> str:
    if not is_image(file.media_type):
        return file.media_type
    return PNG if content.startswith(b"\x89PNG") else JPEG
