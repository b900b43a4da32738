"""Branches: the active path through a conversation's tree of messages, and forks."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from msgspec import UNSET, UnsetType

from threadkeep.clock import Clock
from threadkeep.domain.agent import ConversationMode
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.conversation import Branch, Conversation, WholeConversation
from threadkeep.domain.errors import (
    Conflict,
    ConversationChanging,
    MessageNotFound,
    StorageConflict,
    TurnInProgress,
)
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import ENDS, Message, MessageWindow
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEventType
from threadkeep.fair_slots import FairSlots
from threadkeep.services.access import (
    agent_to_ask,
    branch_up_to,
    own_conversation,
    own_message,
    to_message_id,
)
from threadkeep.services.branches.fork import Fork, payload_ids
from threadkeep.services.creations import Creations
from threadkeep.services.history import History
from threadkeep.services.turns import Turns
from threadkeep.storage.branches import OutlinedMessage
from threadkeep.storage.store import Store

TRIES = 5
ROWS_AT_ONCE = 200
OUTLINED_AT_ONCE = 1000


FORKED_AT_ONCE = 2
"""On a node, one of each user: what is copied counts before the next copy, and users take turns."""


class _PathMoved(Exception):
    """The path of a conversation changed, or the conversation was purged, while it was copied."""


class Branches:
    """The use cases of branches."""

    def __init__(
        self,
        store: Store,
        turns: Turns,
        history: History,
        creations: Creations,
        clock: Clock,
        caps: OperatorCaps,
    ) -> None:
        self._store = store
        self._caps = caps
        self._turns = turns
        self._history = history
        self._creations = creations
        self._forks = FairSlots(FORKED_AT_ONCE, of_one=1)
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
        raise ConversationChanging

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
        raise ConversationChanging

    async def fork(self, user: User, conversation_id: str, message_id: str) -> Conversation:
        """Starts a new conversation with everything up to a message; the original is unchanged."""
        async with self._forks.slot(user.id):
            for _ in range(TRIES):
                copy = await self._fork_once(user, conversation_id, message_id)
                if copy is not None:
                    self._history.note(copy.id)
                    await self._turns.announce(UserEventType.CONVERSATION_CREATED, copy)
                    return copy
        raise ConversationChanging

    async def _fork_once(self, user: User, conversation_id: str, message_id: str) -> Conversation | None:
        """The copy; None if the path has changed meanwhile."""
        conversation = await own_conversation(self._store, user, conversation_id)
        agent = await agent_to_ask(self._store, user, conversation)
        if agent.settings.conversation_mode is ConversationMode.SINGLE:
            raise Conflict("This agent has one conversation per user.")
        branch = await branch_up_to(self._store, conversation, message_id)
        # Here a fork is refused, before anything is stored.
        self._caps.check_messages(conversation.following(branch).message_count)
        await self._creations.check_copy(user.id, conversation.id)
        try:
            return await self._copy(conversation, branch)
        except _PathMoved:
            return None

    async def _copy(self, source: Conversation, branch: Branch) -> Conversation:
        """Copies a branch by pages; the copy appears with the last one."""
        path = await self._outline(source, branch)
        if any(it.status not in ENDS for it in path):
            if source.active_turn_id is None:
                raise _PathMoved  # a turn has begun since the conversation was read
            raise TurnInProgress(
                "The agent is still answering. Fork the conversation when it has finished.",
                source.active_turn_id,
            )
        last = await self._store.messages.get(source.id, path[-1].id) if path else None
        if last is None:
            raise _PathMoved
        compactions = await self._store.compactions.page(
            source.id, before=path[-1].seq + 1, offset=0, limit=ROWS_AT_ONCE
        )
        fork = await asyncio.to_thread(Fork, source, path, self._clock())
        covered = fork.cover(last, compactions)
        async with self._store.whole_conversations.forking(fork.conversation, source.id) as writer:
            async for page, copies in self._pages(source, fork, path):
                await writer.add(page)
                await writer.add_states(copies)
            await writer.add(WholeConversation(fork.conversation, (), (), covered))
            now = await self._store.branches.up_to(source.id, branch.tip_id)
            if now is None or (now.fork_seq, now.shown) != (branch.fork_seq, branch.shown):
                raise _PathMoved
        return fork.conversation

    async def _outline(self, source: Conversation, branch: Branch) -> Sequence[OutlinedMessage]:
        """The messages of a branch, from the first one on, without their contents."""
        path = [it async for it in self._outlined(source, 0, branch.fork_seq)]
        if own := frozenset(branch.shown):
            path += [it async for it in self._outlined(source, branch.fork_seq, None) if it.id in own]
        return path

    async def _outlined(
        self, source: Conversation, after_seq: int, to_seq: int | None
    ) -> AsyncGenerator[OutlinedMessage]:
        while page := await self._store.branches.outline(
            source.id, after_seq=after_seq, to_seq=to_seq, limit=OUTLINED_AT_ONCE
        ):
            for it in page:
                yield it
            after_seq = page[-1].seq

    async def _pages(
        self, source: Conversation, fork: Fork, path: Sequence[OutlinedMessage]
    ) -> AsyncGenerator[tuple[WholeConversation, Sequence[tuple[MessageId, MessageId]]]]:
        """The copies of messages, some at a time; and the ids of replies with those of their copies."""
        copied, window = 0, MessageWindow(before_seq=path[-1].seq + 1, with_overwritten=True)
        stored = self._store.whole_conversations
        while found := await self._store.messages.page(source.id, window, offset=0, limit=ROWS_AT_ONCE):
            window = replace(window, after_seq=found[-1].seq)
            messages = [it for it in found if fork.includes(it.id)]
            turns = await stored.turns_by_id(source.id, [it.turn_id for it in messages if it.turn_id])
            payloads = await stored.payloads_by_id(source.id, payload_ids(messages))
            yield await asyncio.to_thread(fork.page, messages, turns, payloads), fork.copies_of(messages)
            copied += len(messages)
        if copied != len(path):
            raise _PathMoved

    async def siblings(self, message: Message) -> Sequence[MessageId]:
        """All messages with the same parent as this one, if there are several."""
        found = await self._store.branches.siblings(message.conversation_id, [message])
        return found.get(message.id, ())
