"""Briefings: notices from agents that users can open as conversations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threadkeep.clock import Clock
from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.errors import (
    BriefingNotFound,
    ConversationChanging,
    InvalidRequest,
    RateLimited,
    StorageConflict,
    UserNotFound,
)
from threadkeep.domain.ids import BriefingId, ConversationId, MessageId, UserId, is_uuid, new_uuid
from threadkeep.domain.user import User, user_id
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.runtime.user_events import UserEvents
from threadkeep.services.agents import Agents
from threadkeep.services.conversations import Conversations
from threadkeep.services.history import History
from threadkeep.storage.store import Store

TRIES = 5
MOST_UNREAD = 100
"""Limit for all agents of one owner per user: nobody reads thousands of notices."""
RETRY_S = 3600


@dataclass(frozen=True, slots=True)
class BriefingDraft:
    """The content of a briefing to send."""

    agent_id: str
    user_id: str
    title: str
    summary: str
    priority: Priority
    data: Mapping[str, object] | None = None
    actions: tuple[Mapping[str, object], ...] = ()


class Briefings:
    """The use cases of briefings."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        conversations: Conversations,
        history: History,
        user_events: UserEvents,
        clock: Clock,
    ) -> None:
        self._store = store
        self._user_events = user_events
        self._agents = agents
        self._conversations = conversations
        self._history = history
        self._clock = clock

    async def create(self, user: User, draft: BriefingDraft) -> Briefing:
        """Sends a briefing on behalf of an agent; for its owner and admins."""
        agent = await self._agents.get_open(user, draft.agent_id)
        receiver = User(user_id(draft.user_id, "userId"))
        if not agent.is_visible_to(receiver):  # the receiver couldn't talk about it
            raise InvalidRequest(
                "The agent is private, so this user can't talk to it. Make it public first.", param="userId"
            )
        briefing = Briefing(
            id=BriefingId(new_uuid()),
            agent_id=agent.id,
            user_id=receiver.id,
            title=draft.title,
            summary=draft.summary,
            priority=draft.priority,
            data=draft.data,
            actions=draft.actions,
            created_at=self._clock(),
        )
        if not await self._store.briefings.send(briefing, agent.owner_id, _check_unread):
            raise UserNotFound(
                "User not found. Threadkeep creates users when they first sign in.", param="userId"
            )
        await self._publish(UserEventType.BRIEFING_ARRIVED, receiver.id, briefing.id)
        return briefing

    async def page(
        self, user: User, *, unread: bool, before: str | None, offset: int, limit: int
    ) -> Sequence[Briefing]:
        """The user's briefings, newest first."""
        return await self._store.briefings.page(
            user.id, unread=unread, before=before, offset=offset, limit=limit, agents=user.agents
        )

    async def read(self, user: User, briefing_id: str) -> Briefing:
        """Marks a briefing as read; the first time counts."""
        read = await self._store.briefings.mark_read(user.id, _checked(briefing_id), self._clock())
        if read is None:
            raise BriefingNotFound
        await self._publish(UserEventType.BRIEFING_CHANGED, user.id, read.id)
        return read

    async def delete(self, user: User, briefing_id: str) -> None:
        """Deletes a briefing; its card stays in the conversation."""
        id_ = _checked(briefing_id)
        if not await self._store.briefings.delete(user.id, id_):
            raise BriefingNotFound
        await self._publish(UserEventType.BRIEFING_CHANGED, user.id, id_)

    async def start_conversation(self, user: User, briefing_id: str) -> tuple[ConversationId, MessageId]:
        """The main conversation with the briefing's agent, with the card once on its path."""
        for _ in range(TRIES):
            briefing = await self._store.briefings.get(user.id, _checked(briefing_id))
            if briefing is None:
                raise BriefingNotFound
            if found := await self._card(user, briefing):
                return found
            conversation, _ = await self._conversations.main(user, briefing.agent_id)
            grown, message = conversation.add_card(briefing, self._clock())
            try:
                await self._store.briefings.add_card(briefing, grown, message)
            except StorageConflict:
                continue  # another writer was first: read and decide again
            self._history.note(conversation.id)
            await self._user_events.publish(
                UserEvent(user.id, UserEventType.CONVERSATION_CHANGED, conversation.id)
            )
            return conversation.id, message.id
        raise ConversationChanging

    async def _publish(self, type_: UserEventType, user_id: UserId, briefing_id: BriefingId) -> None:
        await self._user_events.publish(UserEvent(user_id, type_, briefing_id=briefing_id))

    async def _card(self, user: User, briefing: Briefing) -> tuple[ConversationId, MessageId] | None:
        """The card on the active path of the main conversation, if any.

        That conversation stays readable, whatever happens to the agent.
        """
        main = await self._store.conversations.get_main(user.id, briefing.agent_id)
        if main is None or briefing.message_id is None:
            return None
        card = await self._store.messages.get(main.id, briefing.message_id)
        if card is None:
            return None
        found = card.id if card.on_path else await self._store.briefings.card_on_path(main, briefing)
        return (main.id, found) if found else None


def _check_unread(unread: int) -> None:
    if unread > MOST_UNREAD:
        raise RateLimited(
            f"This user has {MOST_UNREAD} unread briefings from your agents. Wait until they have read some.",
            details={"limit": "unreadBriefings", "most": MOST_UNREAD},
            retry_after_s=RETRY_S,
        )


def _checked(briefing_id: str) -> BriefingId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(briefing_id):
        raise BriefingNotFound
    return BriefingId(briefing_id.lower())
