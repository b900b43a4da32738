"""Files in AgentX messages: accepted like any message's files, and shown in the history as the same parts."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.file import JPEG, PNG, file_line, is_image
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import FOR_MODEL
from threadkeep.domain.user import User
from threadkeep.protocols.agentx import frames
from threadkeep.protocols.agentx.decode import SentPart
from threadkeep.services.files import MOST_FILES_OF_A_MESSAGE, Files

MOST_SHOWN_FILE_BYTES = 1024 * 1024
"""A larger file is shown as a line: a history is one response, and files have their own URLs."""
MOST_SHOWN_BYTES = 8 * 1024 * 1024


async def take_in(files: Files, user: User, sent: Sequence[SentPart]) -> tuple[FilePart, ...]:
    """The files of a message, once all are accepted."""
    if len(sent) > MOST_FILES_OF_A_MESSAGE:
        raise InvalidRequest(f"A message can have at most {MOST_FILES_OF_A_MESSAGE} files.", param="content")
    contents = [(_name(part), BytesIO(await asyncio.to_thread(_bytes, part))) for part in sent]
    added = await files.add(user, *contents)
    return tuple(file.part for file in added)


@dataclass(slots=True)
class HistoryFiles:
    """The files of a history, up to a total size per response; the newest come first."""

    files: Files
    left: int = MOST_SHOWN_BYTES

    async def parts(self, message: Message) -> list[frames.ContentPart]:
        """A message's files: images as models see them, others as they are, those too large as a line."""
        return [await self._part(message, file) for file in message.files]

    async def _part(self, message: Message, file: FilePart) -> frames.ContentPart:
        content = await self._content(message, file)
        if content is None:
            return frames.TextPart(text=file_line(file.file_name, file.media_type, file.size))
        data = base64.b64encode(content).decode()
        if is_image(file.media_type):
            media_type = PNG if content.startswith(b"\x89PNG") else JPEG
            return frames.ImagePart(data=data, media_type=media_type, name=file.file_name)
        return frames.FilePart(data=data, media_type=file.media_type, filename=file.file_name)

    async def _content(self, message: Message, file: FilePart) -> bytes | None:
        ref = _shown_ref(file)
        if ref is None or self.left <= 0:
            return None
        content = await self.files.content(message, ref)
        if content is None or len(content) > min(self.left, MOST_SHOWN_FILE_BYTES):
            return None
        self.left -= len(content)
        return content


def _shown_ref(file: FilePart) -> PayloadId | None:
    if is_image(file.media_type):
        return file.refs.get(FOR_MODEL)
    return file.file_id if file.size <= MOST_SHOWN_FILE_BYTES else None


def _name(part: SentPart) -> str:
    """The client's name of a file, without its folders."""
    name = PurePosixPath((part.name or part.filename).replace("\\", "/")).name
    return name or ("image" if part.type == "image" else "file")


def _bytes(part: SentPart) -> bytes:
    """The content of a file; some clients send a data URL."""
    data = part.data.partition(",")[2] if part.data.startswith("data:") else part.data
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(
            f"{_name(part)} isn't base64. Put the file's content in `data`; Threadkeep doesn't fetch "
            "addresses.",
            param="content",
        ) from None
