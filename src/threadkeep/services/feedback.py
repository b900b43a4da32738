"""Feedback: users rate replies, and the owners of agents read what they say."""

from collections.abc import Sequence
from dataclasses import replace

from threadkeep.clock import Clock
from threadkeep.domain.errors import InvalidRequest, MessageNotFound
from threadkeep.domain.feedback import Feedback, FeedbackFilter, RatedReply, Rating
from threadkeep.domain.message import MessageRole
from threadkeep.domain.user import User
from threadkeep.services.access import to_message_id
from threadkeep.services.agents import Agents
from threadkeep.storage.store import Store


class Feedbacks:
    """The use cases of feedback."""

    def __init__(self, store: Store, agents: Agents, clock: Clock) -> None:
        self._store = store
        self._agents = agents
        self._clock = clock

    async def rate(
        self, user: User, message_id: str, rating: Rating | None, *, note: str, share_text: bool
    ) -> Feedback | None:
        """Rates a reply in one of the user's conversations, replacing an earlier rating; None removes it."""
        id_ = to_message_id(message_id)
        conversation_id = await self._store.feedback.conversation_of(user.id, id_)
        message = await self._store.messages.get(conversation_id, id_) if conversation_id else None
        if message is None:
            raise MessageNotFound
        if message.role is not MessageRole.ASSISTANT:
            raise InvalidRequest("You can rate only the agent's answers.", param="messageId")
        if message.completed_at is None:
            raise InvalidRequest("You can rate the answer when it is finished.", param="messageId")
        if rating is None:
            await self._store.feedback.remove(id_)
            return None
        now = self._clock()
        feedback = Feedback(message.id, message.conversation_id, rating, note, share_text, now, now)
        kept = await self._store.feedback.put(feedback)
        if kept is None:  # purged meanwhile
            raise MessageNotFound
        return kept

    async def page(
        self,
        user: User,
        agent_id: str,
        which: FeedbackFilter,
        *,
        before: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[RatedReply]:
        """An agent's feedback, newest first; texts that users share are for the agent's owner alone."""
        agent = await self._agents.get_open(user, agent_id)
        return await self._store.feedback.page(
            replace(which, agent_id=agent.id),
            reader=user.id,
            reads_shared=agent.is_owned_by(user),
            before=before,
            offset=offset,
            limit=limit,
        )
