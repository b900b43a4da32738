"""Files that users attach to their messages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from threadkeep.domain.errors import FileNotFound
from threadkeep.domain.ids import ConversationId, PayloadId
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Payload, PayloadKind

ORIGINAL = "original"
FOR_MODEL = "model"
PREVIEW = "preview"
AS_TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRendition:
    """Another form of a file: an image for a model or for a list, or a document's text."""

    id: PayloadId
    media_type: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file of a user: it waits for its first message, or is in messages of one or more conversations."""

    id: PayloadId
    file_name: str
    media_type: str
    size: int
    sha256: str
    created_at: int
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    renditions: Mapping[str, KeptRendition] = field(default_factory=dict[str, KeptRendition])

    @property
    def part(self) -> FilePart:
        """The file as a part of a message."""
        return FilePart(
            file_id=self.id,
            file_name=self.file_name,
            media_type=self.media_type,
            size=self.size,
            width=self.width,
            height=self.height,
            pages=self.pages,
            refs={name: rendition.id for name, rendition in self.renditions.items()},
        )

    @property
    def hashes(self) -> Mapping[str, str]:
        """The hashes of its contents, by their names."""
        return {ORIGINAL: self.sha256, **{name: it.sha256 for name, it in self.renditions.items()}}

    def payloads(self, conversation_id: ConversationId) -> list[Payload]:
        """The file and its renditions as a conversation has them."""
        own = (self.id, PayloadKind.FILE, self.media_type, self.file_name, self.size, self.sha256)
        others = [
            (it.id, PayloadKind.VALUE, it.media_type, None, it.size, it.sha256)
            for it in self.renditions.values()
        ]
        return [
            Payload(id_, conversation_id, kind, media_type, name, size, sha256, self.created_at)
            for id_, kind, media_type, name, size, sha256 in (own, *others)
        ]

    @staticmethod
    def of(part: FilePart, payloads: Mapping[PayloadId, Payload]) -> "UploadedFile":
        """The file of a message's part, with the conversation's payloads of it."""
        original = payloads[part.file_id]
        return UploadedFile(
            id=part.file_id,
            file_name=part.file_name,
            media_type=part.media_type,
            size=original.size,
            sha256=original.sha256,
            created_at=original.created_at,
            width=part.width,
            height=part.height,
            pages=part.pages,
            renditions={name: _rendition(payloads[ref]) for name, ref in part.refs.items()},
        )


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """An accepted file, and where its contents are until it is stored, by name."""

    file: UploadedFile
    contents: Mapping[str, Path]


def check_none_expired(ids: Sequence[PayloadId], known: Iterable[str]) -> None:
    """Refuses a message if any of its files is missing."""
    there = set(known)
    if missing := [it for it in ids if it not in there]:
        raise FileNotFound(
            "File not found. It was deleted, or expired because no message used it. Upload it again.",
            param="files",
            details={"fileId": missing[0]},
        )


def _rendition(payload: Payload) -> KeptRendition:
    return KeptRendition(
        id=payload.id, media_type=payload.media_type, size=payload.size, sha256=payload.sha256
    )
