"""Storage of summaries."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.compaction import Compaction, CompactionProgress
from threadkeep.domain.ids import CompactionId, ConversationId


class CompactionStore(Protocol):
    """Summaries, and the messages they replace."""

    async def add(self, compaction: Compaction) -> None:
        """Stores a compaction and archives its messages; StorageConflict if others were archived since."""
        ...

    async def current(self, conversation_id: ConversationId) -> Compaction | None:
        """The compaction whose summary replaces all archived messages; None if nothing is archived."""
        ...

    async def get(self, conversation_id: ConversationId, compaction_id: CompactionId) -> Compaction | None:
        """One compaction of a conversation."""
        ...

    async def page(
        self, conversation_id: ConversationId, *, before: int | None, offset: int, limit: int
    ) -> Sequence[Compaction]:
        """The compactions of a conversation, newest first; those that end before a message's number."""
        ...

    async def progress(self, conversation_id: ConversationId) -> CompactionProgress | None:
        """How far the next compaction has come; the compaction itself ends that."""
        ...

    async def keep_progress(self, progress: CompactionProgress) -> None:
        """Replaces it, as long as there is the conversation."""
        ...

    async def undo(self, compaction: Compaction) -> bool:
        """Returns the messages of the latest compaction to the context; False if it isn't the latest."""
        ...
