"""Messages that a client adds without asking for a reply, and what becomes of them."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from itertools import takewhile

from threadkeep.clock import Clock
from threadkeep.context.titles import title_of
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.conversation import AddedMessage, Conversation
from threadkeep.domain.errors import ConversationChanging, StorageConflict
from threadkeep.domain.ids import AgentId, IdempotencyKey
from threadkeep.domain.message import Message, MessageRole, MessageWindow, check_user_content
from threadkeep.domain.queued import WhenBusy
from threadkeep.domain.turn import BegunWith, Turn, TurnStatus
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEventType
from threadkeep.services.access import agent_to_ask, own_conversation
from threadkeep.services.conversations import Conversations
from threadkeep.services.history import History
from threadkeep.services.retries import retried_turns
from threadkeep.services.sending import Sending
from threadkeep.services.turns import Turns
from threadkeep.storage.store import Store

TRIES = 20
"""As many writers at once each get their turn."""
MOST_UNANSWERED = 20
MOST_LOOKED_AT = 100
JUST_BEGUN_MS = 10 * 60 * 1000
CLOCKS_DIFFER_MS = 1000
"""How much the clocks of two nodes may differ."""


class AddedMessages:
    """The use cases of messages without a turn."""

    def __init__(
        self,
        store: Store,
        conversations: Conversations,
        sending: Sending,
        turns: Turns,
        history: History,
        clock: Clock,
        caps: OperatorCaps,
    ) -> None:
        self._caps = caps
        self._store = store
        self._conversations = conversations
        self._sending = sending
        self._turns = turns
        self._history = history
        self._clock = clock

    async def add(self, user: User, conversation_id: str, said: Sequence[AddedMessage]) -> Sequence[Message]:
        """Adds messages to the end of the active path, all or none.

        A turn that waits for its user ends: a user who continues no longer decides.
        """
        for _ in range(TRIES):
            conversation = await own_conversation(self._store, user, conversation_id)
            self.check(await agent_to_ask(self._store, user, conversation), said)
            if await self._is_waiting(user, conversation):
                await self._turns.abort(user, conversation.id)
                continue
            asked = (title_of(it.content, it.files) for it in said if it.role is MessageRole.USER)
            grown, messages = conversation.add(said, self._clock(), title=next(filter(None, asked), None))
            self._caps.check_messages(grown.last_seq)
            try:
                await self._store.messages.add(grown, messages)
            except StorageConflict:
                continue  # another writer was first: read and decide again
            self._history.note(conversation.id)
            await self._turns.announce(UserEventType.CONVERSATION_CHANGED, grown)
            return messages
        raise ConversationChanging

    def check(self, agent: Agent, said: Sequence[AddedMessage]) -> None:
        """Refuses messages that can't be added to a conversation with an agent."""
        for it in said:
            most = agent.settings.max_message_chars if it.role is MessageRole.USER else 0
            check_user_content(it.content, most=most, has_files=bool(it.files))

    async def unanswered(self, conversation: Conversation) -> Sequence[Message]:
        """The messages at the end of the active path that were added and nobody has replied to."""
        if conversation.active_turn_id is not None or conversation.tip_id is None:
            return ()
        return await self._added_last(conversation, MessageWindow(newest_first=True))

    async def replied(self, conversation: Conversation) -> AsyncGenerator[tuple[Turn, Sequence[Message]]]:
        """The turns that a client's own retry may mean and that reply to added messages, each with those
        messages, newest first.
        """
        for turn in await retried_turns(self._store, conversation, self._clock()):
            question = await self._store.messages.get(conversation.id, turn.user_message_id)
            if question is not None and question.turn_id is None:
                window = MessageWindow(newest_first=True, before_seq=question.seq + 1)
                yield turn, await self._added_last(conversation, window)

    async def _added_last(self, conversation: Conversation, window: MessageWindow) -> Sequence[Message]:
        """The messages at the end of a window that were added."""
        found: list[Message] = []
        while True:
            newest = await self._store.messages.page(
                conversation.id, window, offset=0, limit=MOST_UNANSWERED - len(found)
            )
            open_ = [*takewhile(lambda it: it.role is MessageRole.USER and it.turn_id is None, newest)]
            found += open_
            if not newest.is_cut or len(open_) < len(newest):
                return found[::-1]
            window = replace(window, before_seq=newest[-1].seq)

    async def reply_to(
        self,
        user: User,
        question: Message,
        begun_with: BegunWith,
        *,
        model: str | None = None,
        agent_id: AgentId | None = None,
        key: IdempotencyKey | None = None,
    ) -> Turn:
        """Starts the turn that replies to an added message."""
        turn, _ = await self._sending.regenerate(
            user,
            question.conversation_id,
            message_id=question.id,
            model=model,
            when_busy=WhenBusy.STOP,
            begun_with=begun_with,
            may_be_repeated=True,
            agent_id=agent_id,
            idempotency_key=key,
        )
        return turn

    async def asked_elsewhere(
        self, user: User, question: str, conversation: Conversation, since: int
    ) -> Sequence[Conversation]:
        """Conversations of one turn that replies to this question, begun lately and since a time, newest
        first; not those that have another conversation's id already.
        """
        since = max(self._clock() - JUST_BEGUN_MS, since - CLOCKS_DIFFER_MS)
        found = await self._store.conversations.begun_with(
            user.id, question, since, but_by=conversation.id, limit=MOST_LOOKED_AT
        )
        of_one_turn = [it for it in found if (it.last_seq, it.message_count) == (2, 2)]
        return [it for it in of_one_turn if it.created_at >= since and user.may_use(it.agent_id)]

    async def give_id_to(self, user: User, other: Conversation, conversation: Conversation) -> Conversation:
        """Lets a client find another conversation by the id of this one, which is purged."""
        found = await self._store.outside_ids.bind(other, conversation.id)
        if conversation.metadata:
            metadata = {**other.metadata, **conversation.metadata}
            found = await self._conversations.update(
                user, other.id, lambda it: replace(it, metadata=metadata)
            )
        # Last: as long as it is there, its id is its own, and all of this can be done again.
        await self._conversations.delete(user, conversation.id, purge=True)
        return found

    async def _is_waiting(self, user: User, conversation: Conversation) -> bool:
        if conversation.active_turn_id is None:
            return False
        return (await self._turns.get(user, conversation.active_turn_id)).status is TurnStatus.WAITING
