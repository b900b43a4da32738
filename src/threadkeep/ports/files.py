"""Storage of messages' files, before and after a message uses them."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, PayloadId, UserId
from threadkeep.domain.uploaded_file import UploadedFile

CheckRoom = Callable[[int, int], None]
"""Rejects a file if the user has this many unsent files or bytes."""


class FileStore(Protocol):
    """Files of messages. Until a message uses it, a file belongs to its user and expires."""

    async def add(
        self, user_id: UserId, file: UploadedFile, contents: Mapping[str, Path], check_room: CheckRoom
    ) -> None:
        """Stores a user's file with its renditions, by name; StorageError if that fails."""
        ...

    async def add_returned(self, conversation: Conversation, file: UploadedFile) -> None:
        """Registers an image that a tool returned, whose contents are already payloads."""
        ...

    async def has_any(self, conversation_id: ConversationId) -> bool:
        """Whether messages of a conversation have files."""
        ...

    async def unsent(self, user_id: UserId, ids: Iterable[PayloadId]) -> Mapping[PayloadId, UploadedFile]:
        """A user's files that no message uses yet, by id."""
        ...

    async def sent(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, UploadedFile]:
        """A conversation's files, by id."""
        ...

    async def sent_by(
        self, user_id: UserId, file_id: PayloadId
    ) -> tuple[UploadedFile, ConversationId] | None:
        """A file in a conversation of the user that isn't deleted, and the conversation."""
        ...

    def read(self, file: UploadedFile, name: str) -> AsyncGenerator[bytes]:
        """The content of a file that no message uses yet, or of a rendition, in chunks."""
        ...

    async def give(self, files: Sequence[UploadedFile], conversation_id: ConversationId) -> None:
        """Copies files to a conversation, so that its messages can use them."""
        ...

    async def forget_contents(self, ids: Iterable[PayloadId]) -> None:
        """Deletes the remains of purged files."""
        ...

    async def forget_unsent(self, created_before: int) -> int:
        """Deletes files that no message used in time; returns how many."""
        ...
