"""Where briefings are kept."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.briefing import Briefing
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import BriefingId, MessageId, UserId
from threadkeep.domain.message import Message


class BriefingStore(Protocol):
    """Briefings."""

    async def add(self, briefing: Briefing) -> None:
        """Keeps a new briefing."""
        ...

    async def page(
        self, user_id: UserId, *, unread: bool, before: str | None, limit: int, offset: int = 0
    ) -> Sequence[Briefing]:
        """The user's briefings, newest first."""
        ...

    async def get(self, user_id: UserId, briefing_id: BriefingId) -> Briefing | None:
        """One of the user's briefings."""
        ...

    async def mark_read(self, user_id: UserId, briefing_id: BriefingId, now: int) -> Briefing | None:
        """Marks one as read; the first time counts."""
        ...

    async def delete(self, user_id: UserId, briefing_id: BriefingId) -> bool:
        """Removes a briefing; its card stays."""
        ...

    async def card_on_path(self, conversation: Conversation, briefing: Briefing) -> MessageId | None:
        """A card of the briefing on the active path of a conversation."""
        ...

    async def add_card(self, briefing: Briefing, conversation: Conversation, message: Message) -> None:
        """Keeps a briefing's card and marks it read.

        StorageConflict when it has got a card, or the conversation has moved on, since they were read.
        """
        ...
