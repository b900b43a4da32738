"""Storage of briefings."""

from collections.abc import Callable, Sequence
from typing import Protocol

from threadkeep.domain.briefing import Briefing
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, BriefingId, MessageId, UserId
from threadkeep.domain.message import Message

CheckUnread = Callable[[int], None]
"""Rejects a briefing if the user has this many unread ones from the owner's agents."""


class BriefingStore(Protocol):
    """Briefings."""

    async def send(self, briefing: Briefing, owner_id: UserId | None, check_unread: CheckUnread) -> bool:
        """Stores a new briefing from an agent of this owner; returns False if its user is unknown.

        `check_unread` receives the number of unread ones from the owner's agents, including this one, while
        nobody else sends the user one.
        """
        ...

    async def add(self, briefing: Briefing) -> None:
        """Stores a new briefing."""
        ...

    async def page(
        self,
        user_id: UserId,
        *,
        unread: bool,
        before: str | None,
        limit: int,
        offset: int = 0,
        agents: frozenset[AgentId] | None = None,
    ) -> Sequence[Briefing]:
        """The user's briefings, newest first; only those of `agents`, if there are any."""
        ...

    async def get(self, user_id: UserId, briefing_id: BriefingId) -> Briefing | None:
        """One of the user's briefings."""
        ...

    async def mark_read(self, user_id: UserId, briefing_id: BriefingId, now: int) -> Briefing | None:
        """Marks a briefing as read; the first time counts."""
        ...

    async def delete(self, user_id: UserId, briefing_id: BriefingId) -> bool:
        """Deletes a briefing; its card stays."""
        ...

    async def card_on_path(self, conversation: Conversation, briefing: Briefing) -> MessageId | None:
        """The briefing's card on the active path of a conversation."""
        ...

    async def add_card(self, briefing: Briefing, conversation: Conversation, message: Message) -> None:
        """Stores a briefing's card and marks it read.

        StorageConflict if it has got a card, or the conversation has changed, since they were read.
        """
        ...
