"""Files inside the messages of other protocols: in base64, in both directions."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath
from typing import NamedTuple

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.file import JPEG, PNG, is_image
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import FOR_MODEL
from threadkeep.domain.user import User
from threadkeep.services.files import MOST_FILES_OF_A_MESSAGE, Files

MOST_SHOWN_FILE_BYTES = 1024 * 1024
"""Files have their own URLs: a larger one isn't in the history, which is one response."""
MOST_SHOWN_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that a message brings: its name, perhaps with folders, and its content in base64 or as a data
    URL. The content determines its type.
    """

    name: str
    data: str


async def take_in(files: Files, user: User, sent: Sequence[SentFile], *, param: str) -> tuple[FilePart, ...]:
    """The files of a message, once all are accepted."""
    if len(sent) > MOST_FILES_OF_A_MESSAGE:
        raise InvalidRequest(f"A message can have at most {MOST_FILES_OF_A_MESSAGE} files.", param=param)
    contents = [
        (_without_folders(file.name), BytesIO(await asyncio.to_thread(_content, file, param)))
        for file in sent
    ]
    return tuple(file.part for file in await files.add(user, *contents)) if contents else ()


def _without_folders(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name or "file"


def _content(file: SentFile, param: str) -> bytes:
    data = file.data.partition(",")[2] if file.data.startswith("data:") else file.data
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(
            f"{_without_folders(file.name)} isn't base64. Put the file's content in `data`; Threadkeep "
            "doesn't fetch addresses.",
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
