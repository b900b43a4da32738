"""Compactions: long conversations stay affordable, and nothing is lost."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from threadkeep.clock import Clock
from threadkeep.context.cards import CardStyle
from threadkeep.context.compaction import (
    context_tokens,
    describe,
    extract,
    extract_lines,
    summarise,
    summary_tokens,
)
from threadkeep.context.completion import Complete
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.compaction import Compaction, CompactionProgress, to_archive
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    AgentNotFound,
    BudgetExceeded,
    CompactionNotFound,
    Conflict,
    ConversationChanging,
    ConversationNotFound,
    GenerationTimeout,
    ModelNotAllowed,
    StorageConflict,
    TooFewMessages,
    TurnInProgress,
)
from threadkeep.domain.ids import CompactionId, ConversationId, UserId, is_uuid, new_uuid
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.domain.model import Model
from threadkeep.domain.money import Purpose
from threadkeep.domain.user import User
from threadkeep.engine.completion import complete
from threadkeep.ports.allowances import Allowances
from threadkeep.runtime.spending import Spending
from threadkeep.services.access import agent_to_ask, own_conversation
from threadkeep.services.model_choice import ModelChoice
from threadkeep.services.payloads import shown_messages
from threadkeep.storage.store import Store

COMPACTION_JOB = "compaction"
LONGEST_JOB_S = 60 * 60.0
FIRST_PAUSE_MS = 10 * 60 * 1000
LONGEST_PAUSE_MS = 24 * 60 * 60 * 1000
TRIES = 3
MESSAGES_A_PAGE = 1000
DESCRIBED_AT_ONCE = 20


def is_due(agent: Agent, conversation: Conversation) -> bool:
    """Whether a conversation is long enough for automatic compaction."""
    threshold = agent.settings.compaction_threshold
    grown = min(conversation.last_seq - conversation.archived_to_seq, conversation.message_count)
    return agent.settings.auto_compact and 0 < threshold <= grown


def compaction_job(conversation: Conversation, key_id: str | None = None) -> dict[str, str | None]:
    """The arguments of the job that compacts a conversation, which the last turn's key pays for."""
    return {"user_id": conversation.user_id, "conversation_id": conversation.id, "key_id": key_id}


