"""Storage of large values and files, separate from the rows that refer to them."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from threadkeep.domain.ids import ConversationId, PayloadId, UserId
from threadkeep.domain.payload import Lost, Payload


class PayloadStore(Protocol):
    """Payloads and their contents, by conversation: deleting the conversation deletes them."""

    async def add(self, payload: Payload, content: bytes) -> None:
        """Stores a payload; then a row may refer to it. StorageError if that fails."""
        ...

    async def load(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId], *, most_bytes: int | None = None
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The contents of a conversation's payloads, each checked against its hash; one entry for each id.

        Another conversation's payloads count as missing. What would exceed `most_bytes` is left out.
        """
        ...

    async def sizes(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, int]:
        """How many bytes a conversation's payloads have; nothing about those that are missing."""
        ...

    async def artifact(self, user_id: UserId, payload_id: PayloadId) -> Payload | None:
        """A file in a conversation of the user that is not deleted."""
        ...

    async def artifacts(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, Payload]:
        """Details of a conversation's files; nothing about other conversations' files."""
        ...

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Deletes the contents of purged conversations."""
        ...

    async def collect(self) -> int:
        """Deletes contents that no payload refers to, as a crash may leave them; returns how many."""
        ...
