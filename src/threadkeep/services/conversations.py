"""Conversations: a user's own, with the agents the user can talk to."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from threadkeep.clock import Clock
from threadkeep.context.cards import CardStyle
from threadkeep.context.request import ContextMessage, to_context
from threadkeep.domain.agent import Agent, AgentSettings, ConversationMode
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation, ConversationFilter, ListedStatus, new_session_id
from threadkeep.domain.errors import (
    AgentNotFound,
    ConversationNotFound,
    PreconditionFailed,
    StorageConflict,
    TurnInProgress,
)
from threadkeep.domain.feedback import FeedbackByMessage
from threadkeep.domain.ids import AgentId, ConversationId, IdempotencyKey, is_uuid
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEventType
from threadkeep.fair_slots import FairSlots
from threadkeep.log.replies import written_so_far
from threadkeep.services.access import created_with, own_conversation, to_conversation_id
from threadkeep.services.agents import Agents
from threadkeep.services.history import History
from threadkeep.services.path import latest_messages
from threadkeep.services.payloads import fitting, shown_messages
from threadkeep.services.turns import Turns
from threadkeep.storage.messages import MessagePage
from threadkeep.storage.siblings import Siblings
from threadkeep.storage.store import Store

MOST_CONTEXT_CHARACTERS = 4 * 1024 * 1024
DAY_MS = 24 * 60 * 60 * 1000
TRIES = 5
PURGED_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Detail:
    """A conversation with its latest messages, oldest first, and the summary of what is archived."""

    conversation: Conversation
    messages: Sequence[Message]
    siblings: Siblings
    feedback: FeedbackByMessage
    summary: str | None
    queued: Sequence[QueuedMessage]
    is_cut: bool
    """Whether it has fewer messages than were asked for because they are large."""


class Conversations:
    """The use cases of conversations."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        turns: Turns,
        history: History,
        clock: Clock,
        cards: CardStyle,
        retention_days: int,
        delete_after_days: int = 0,
    ) -> None:
        self.delete_after_days = delete_after_days
        """After how many days without a message the server deletes conversations; 0 means never."""
        self._store = store
        self._agents = agents
        self._turns = turns
        self._history = history
        self._purges = FairSlots(PURGED_AT_ONCE, of_one=1)
        self._clock = clock
        self._cards = cards
        self._retention_ms = retention_days * DAY_MS

    async def create(
        self,
        user: User,
        agent_id: str,
        *,
        title: str | None,
        metadata: Mapping[str, object] | None,
        idempotency_key: str | None = None,
    ) -> tuple[Conversation, bool]:
        """Starts another conversation, or returns the main one if the agent allows only one; and whether it
        is new. The same key returns the same conversation.
        """
        key = IdempotencyKey.of(idempotency_key, repr((agent_id.lower(), title, metadata)))
        if key and (known := await created_with(self._store, user, key)):
            return known, False
        agent = await self._agents.get(user, agent_id)
        if agent.settings.conversation_mode is ConversationMode.SINGLE:
            return await self._main_with(user, agent)
        conversation = Conversation.start(user.id, agent.id, self._clock(), title=title, metadata=metadata)
        if key is None:
            await self._store.conversations.add(conversation)
        else:
            try:
                await self._store.conversations.add_once(conversation, key)
            except StorageConflict:  # the same request at the same time
                if known := await created_with(self._store, user, key):
                    return known, False
                raise
        if title is not None:
            self._history.note(conversation.id)
        await self._turns.announce(UserEventType.CONVERSATION_CREATED, conversation)
        return conversation, True

    async def main(self, user: User, agent_id: str) -> tuple[Conversation, bool]:
        """The main conversation with an agent, created if needed; and whether it is new."""
        agent, found = await self._agents.get_with_main(user, agent_id)
        return (found, False) if found else await self._main_with(user, agent)

    async def find_main_with_default_agent(self, user: User) -> Conversation | None:
        """The main conversation with the default agent, if it exists."""
        agent = await self._agents.default_of(user)
        return await self._store.conversations.get_main(user.id, agent.id)

    async def get(self, user: User, conversation_id: str) -> Conversation:
        """One of the user's conversations."""
        return await own_conversation(self._store, user, conversation_id)

    async def page(
        self,
        user: User,
        which: ConversationFilter,
        *,
        after: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[Conversation]:
        """The user's conversations, latest activity first; deleted ones, latest deletion first."""
        if which.agent_id is not None:
            await self._check_listable(user, which.agent_id, which.status)
        within = replace(which, agents=user.agents)
        return await self._store.conversations.page(user.id, within, after=after, offset=offset, limit=limit)

    async def detail(self, user: User, conversation_id: str, *, latest: int) -> Detail:
        """A conversation with its latest messages."""
        window = MessageWindow(newest_first=True)
        page = await self.messages(user, conversation_id, window, offset=0, limit=latest)
        compaction = await self._compaction(page.conversation)
        return Detail(
            page.conversation,
            page.messages[::-1],
            page.siblings,
            page.feedback,
            compaction.summary if compaction else None,
            await self._store.queue.waiting(page.conversation.id),
            page.is_cut,
        )

    async def messages(
        self, user: User, conversation_id: str, which: MessageWindow, *, offset: int, limit: int
    ) -> MessagePage:
        """A page of a conversation's messages, which ends early where they are large; a reply in progress is
        included as far as it goes.
        """
        page = await self.bare_messages(user, conversation_id, which, offset=offset, limit=limit)
        kept = await fitting(self._store.payloads, page.messages)
        return page._replace(
            messages=await shown_messages(self._store.payloads, kept),
            is_cut=page.is_cut or len(kept) < len(page.messages),
        )

    async def bare_messages(
        self, user: User, conversation_id: str, which: MessageWindow, *, offset: int, limit: int
    ) -> MessagePage:
        """The same, without values stored separately because of their size."""
        page = await self._store.messages.page_of(
            user.id, to_conversation_id(conversation_id), which, offset=offset, limit=limit
        )
        if page is None:
            raise ConversationNotFound
        if page.conversation.active_turn_id is None:
            return page
        return page._replace(messages=[await written_so_far(self._store.log, it) for it in page.messages])

    async def context(
        self, user: User, conversation_id: str, *, limit: int | None
    ) -> Sequence[ContextMessage]:
        """The latest messages in a form that another engine can send; by default, as many as the agent's
        context.
        """
        conversation = await self.get(user, conversation_id)
        agent = await self._store.agents.get(conversation.agent_id)
        habits = agent.settings if agent else AgentSettings()
        compaction = await self._compaction(conversation)
        latest = await latest_messages(
            self._store.messages,
            conversation.id,
            MessageWindow(after_seq=compaction.to_seq if compaction else 0),
            most=habits.context_messages if limit is None else limit,
            most_characters=MOST_CONTEXT_CHARACTERS,
        )
        return await asyncio.to_thread(
            to_context,
            latest,
            summary=compaction.summary if compaction else None,
            cards=self._cards,
            thoughts=habits.context_thoughts,
        )

    async def update(
        self, user: User, conversation_id: str, change: Callable[[Conversation], Conversation]
    ) -> Conversation:
        """Changes title, status, pin or metadata."""
        before: list[Conversation] = []

        def change_noted(conversation: Conversation) -> Conversation:
            before[:] = [conversation]
            return change(conversation)

        id_ = to_conversation_id(conversation_id)
        changed = await self._store.conversations.update(user.id, id_, change_noted)
        if changed is None:
            raise ConversationNotFound
        is_renamed = any(it.title != changed.title for it in before)
        if is_renamed:
            await self._history.follow(changed.id)
        await self._turns.announce(
            UserEventType.CONVERSATION_RENAMED if is_renamed else UserEventType.CONVERSATION_CHANGED, changed
        )
        return changed

    async def change_agent(self, user: User, conversation: Conversation, agent: Agent) -> Conversation | None:
        """Gives a conversation another agent; None if a turn has run in it, or one of them has only one."""
        if agent.settings.conversation_mode is ConversationMode.SINGLE:
            return None
        if not await self._store.conversations.change_agent(conversation, agent.id):
            return None
        changed = await own_conversation(self._store, user, conversation.id)
        await self._turns.announce(UserEventType.CONVERSATION_CHANGED, changed)
        return changed

    async def rotate_session(self, user: User, conversation_id: str) -> Conversation:
        """Gives the conversation a new session id; the old one stops working."""
        fresh = new_session_id()
        return await self.update(user, conversation_id, lambda it: replace(it, session_id=fresh))

    async def delete(self, user: User, conversation_id: str, *, purge: bool) -> None:
        """Deletes a conversation, to be purged later, or purges it immediately, deleted before or not."""
        id_ = to_conversation_id(conversation_id)
        conversations = self._store.conversations
        if await conversations.get(user.id, id_) is not None:
            with suppress(TurnInProgress):  # an unresponsive node can't store anything either
                await self._turns.abort(user, id_)
        gone = (
            await self._purge(user, id_) if purge else await conversations.delete(user.id, id_, self._clock())
        )
        if not gone:
            raise ConversationNotFound
        if purge:
            await self._store.payloads.forget([id_])
        await self._turns.announce_deleted(user.id, id_)

    async def _purge(self, user: User, id_: ConversationId, *, only_deleted: bool = False) -> bool:
        """Purges one conversation of a user at a time: each purge is a long row of writes."""
        async with self._purges.slot(user.id):
            return await self._store.conversations.purge(user.id, id_, only_deleted=only_deleted)

    async def purge_deleted(self, user: User, conversation_id: str) -> None:
        """Purges a conversation unless it was restored meanwhile, such as in another tab."""
        id_ = to_conversation_id(conversation_id)
        if await self._purge(user, id_, only_deleted=True):
            await self._store.payloads.forget([id_])
            await self._turns.announce_deleted(user.id, id_)
        elif await self._store.conversations.get(user.id, id_) is not None:
            raise PreconditionFailed("The conversation was restored. Nothing was deleted.")
        else:
            raise ConversationNotFound

    async def restore(self, user: User, conversation_id: str) -> Conversation:
        """Restores a deleted conversation."""
        restored = await self._store.conversations.restore(user.id, to_conversation_id(conversation_id))
        if restored is None:
            raise ConversationNotFound
        self._history.note(restored.id)  # it may have been deleted before it was fully indexed
        await self._turns.announce(UserEventType.CONVERSATION_CREATED, restored)
        return restored

    def purge_time(self, conversation: Conversation) -> int | None:
        """When a deleted conversation is purged; None for one that is not deleted."""
        return None if conversation.deleted_at is None else conversation.deleted_at + self._retention_ms

    async def purge_expired(self, now: int) -> int:
        """Purges conversations deleted longer ago than the retention period, and what a crash has left."""
        conversations, count = self._store.conversations, 0
        while purged := (
            await conversations.purge_left()
            or await conversations.purge_deleted_before(now - self._retention_ms)
        ):
            await self._store.payloads.forget(purged)
            count += len(purged)
        return count

    async def _main_with(self, user: User, agent: Agent) -> tuple[Conversation, bool]:
        fresh = Conversation.start(user.id, agent.id, self._clock(), is_main=True)
        main, is_new = await self._store.conversations.get_or_add_main(fresh)
        if is_new:
            await self._turns.announce(UserEventType.CONVERSATION_CREATED, main)
        return main, is_new

    async def _check_listable(self, user: User, agent_id: AgentId, status: ListedStatus | None) -> None:
        """Conversations with a deleted agent stay readable for their users."""
        try:
            await self._agents.get(user, agent_id)
        except AgentNotFound:
            own = ConversationFilter(agent_id, status if status is ListedStatus.DELETED else None)
            if (
                not is_uuid(agent_id)
                or not user.may_use(agent_id)
                or not await self._store.conversations.page(user.id, own, after=None, offset=0, limit=1)
            ):
                raise

    async def _compaction(self, conversation: Conversation) -> Compaction | None:
        if not conversation.archived_to_seq:
            return None
        return await self._store.compactions.current(conversation.id)
