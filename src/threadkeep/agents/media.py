"""Images and PDFs in messages of frameworks: what is kept of a message has their ids, not their bytes."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from threadkeep.agents.errors import TurnError
from threadkeep.agents.turn import Turn
from threadkeep.domain.document import PDF
from threadkeep.domain.file import JPEG, PNG, FileKind
from threadkeep.wire.programs import ModelMessageItem

DEFAULT_FILES: tuple[FileKind, ...] = ("images",)
"""What nearly all models take as it is."""

_CUT = "threadkeep:cut"
"""The one key of an object that stands for a message with files."""

Piece = bytes | dict[str, str]
"""What is kept as it is, or the id and the alphabet of a file whose base64 stands here."""


@dataclass(frozen=True, slots=True)
class Medium:
    """An image or a PDF."""

    name: str
    media_type: str
    content: bytes

    @property
    def base64(self) -> str:
        """Its bytes as frameworks write them."""
        return base64.b64encode(self.content).decode()

    @property
    def url(self) -> str:
        """The same as an address."""
        return f"data:{self.media_type};base64,{self.base64}"


class Media:
    """The files of a turn's messages, by their ids."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._contents: dict[str, bytes] = {}

    async def load_of(self, context: Iterable[ModelMessageItem]) -> None:
        """Loads the files of messages."""
        for item in context:
            for block in item.content if isinstance(item.content, list) else ():
                if block.get("type") in ("image", "document"):
                    await self._load(block["content_id"])

    def of(self, block: Mapping[str, Any]) -> Medium | str:
        """The file of a block, or the line that takes its place."""
        content = self._contents.get(block["content_id"])
        if content is None:
            return f"[File {block['file_name']}: its content is no longer available]"
        kind = PDF if block["type"] == "document" else _image_type(content)
        return Medium(block["file_name"], kind, content)

    def cut(self, message: Any) -> Any:
        """A message as it is kept."""
        pieces = self.cut_bytes(json.dumps(message, ensure_ascii=False).encode())
        if len(pieces) == 1:
            return message
        return {_CUT: [it.decode() if isinstance(it, bytes) else it for it in pieces]}

    async def whole(self, kept: Any) -> Any:
        """A message from what is kept of it."""
        if not isinstance(kept, dict) or set(cast("dict[str, Any]", kept)) != {_CUT}:
            return cast("Any", kept)
        cut = cast("list[str | dict[str, str]]", kept[_CUT])
        pieces: list[Piece] = [it.encode() if isinstance(it, str) else it for it in cut]
        return json.loads(await self.whole_bytes(pieces))

    def cut_bytes(self, content: bytes) -> list[Piece]:
        """Bytes without the base64 of the files in them."""
        pieces: list[Piece] = [content]
        for id_, file in self._contents.items():
            for form, encode in _ALPHABETS.items():
                if (found := encode(file)) and found in content:
                    pieces = [
                        it for piece in pieces for it in _split(piece, found, {"id": id_, "form": form})
                    ]
        return pieces

    async def whole_bytes(self, pieces: Sequence[Piece]) -> bytes:
        """The same bytes again; raises TurnError if a file is gone."""
        found: list[bytes] = []
        for piece in pieces:
            if isinstance(piece, bytes):
                found.append(piece)
            elif (content := await self._load(piece["id"])) is None:
                raise TurnError(f"File {piece['id']} of an earlier message is gone.")
            else:
                found.append(_ALPHABETS[piece["form"]](content))
        return b"".join(found)

    async def _load(self, id_: str) -> bytes | None:
        if id_ not in self._contents and (content := await self._turn.content(id_)) is not None:
            self._contents[id_] = content
        return self._contents.get(id_)


_ALPHABETS = {"standard": base64.b64encode, "url": base64.urlsafe_b64encode}


def _split(piece: Piece, found: bytes, instead: dict[str, str]) -> Iterable[Piece]:
    if not isinstance(piece, bytes):
        return [piece]
    first, *others = piece.split(found)
    return [first, *(it for other in others for it in (instead, other))]


def _image_type(content: bytes) -> str:
    """Of an image for models, which the server encodes in these two only."""
    return PNG if content.startswith(b"\x89PNG") else JPEG
