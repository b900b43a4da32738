"""Branches: the active path through a conversation's tree of messages, and forks."""

from collections.abc import Collection, Sequence

from msgspec import UNSET, UnsetType

from threadkeep.clock import Clock
from threadkeep.domain.agent import ConversationMode
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import Conflict, MessageNotFound, StorageConflict, TurnInProgress
from threadkeep.domain.ids import MessageId, PayloadId
from threadkeep.domain.message import ENDS, Message
from threadkeep.domain.payload import Payload
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEventType
from threadkeep.ports.exchange.records import KeptTurn
from threadkeep.ports.store import Store
from threadkeep.services.access import (
    agent_to_ask,
    branch_up_to,
    own_conversation,
    own_message,
    to_message_id,
)
from threadkeep.services.creations import Creations
from threadkeep.services.history import History
from threadkeep.services.path import messages_up_to
from threadkeep.services.turns import Turns
from threadkeep.transfers.fork import Forked, fork, payload_ids

TRIES = 5
ROWS_AT_ONCE = 500


class Branches:
    """The use cases of branches."""

    def __init__(
        self, store: Store, turns: Turns, history: History, creations: Creations, clock: Clock
    ) -> None:
        self._store = store
        self._turns = turns
        self._history = history
        self._creations = creations
        self._clock = clock

    async def choose(
        self,
        user: User,
        conversation_id: str,
        message_id: str,
        *,
        tip_id: str | UnsetType | None = UNSET,
    ) -> Conversation:
        """Makes the branch through a message the active path, for everyone who follows the conversation."""
        for _ in range(TRIES):
            conversation = await own_conversation(self._store, user, conversation_id)
            conversation.check_idle()
            if tip_id is not UNSET:
                conversation.check_tip(tip_id)
            branch = await self._store.branches.through(conversation.id, to_message_id(message_id))
            if branch is None:
                raise MessageNotFound
            if branch.tip_id == conversation.tip_id:
                return conversation
            try:
                await self._store.branches.follow(conversation, branch)
            except StorageConflict:
                continue  # another writer was first: read and decide again
            await self._turns.announce(UserEventType.CONVERSATION_CHANGED, conversation)
            return await own_conversation(self._store, user, conversation_id)
        raise TurnInProgress("The conversation is changing too quickly. Try again.")

    async def take_back(self, user: User, conversation_id: str, message_id: str) -> Conversation:
        """Ends the active path before its last message, which must be this one; the message stays stored."""
        for _ in range(TRIES):
            conversation = await own_conversation(self._store, user, conversation_id)
            conversation.check_idle()
            conversation.check_tip(message_id)
            last = await own_message(self._store, conversation, message_id)
            branch = await branch_up_to(self._store, conversation, last.parent_id)
            try:
                await self._store.branches.follow(conversation, branch)
            except StorageConflict:
                continue
            await self._turns.announce(UserEventType.CONVERSATION_CHANGED, conversation)
            return await own_conversation(self._store, user, conversation_id)
        raise TurnInProgress("The conversation is changing too quickly. Try again.")

    async def fork(self, user: User, conversation_id: str, message_id: str) -> Conversation:
        """Starts a new conversation with everything up to a message; the original is unchanged."""
        conversation = await own_conversation(self._store, user, conversation_id)
        agent = await agent_to_ask(self._store, user, conversation)
        if agent.settings.conversation_mode is ConversationMode.SINGLE:
            raise Conflict("This agent has one conversation per user.")
        await self._creations.check_copy(user.id, conversation.id)
        messages = await messages_up_to(self._store, user, conversation, message_id)
        return await self._keep_fork(conversation, messages)

    async def _keep_fork(self, conversation: Conversation, messages: Sequence[Message]) -> Conversation:
        if any(message.status not in ENDS for message in messages):
            raise TurnInProgress("The agent is still answering. Fork the conversation when it has finished.")
        forked = Forked(
            messages=messages,
            turns=await self._all_turns(conversation),
            compactions=await self._store.compactions.page(
                conversation.id, before=messages[-1].seq + 1, offset=0, limit=ROWS_AT_ONCE
            ),
            payloads=await self._payloads(conversation, payload_ids(messages)),
        )
        whole = fork(conversation, forked, self._clock())
        await self._store.exchange.add_fork(whole, conversation.id)
        self._history.note(whole.conversation.id)
        await self._turns.announce(UserEventType.CONVERSATION_CREATED, whole.conversation)
        return whole.conversation

    async def siblings(self, message: Message) -> Sequence[MessageId]:
        """All messages with the same parent as this one, if there are several."""
        found = await self._store.branches.siblings(message.conversation_id, [message])
        return found.get(message.id, ())

    async def _all_turns(self, conversation: Conversation) -> list[KeptTurn]:
        found: list[KeptTurn] = []
        while page := await self._store.exchange.turns(
            conversation.id, after=found[-1].turn.id if found else None, limit=ROWS_AT_ONCE
        ):
            found += page
        return found

    async def _payloads(self, conversation: Conversation, wanted: Collection[PayloadId]) -> list[Payload]:
        found: list[Payload] = []
        after: PayloadId | None = None
        while wanted and (
            page := await self._store.exchange.payloads(conversation.id, after=after, limit=ROWS_AT_ONCE)
        ):
            found += (payload for payload in page if payload.id in wanted)
            after = page[-1].id
        return found
