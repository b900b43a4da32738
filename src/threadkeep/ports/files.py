"""Where the files of messages are known, and where they lie until a message has them."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, PayloadId, UserId
from threadkeep.domain.uploaded_file import UploadedFile

CheckRoom = Callable[[int, int], None]
"""Refuses a further file of a user who has so many, with so many bytes, that no message has."""


class FileStore(Protocol):
    """Files of messages. Until a message has it, a file is its user's, and goes after a while."""

    async def add(
        self, user_id: UserId, file: UploadedFile, contents: Mapping[str, Path], check_room: CheckRoom
    ) -> None:
        """Keeps a user's file with its renditions, by their names; StorageError where it cannot be."""
        ...

    async def add_returned(self, conversation: Conversation, file: UploadedFile) -> None:
        """Notes an image that a tool returned, whose contents are payloads of the conversation already."""
        ...

    async def has_any(self, conversation_id: ConversationId) -> bool:
        """Whether messages of a conversation have files."""
        ...

    async def unsent(self, user_id: UserId, ids: Iterable[PayloadId]) -> Mapping[PayloadId, UploadedFile]:
        """Those of a user that no message has yet, by their ids."""
        ...

    async def sent(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, UploadedFile]:
        """Those of a conversation, by their ids."""
        ...

    async def sent_by(
        self, user_id: UserId, file_id: PayloadId
    ) -> tuple[UploadedFile, ConversationId] | None:
        """One in a conversation of the user that is not deleted, and which conversation that is."""
        ...

    def read(self, file: UploadedFile, name: str) -> AsyncGenerator[bytes]:
        """The content of a file that no message has yet, or of a rendition, piece by piece."""
        ...

    async def give(self, files: Sequence[UploadedFile], conversation_id: ConversationId) -> None:
        """Copies files to a conversation, so that a message of it can have them."""
        ...

    async def forget_contents(self, ids: Iterable[PayloadId]) -> None:
        """Removes what lies of files that have been purged."""
        ...

    async def forget_unsent(self, created_before: int) -> int:
        """Removes files that no message has got in time; tells how many."""
        ...
