"""Where summaries are kept."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.compaction import Compaction
from threadkeep.domain.ids import CompactionId, ConversationId


class CompactionStore(Protocol):
    """Summaries, and which messages they stand for."""

    async def add(self, compaction: Compaction) -> None:
        """Keeps a compaction and archives its messages; StorageConflict when others were archived since."""
        ...

    async def current(self, conversation_id: ConversationId) -> Compaction | None:
        """The one whose summary stands for all archived messages; None where nothing is archived."""
        ...

    async def get(self, conversation_id: ConversationId, compaction_id: CompactionId) -> Compaction | None:
        """One compaction of a conversation."""
        ...

    async def page(
        self, conversation_id: ConversationId, *, before: int | None, offset: int, limit: int
    ) -> Sequence[Compaction]:
        """The compactions of a conversation, newest first; those that end before a message's number."""
        ...

    async def undo(self, compaction: Compaction) -> bool:
        """Brings the messages of the newest compaction back; tells whether it was the newest."""
        ...
