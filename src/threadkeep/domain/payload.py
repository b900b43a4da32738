"""A payload: a large value kept outside the message row, named by its content."""

import hashlib
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import ConversationId, PayloadId, new_uuid


class PayloadKind(Choice):
    """A value set aside for its size, or a file that a turn produced."""

    VALUE = "value"
    ARTIFACT = "artifact"


@dataclass(frozen=True, slots=True)
class Payload:
    """What is known of a large value; the bytes lie in the payload store under `sha256`."""

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
        """What is known of a content that is to be kept."""
        id_, sha256 = PayloadId(new_uuid()), content_hash(content)
        return Payload(id_, conversation_id, kind, media_type, file_name, len(content), sha256, now)


def content_hash(content: bytes) -> str:
    """The name of a content: equal contents are kept once."""
    return hashlib.sha256(content).hexdigest()


def text_hash(text: str) -> str:
    """The name of a text that is kept by its content."""
    return content_hash(text.encode())