class _Hashing:
    """The hash of the first of some texts: changes with every text, and with where one ends."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._hash = hashlib.sha256()
        self._count = 0

    def first(self, count: int) -> str:
        """That of so many, no fewer than before."""
        for text in self._texts[self._count : count]:
            encoded = text.encode()
            self._hash.update(b"%d:" % len(encoded))
            self._hash.update(encoded)
        self._count = count
        return self._hash.hexdigest()


class Compactions:
    """The use cases of compactions."""

    def __init__(
        self,
        store: Store,
        choice: ModelChoice,
        allowances: Allowances,
        clock: Clock,
        cards: CardStyle,
        spending: Spending,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._spending = spending
        self._store = store
        self._choice = choice
        self._allowances = allowances
        self._clock = clock
        self._cards = cards
        self._caps = caps

    async def compact(self, user: User, conversation_id: str, *, keep_last: int | None = None) -> Compaction:
        """Replaces all but the latest messages with a summary. If that fails, nothing changes."""
        await own_conversation(self._store, user, conversation_id)
        await self._allowances.take_call(user.id)
        return await self._compact(user, conversation_id, keep_last)

    async def _compact(self, user: User, conversation_id: str, keep_last: int | None) -> Compaction:
        for _ in range(TRIES):
            conversation = await own_conversation(self._store, user, conversation_id)
            agent = self._caps.limited(await agent_to_ask(self._store, user, conversation))
            model = self._choice.own(agent)
            account = self._spending.account(user, agent, Purpose.COMPACTION)
            ask = partial(complete, model, account, timeout_s=agent.settings.generation_timeout_s)
            conversation.check_idle()
            try:
                compaction = await self._compaction(model.model, ask, agent, conversation, keep_last)
                await self._store.compactions.add(compaction)
            except StorageConflict:
                continue  # compacted, undone or moved to another path meanwhile: decide again
            return compaction
        raise ConversationChanging

    async def compact_later(self, arguments: Mapping[str, Any]) -> None:
        """Compacts a conversation between two turns, if it still needs it. A job."""
        user = await self._spending.with_key(User(UserId(arguments["user_id"])), arguments.get("key_id"))
        conversation_id = ConversationId(arguments["conversation_id"])
        progress = await self._store.compactions.progress(conversation_id)
        if progress is not None and self._clock() < progress.not_before:
            return
        # If a turn is running, its end queues this again.
        with suppress(
            TooFewMessages,
            TurnInProgress,
            ConversationNotFound,
            AgentNotFound,
            ModelNotAllowed,
            BudgetExceeded,
        ):
            try:
                await self._compact(user, conversation_id, keep_last=None)
            except GenerationTimeout:
                await self._pause(conversation_id)

    async def _pause(self, conversation_id: ConversationId) -> None:
        """Tries a conversation again only after a while, longer each time: its model takes too long."""
        progress = await self._store.compactions.progress(conversation_id)
        progress = progress or CompactionProgress(conversation_id, from_seq=0)
        pause_ms = min(FIRST_PAUSE_MS * 2 ** min(progress.failures, 10), LONGEST_PAUSE_MS)
        paused = replace(progress, failures=progress.failures + 1, not_before=self._clock() + pause_ms)
        await self._store.compactions.keep_progress(paused)

    async def page(
        self, user: User, conversation_id: str, *, before: int | None, offset: int, limit: int
    ) -> Sequence[Compaction]:
        """The compactions of a conversation, newest first."""
        conversation = await own_conversation(self._store, user, conversation_id)
        return await self._store.compactions.page(conversation.id, before=before, offset=offset, limit=limit)

    async def undo(self, user: User, conversation_id: str, compaction_id: str) -> None:
        """Returns the messages of the latest compaction to the context."""
        conversation = await own_conversation(self._store, user, conversation_id)
        compaction = None
        if is_uuid(compaction_id):
            wanted = CompactionId(compaction_id.lower())
            compaction = await self._store.compactions.get(conversation.id, wanted)
        if compaction is None:
            raise CompactionNotFound
        if not await self._store.compactions.undo(compaction):
            raise Conflict("You can undo only the latest compaction.")

    async def _compaction(
        self,
        model: Model,
        ask: Complete,
        agent: Agent,
        conversation: Conversation,
        keep_last: int | None,
    ) -> Compaction:
        messages = await self._messages(conversation)
        archived = to_archive(messages, keep_last=keep_last, threshold=agent.settings.compaction_threshold)
        before = await self._store.compactions.current(conversation.id)
        earlier = before.summary if before else None
        tokens: list[int] = []
        texts: list[str] = []
        lines: list[str] = []
        # Results may be large, so load a few messages at a time; a long conversation has many.
        for first in range(0, len(messages), DESCRIBED_AT_ONCE):
            some = messages[first : first + DESCRIBED_AT_ONCE]
            whole = await shown_messages(self._store.payloads, some)
            said = await asyncio.to_thread(_describe, whole, max(len(archived) - first, 0), self._cards)
            tokens += said.tokens
            texts += said.texts
            lines += said.lines
        if model.supports_tools:
            summary = await self._summary(model, ask, conversation, earlier, texts)
        else:  # the demonstration model would make things up
            summary = extract(earlier, lines, most=model.context_tokens // 2)
        return Compaction(
            id=CompactionId(new_uuid()),
            conversation_id=conversation.id,
            from_seq=conversation.archived_to_seq + 1,
            to_seq=archived[-1].seq,
            summary=summary,
            archived_count=len(archived),
            tokens_before=summary_tokens(earlier) + sum(tokens),
            tokens_after=summary_tokens(summary) + sum(tokens[len(archived) :]),
            created_at=self._clock(),
        )

    async def _summary(
        self,
        model: Model,
        ask: Complete,
        conversation: Conversation,
        earlier: str | None,
        texts: Sequence[str],
    ) -> str:
        """The model's summary of some texts; goes on after those that an attempt before has paid for."""
        from_seq, hashing = conversation.archived_to_seq + 1, _Hashing(texts)
        done, before = 0, earlier
        kept = await self._store.compactions.progress(conversation.id)
        if kept is not None and kept.from_seq == from_seq and kept.text_count:
            if await asyncio.to_thread(hashing.first, kept.text_count) == kept.texts_sha256:
                done, before = kept.text_count, kept.summary
            else:  # another path, or fewer messages than then
                hashing = _Hashing(texts)

        async def keep(summary: str, covered: int) -> None:
            count = done + covered
            sha256 = await asyncio.to_thread(hashing.first, count)
            progress = CompactionProgress(conversation.id, from_seq, count, sha256, summary)
            await self._store.compactions.keep_progress(progress)

        try:
            return await summarise(ask, model.context_tokens, before, texts[done:], keep=keep)
        except TimeoutError as exc:
            raise GenerationTimeout("The model took too long to summarize.") from exc

    async def _messages(self, conversation: Conversation) -> list[Message]:
        """All messages that are not archived, oldest first."""
        found: list[Message] = []
        window = MessageWindow(conversation.archived_to_seq)
        while page := await self._store.messages.page(
            conversation.id, window, offset=0, limit=MESSAGES_A_PAGE
        ):
            found += page
            window = MessageWindow(page[-1].seq)
        if len(found) > MESSAGES_A_PAGE:  # the path may have changed between pages
            now = await self._store.conversations.get(conversation.user_id, conversation.id)
            if now is None or now.tip_id != conversation.tip_id:
                raise StorageConflict("The path changed during the request.")
        return found


class _Described(NamedTuple):
    """What messages are to a model, and what is said of those that are archived."""

    tokens: list[int]
    texts: list[str]
    lines: list[str]


def _describe(messages: Sequence[Message], archived: int, cards: CardStyle) -> _Described:
    texts = [text for it in messages[:archived] if (text := describe(it, cards))]
    lines = [line for it in messages[:archived] for line in extract_lines(it)]
    return _Described([context_tokens(it, cards) for it in messages], texts, lines)
