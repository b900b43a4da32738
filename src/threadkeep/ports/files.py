"""Storage of files for messages."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, PayloadId, UserId
from threadkeep.domain.uploaded_file import PreparedFile, UploadedFile


@dataclass(frozen=True, slots=True)
class Room:
    """What a user has, with the files that are being added; equal bytes count once."""

    unsent: int
    """How many files wait for a message."""
    unsent_bytes: int
    total_bytes: int
    """The bytes of all files, sent or not, in all their forms, of documents, and of all texts."""


CheckRoom = Callable[[Room], None]
"""Raises LimitNotAllowed if a user may not have that much."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """The bytes of a file in one of its forms, to be read piece by piece."""

    size: int
    sha256: str
    read: Callable[[int, int], AsyncGenerator[bytes]]
    """The bytes from the first number to before the second; StorageError if they end early."""


class FileStore(Protocol):
    """Files of messages. Each belongs to a user, who can use it in several conversations.

    A file that no message uses expires; the others are deleted with the last conversation that uses them.
    The same bytes of one user are stored once.
    """

    async def add(self, user_id: UserId, prepared: Sequence[PreparedFile], check_room: CheckRoom) -> None:
        """Stores files with their renditions, all or none; StorageError if that fails."""
        ...

    async def add_returned(self, conversation: Conversation, prepared: PreparedFile) -> None:
        """Stores an image that a tool returned; it can be repeated."""
        ...

    async def has_any(self, conversation_id: ConversationId) -> bool:
        """Whether messages of a conversation have files."""
        ...

    async def visible(self, user_id: UserId, ids: Iterable[PayloadId]) -> Mapping[PayloadId, UploadedFile]:
        """A user's files, by id; not those that only deleted conversations use."""
        ...

    async def page(
        self, user_id: UserId, *, after: PayloadId | None, newest_first: bool, limit: int
    ) -> Sequence[UploadedFile]:
        """The same files in the order in which they were added, after one of them."""
        ...

    async def forget(self, user_id: UserId, file_id: PayloadId) -> bool:
        """Deletes a user's file if no message uses it; returns whether it did."""
        ...

    async def used(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, UploadedFile]:
        """A conversation's files, by id."""
        ...

    async def latest(self, conversation_id: ConversationId, *, limit: int) -> Sequence[UploadedFile]:
        """A conversation's files, newest first."""
        ...

    async def open(self, form_id: PayloadId, size: int) -> StoredBytes | None:
        """The bytes of a file, by its id or a rendition's; None if they are lost."""
        ...

    async def forget_unsent(self, before: int) -> int:
        """Deletes files that have waited for a message since before a time; returns how many."""
        ...
