"""Where large values and files are kept, apart from the rows that refer to them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import ConversationId, PayloadId, UserId
from threadkeep.domain.payload import Payload


@dataclass(frozen=True, slots=True)
class Lost:
    """A content that cannot be loaded; the reason is for people."""

    reason: str


class PayloadStore(Protocol):
    """Payloads and their contents, by conversation: they go when it goes."""

    async def add(self, payload: Payload, content: bytes) -> None:
        """Keeps a payload; a row that refers to it may then be written. StorageError where it cannot be."""
        ...

    async def load(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The contents of a conversation's payloads, each checked against its hash; every id gets an answer.

        What belongs to another conversation is answered like what is missing.
        """
        ...

    async def artifact(self, user_id: UserId, payload_id: PayloadId) -> Payload | None:
        """A file in a conversation of the user that is not deleted."""
        ...

    async def artifacts(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, Payload]:
        """What is known of a conversation's files; nothing of those of another one."""
        ...

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Removes the contents of conversations that have been purged."""
        ...

    async def collect(self) -> int:
        """Removes contents that no payload names any more, as a crash may leave them; tells how many."""
        ...
