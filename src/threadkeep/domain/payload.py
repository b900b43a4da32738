"""A payload: a large value stored outside the message row, addressed by its content."""

import hashlib
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import ConversationId, PayloadId, new_uuid


class PayloadKind(Choice):
    """A large value, or a file, which people can download; the API calls one that a turn made an artifact."""

    VALUE = "value"
    FILE = "artifact"


@dataclass(frozen=True, slots=True)
class Payload:
    """The metadata of a payload; its bytes are in the payload store under `sha256`."""

    id: PayloadId
    conversation_id: ConversationId
    kind: PayloadKind
    media_type: str
    file_name: str | None
    size: int
    sha256: str
    created_at: int

    @staticmethod
    def of(
        content: bytes,
        conversation_id: ConversationId,
        kind: PayloadKind,
        media_type: str,
        now: int,
        *,
        file_name: str | None = None,
    ) -> "Payload":
        """The metadata for a content to store."""
        id_, sha256 = PayloadId(new_uuid()), content_hash(content)
        return Payload(id_, conversation_id, kind, media_type, file_name, len(content), sha256, now)


def content_hash(content: bytes) -> str:
    """The hash that addresses a content: equal contents are stored once."""
    return hashlib.sha256(content).hexdigest()


def text_hash(text: str) -> str:
    """The hash that addresses a stored text."""
    return content_hash(text.encode())


@dataclass(frozen=True, slots=True)
class Lost:
    """A content that can't be loaded; the reason is for people."""

    reason: str
