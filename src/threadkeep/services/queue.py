"""The queue: users can edit and remove queued messages until they are sent."""

from threadkeep.clock import Clock
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import MessageNotFound
from threadkeep.domain.message import check_user_content
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEventType
from threadkeep.services.access import agent_to_ask, own_conversation, to_message_id
from threadkeep.services.creations import Creations
from threadkeep.services.turns import Turns
from threadkeep.storage.store import Store
from threadkeep.storage.text_bytes import byte_length


class Queue:
    """The use cases of queued messages."""

    def __init__(
        self, store: Store, turns: Turns, creations: Creations, clock: Clock, caps: OperatorCaps = NO_CAPS
    ) -> None:
        self._store = store
        self._turns = turns
        self._creations = creations
        self._clock = clock
        self._caps = caps

    async def edit(
        self, user: User, conversation_id: str, message_id: str, content: str
    ) -> tuple[QueuedMessage, Conversation]:
        """Edits a queued message."""
        conversation = await own_conversation(self._store, user, conversation_id)
        agent = self._caps.limited(await agent_to_ask(self._store, user, conversation))
        id_ = to_message_id(message_id)
        waiting = {it.id: it for it in await self._store.queue.waiting(conversation.id)}
        has_files = id_ in waiting and bool(waiting[id_].files)
        check_user_content(content, most=agent.settings.max_message_chars, has_files=has_files)
        known = byte_length(waiting[id_].content) if id_ in waiting else 0
        if (grown := byte_length(content) - known) > 0:
            await self._creations.check_turn(user.id, grown)
        edited = await self._store.queue.edit(conversation.id, id_, content, key_id=user.key_id)
        if edited is None:
            raise MessageNotFound("This message isn't in the queue.")
        await self._turns.announce(UserEventType.CONVERSATION_CHANGED, conversation)
        return edited, conversation

    async def remove(self, user: User, conversation_id: str, message_id: str) -> None:
        """Removes a queued message."""
        conversation = await own_conversation(self._store, user, conversation_id)
        if not await self._store.queue.remove(conversation.id, to_message_id(message_id), self._clock()):
            raise MessageNotFound("This message isn't in the queue.")
        await self._turns.announce(UserEventType.CONVERSATION_CHANGED, conversation)
