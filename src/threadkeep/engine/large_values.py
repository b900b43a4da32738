"""Stores large values and files separately, so that rows don't grow with tools' results."""

import asyncio
import mimetypes
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from threadkeep.domain.ids import ConversationId, PayloadId
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.ports.tools import MOST_RESULT_BYTES, ReturnedFile

MOST_INLINE_BYTES = 16 * 1024
MOST_VALUE_BYTES = MOST_RESULT_BYTES
MOST_FILE_BYTES = 32 * 1024 * 1024
MOST_FILE_NAME = 200

ANY_TYPE = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_UNSHOWN = re.compile(r'[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"<>|:*?]+')

_encode = msgspec.json.Encoder().encode

Keep = Callable[[Payload, bytes], Awaitable[None]]


def is_large_value(value: object) -> bool:
    """Whether a value is too large for a row."""
    return value is not None and len(_encode(value)) > MOST_INLINE_BYTES


class TooLarge(Exception):
    """A value or file is larger than allowed; the message is for people."""


class LargeValues:
    """Moves large values to the payload store, for one conversation."""

    def __init__(self, conversation_id: ConversationId, clock: Callable[[], int], keep: Keep) -> None:
        self._conversation_id = conversation_id
        self._clock = clock
        self._keep = keep

    async def store(self, values: Mapping[str, Any], *, always: Iterable[str] = ()) -> dict[str, PayloadId]:
        """Stores the values that are too large for a row, and those in `always`; returns their ids."""
        refs: dict[str, PayloadId] = {}
        for name, value in values.items():
            if value is None:
                continue
            content = _encode(value)
            if len(content) > MOST_VALUE_BYTES:
                raise TooLarge(
                    f"A value can have at most {MOST_VALUE_BYTES} bytes; this one has {len(content)}."
                )
            if len(content) > MOST_INLINE_BYTES or name in always:
                refs[name] = await self._add(content, PayloadKind.VALUE, "application/json")
        return refs

    async def store_files(self, files: Iterable[ReturnedFile]) -> tuple[PayloadId, ...]:
        """Stores files that a tool returned."""
        ids: list[PayloadId] = []
        for file in files:
            if len(file.content) > MOST_FILE_BYTES:
                raise TooLarge(
                    f"A file can have at most {MOST_FILE_BYTES} bytes; this one has {len(file.content)}."
                )
            media_type = safe_media_type(file.media_type)
            name = safe_file_name(file.file_name, media_type)
            ids.append(await self._add(file.content, PayloadKind.FILE, media_type, name))
        return tuple(ids)

    async def _add(
        self, content: bytes, kind: PayloadKind, media_type: str, file_name: str | None = None
    ) -> PayloadId:
        payload = await asyncio.to_thread(
            Payload.of, content, self._conversation_id, kind, media_type, self._clock(), file_name=file_name
        )
        await self._keep(payload, content)
        return payload.id


def is_possible_image(file: ReturnedFile) -> bool:
    """Whether a file's media type is an image's, and it is small enough to store."""
    return safe_media_type(file.media_type).startswith("image/") and len(file.content) <= MOST_FILE_BYTES


def safe_media_type(media_type: str) -> str:
    """A media type without parameters; an invalid one becomes generic bytes."""
    media_type = media_type.partition(";")[0].strip().lower()
    return media_type if _MEDIA_TYPE.fullmatch(media_type) else ANY_TYPE


def safe_file_name(name: str, media_type: str) -> str:
    """The last part of a name, without characters that a screen or file system would misinterpret."""
    name = _UNSHOWN.sub("_", re.split(r"[/\\]", name)[-1]).strip(" .")
    if not name:
        return f"file{mimetypes.guess_extension(media_type) or ''}"
    stem, dot, ending = name.rpartition(".")
    if dot and len(ending) <= 16:
        return f"{stem[: MOST_FILE_NAME - len(ending) - 1]}.{ending}"
    return name[:MOST_FILE_NAME]
