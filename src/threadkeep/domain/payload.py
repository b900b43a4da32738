"""A payload: a large value kept outside the message row, named by its content."""

import hashlib
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import ConversationId, PayloadId

REFERENCE_KEY = "_ref"
"""In storage a payload is referred to as {"_ref": id}; a client never sees this."""


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


def content_hash(content: bytes) -> str:
    """The name of a content: equal contents are kept once."""
    return hashlib.sha256(content).hexdigest()
