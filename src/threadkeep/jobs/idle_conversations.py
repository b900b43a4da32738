"""Deletes conversations that nobody writes in, after telling their users; see `domain/retention/rule.py`."""

from collections.abc import Awaitable, Callable, Sequence

from threadkeep.clock import Clock
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.ids import FIRST_UUID, UserId, new_uuid
from threadkeep.domain.retention.rule import operators_rule
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.metrics import Metrics
from threadkeep.storage.retention.idle_conversations import SqlIdleConversations, Touched

AT_ONCE = 100
"""Conversations that one transaction changes: it takes some milliseconds."""
READ_AT_ONCE = 500
SERVER = UserId("threadkeep")
"""Who acts, in the audit log."""


class IdleConversations:
    """The sweep of conversations that nobody writes in."""

    def __init__(
        self,
        conversations: SqlIdleConversations,
        publish: Callable[[UserEvent], Awaitable[None]],
        metrics: Metrics,
        clock: Clock,
        *,
        days: int,
    ) -> None:
        self._conversations = conversations
        self._publish = publish
        self._metrics = metrics
        self._clock = clock
        self._rule = operators_rule(days)

    async def sweep(self) -> int:
        """Takes back what no longer follows, deletes what is due, and notes what will be; returns how many
        conversations were deleted.
        """
        await self._take_back()
        deleted = await self._delete_due()
        await self._note()
        return deleted

    async def _take_back(self) -> None:
        age_ms, place = self._rule.age_ms if self._rule else 0, (0, FIRST_UUID)
        while place is not None:
            touched, place = await self._conversations.take_back(age_ms, place, limit=READ_AT_ONCE)
            await self._tell(touched, UserEventType.CONVERSATION_CHANGED)

    async def _delete_due(self) -> int:
        count = 0
        while True:
            now = self._clock()
            entry = AuditEntry(new_uuid(), now, SERVER, "delete_idle_conversations", None, {})
            touched = await self._conversations.delete_due(now, entry, limit=AT_ONCE)
            await self._tell(touched, UserEventType.CONVERSATION_DELETED)
            self._metrics.idle["deleted"] += len(touched)
            count += len(touched)
            if len(touched) < AT_ONCE:
                return count

    async def _note(self) -> None:
        async for agents, owner_id, rule in self._conversations.ranges(self._rule):
            is_more = True
            while is_more:
                touched = await self._conversations.note(agents, owner_id, rule, self._clock(), limit=AT_ONCE)
                await self._tell(touched, UserEventType.CONVERSATION_CHANGED)
                self._metrics.idle["noted"] += len(touched)
                is_more = len(touched) == AT_ONCE

    async def _tell(self, touched: Sequence[Touched], what: UserEventType) -> None:
        for it in touched:
            await self._publish(UserEvent(it.user_id, what, it.id))
