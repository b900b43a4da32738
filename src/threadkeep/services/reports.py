"""Reports: results of tools in one or all conversations, and a conversation as one document."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from threadkeep.clock import Clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ArtifactNotFound, InvalidRequest, PayloadTooLarge
from threadkeep.domain.ids import PayloadId, UserId, is_uuid
from threadkeep.domain.message import Message, MessageRole, MessageWindow
from threadkeep.domain.parts import ToolCallPart
from threadkeep.domain.payload import Lost, Payload
from threadkeep.domain.text import size_text
from threadkeep.domain.tool_call import ToolCallFilter, ToolRecord
from threadkeep.domain.user import User
from threadkeep.engine.large_values import safe_media_type
from threadkeep.fair_slots import FairSlots
from threadkeep.services.conversations import Conversations
from threadkeep.services.files import OpenedFile
from threadkeep.services.payloads import fitting, shown_messages, shown_records
from threadkeep.storage.store import Store

MESSAGES_AT_ONCE = 50
WRITTEN_AT_ONCE = 2
"""How many reports are written at a time on a node."""
SLICE_S = 0.1
SLICE_PIECES = 1_000

T = TypeVar("T")


class ReportWriters:
    """The threads that write reports; nothing else waits for these.

    Users take turns for them, a slice of a report at a time. So a report whose reader has left costs no more
    than the slice it is at.
    """

    def __init__(self) -> None:
        self._slots = FairSlots(WRITTEN_AT_ONCE)
        self._threads = ThreadPoolExecutor(WRITTEN_AT_ONCE, thread_name_prefix="report")

    async def slices(self, user_id: UserId, pieces: Iterator[T]) -> AsyncIterator[list[T]]:
        """What the iterator gives, made in a thread, some of it at a time."""
        loop = asyncio.get_running_loop()
        is_left = True
        while is_left:
            async with self._slots.slot(user_id):
                some, is_left = await loop.run_in_executor(self._threads, _slice, pieces)
            if some:
                yield some


def _slice(pieces: Iterator[T]) -> tuple[list[T], bool]:
    """The next pieces, and whether there may be more."""
    some: list[T] = []
    until = time.thread_time() + SLICE_S
    for piece in pieces:
        some.append(piece)
        if len(some) >= SLICE_PIECES or time.thread_time() >= until:
            return some, True
    return some, False


@dataclass(frozen=True, slots=True)
class QuestionAndReply:
    """A question and its reply.

    A card is alone; so may be a question, or a further reply to a question that was shown before.
    """

    asked: Message | None
    reply: Message | None = None
    files: Mapping[PayloadId, Payload] = field(default_factory=dict[PayloadId, Payload])

    @property
    def on_path(self) -> bool:
        """Whether it is on the active path."""
        last = self.reply or self.asked
        return last is None or last.on_path


@dataclass(frozen=True, slots=True)
class Report:
    """A conversation as one document; with a tool's name only what that tool did.

    Pairs are read from the store on demand: a conversation may be larger than memory.
    """

    conversation: Conversation
    agent_name: str
    pairs: AsyncIterator[QuestionAndReply]
    tool_name: str | None
    made_at: int
    user_id: UserId
    writers: ReportWriters

    def written(self, pieces: Iterator[T]) -> AsyncIterator[list[T]]:
        """Writes a part of it: a conversation may have a lot in one reply, and nobody waits for it."""
        return self.writers.slices(self.user_id, pieces)


class Reports:
    """The use cases of reports."""

    def __init__(self, store: Store, conversations: Conversations, clock: Clock) -> None:
        self._store = store
        self._conversations = conversations
        self._clock = clock
        self._writers = ReportWriters()

    async def tool_results(
        self,
        user: User,
        which: ToolCallFilter,
        *,
        before: tuple[int, str, str] | None,
        offset: int,
        limit: int,
    ) -> tuple[Sequence[ToolRecord], bool]:
        """Tool calls in the user's conversations, newest first, with their results; and whether there are
        fewer than asked for because they are large.
        """
        if which.turn_id is not None and not is_uuid(which.turn_id):
            raise InvalidRequest("This isn't a turn id.", param="turnId")
        within = replace(which, agents=user.agents)
        records = await self._store.messages.tool_calls(
            user.id, within, before=before, offset=offset, limit=limit
        )
        kept = await fitting(self._store.payloads, records)
        return await shown_records(self._store.payloads, kept), len(kept) < len(records)

    async def report(self, user: User, conversation_id: str, *, tool_name: str | None = None) -> Report:
        """The questions and replies on the active path, oldest first."""
        return await self._made(user, conversation_id, tool_name, MessageWindow())

    async def export(self, user: User, conversation_id: str) -> Report:
        """The whole conversation with every branch, in the order in which it was written."""
        return await self._made(user, conversation_id, None, MessageWindow(with_overwritten=True))

    async def file(self, user: User, file_id: str, *, most_bytes: int) -> tuple[Payload, bytes]:
        """A file that a tool returned in one of the user's conversations, with its content."""
        payload = await self._file(user, file_id)
        if payload.size > most_bytes:
            raise PayloadTooLarge(
                f"This file has {size_text(payload.size)}, more than {size_text(most_bytes)}. "
                f"Download it: GET /api/artifacts/{payload.id}.",
                details={"most": most_bytes},
            )
        content = (await self._store.payloads.load(payload.conversation_id, [payload.id]))[payload.id]
        if isinstance(content, Lost):
            raise ArtifactNotFound(content.reason)
        return payload, content

    async def open_file(self, user: User, file_id: str) -> OpenedFile:
        """The same, to be read piece by piece."""
        payload = await self._file(user, file_id)
        content = await self._store.payloads.open(payload.conversation_id, payload.id)
        if isinstance(content, Lost):
            raise ArtifactNotFound(content.reason)
        return OpenedFile(
            payload.file_name or payload.id, payload.media_type, is_shown=False, content=content
        )

    async def _file(self, user: User, file_id: str) -> Payload:
        payload = None
        if is_uuid(file_id):
            payload = await self._store.payloads.file(user.id, PayloadId(file_id.lower()))
        if payload is None:
            raise ArtifactNotFound
        return replace(payload, media_type=safe_media_type(payload.media_type))

    async def _made(
        self, user: User, conversation_id: str, tool_name: str | None, which: MessageWindow
    ) -> Report:
        conversation = await self._conversations.get(user, conversation_id)
        agent = await self._store.agents.get(conversation.agent_id)
        pairs = self._pairs(self._messages(user, conversation, which), tool_name)
        return Report(
            conversation,
            agent.name if agent else "",
            pairs,
            tool_name,
            self._clock(),
            user.id,
            self._writers,
        )

    async def _pairs(
        self, messages: AsyncIterator[Message], tool_name: str | None
    ) -> AsyncIterator[QuestionAndReply]:
        async for bare in _paired(messages):
            pair = bare if tool_name is None else _of_tool(bare, tool_name)
            if pair is None:
                continue
            if reply := pair.reply:
                (whole,) = await shown_messages(self._store.payloads, [reply])
                pair = replace(pair, reply=whole)
                pair = replace(pair, files=await self._files(reply))
            yield pair

    async def _files(self, reply: Message) -> Mapping[PayloadId, Payload]:
        """The details of a reply's files, if they belong to the conversation."""
        return await self._store.payloads.files(reply.conversation_id, reply.artifact_ids)

    async def _messages(
        self, user: User, conversation: Conversation, window: MessageWindow
    ) -> AsyncIterator[Message]:
        while True:
            page = await self._conversations.bare_messages(
                user, conversation.id, window, offset=0, limit=MESSAGES_AT_ONCE
            )
            for message in page.messages:
                yield message
            if len(page.messages) < MESSAGES_AT_ONCE and not page.is_cut:
                return
            window = replace(window, after_seq=page.messages[-1].seq)


async def _paired(messages: AsyncIterator[Message]) -> AsyncIterator[QuestionAndReply]:
    """Each reply with the question before it, if that is the one it replies to."""
    asked: Message | None = None
    async for message in messages:
        is_reply = message.role is MessageRole.ASSISTANT
        if is_reply and asked is not None and message.parent_id == asked.id:
            yield QuestionAndReply(asked, message)
            asked = None
            continue
        if asked is not None:
            yield QuestionAndReply(asked)
        asked = None if is_reply else message
        if is_reply:
            yield QuestionAndReply(None, message)
    if asked is not None:
        yield QuestionAndReply(asked)


def _of_tool(pair: QuestionAndReply, tool_name: str) -> QuestionAndReply | None:
    """What one tool did in a pair; None if it did nothing."""
    reply = pair.reply
    if reply is None or all(call.tool_name != tool_name for call in reply.tool_calls):
        return None
    parts = tuple(
        part for part in reply.parts if not isinstance(part, ToolCallPart) or part.call.tool_name == tool_name
    )
    return replace(pair, reply=replace(reply, parts=parts))
