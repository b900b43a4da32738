"""Exports: all data of one user, record by record."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import BinaryIO, TypeVar

from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing
from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.document import Document
from threadkeep.domain.errors import UserNotFound
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.memory import KeptMemory
from threadkeep.domain.message import Failure, Message, MessageStatus, MessageWindow
from threadkeep.domain.parts import with_calls
from threadkeep.domain.payload import Lost, Payload
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import KeptTurn, TurnStatus
from threadkeep.exports.records import (
    EXPORT_VERSION,
    ConversationEnd,
    ExportEnd,
    ExportHeader,
    KnownAgent,
    OwnAgent,
    OwnInstructions,
    Record,
    document_name,
    payload_name,
)
from threadkeep.log.replies import written_so_far
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.store import Store

T = TypeVar("T")

AT_ONCE = 200
_EVERYTHING = ConversationFilter()
_CUT_OFF = Failure("INTERRUPTED", "This was still being written when the export was made.", retryable=True)


class Export:
    """One user's data. The store is a snapshot, so that everything is consistent."""

    def __init__(
        self,
        store: Store,
        prompt_files: FolderPromptFiles,
        document_files: FolderDocumentFiles,
        user_id: UserId,
        now: int,
    ) -> None:
        self._store = store
        self._prompt_files = prompt_files
        self._document_files = document_files
        self._user_id = user_id
        self._now = now
        self._introduced: set[AgentId] = set()

    async def records(self) -> AsyncGenerator[Record]:
        """Everything but the contents of files, in an order that can be imported."""
        if await self._store.whole_conversations.owner_of("user", self._user_id) is None:
            raise UserNotFound(f"No data found for the user {self._user_id!r}.")
        yield ExportHeader(EXPORT_VERSION, self._user_id, self._now)
        if instructions := await self._store.users.instructions(self._user_id):
            yield OwnInstructions(instructions)
        async for agent in self._own_agents():
            self._introduced.add(agent.id)
            yield OwnAgent(agent, await self._components(agent.id))
            async for document in self._documents(agent.id):
                yield document
        async for memory in _all(self._memories):
            async for known in self._introduce(memory.agent_id):
                yield known
            yield memory
        count = 0
        async for conversation in _all(self._conversations):
            async for known in self._introduce(conversation.agent_id):
                yield known
            async for record in self._conversation(conversation):
                yield record
            count += 1
        async for briefing in _all(self._briefings):
            async for known in self._introduce(briefing.agent_id):
                yield known
            yield briefing
        yield ExportEnd(count)

    async def contents(self) -> AsyncGenerator[tuple[str, bytes | BinaryIO | None]]:
        """The files that records refer to; None in place of a lost one."""
        async for agent in self._own_agents():
            async for document in self._documents(agent.id):
                yield document_name(document), await self._document_files.open(agent.id, document.id)
        written: set[str] = set()
        async for conversation in _all(self._conversations):
            async for payload in self._payloads(conversation):
                if payload.sha256 not in written:
                    written.add(payload.sha256)
                    content = (await self._store.payloads.load(conversation.id, [payload.id]))[payload.id]
                    yield payload_name(payload), None if isinstance(content, Lost) else content

    async def _conversation(self, conversation: Conversation) -> AsyncGenerator[Record]:
        yield conversation
        async for payload in self._payloads(conversation):
            yield payload

        async def turns(last: KeptTurn | None) -> Sequence[KeptTurn]:
            after = last.turn.id if last else None
            return await self._store.whole_conversations.turns(conversation.id, after=after, limit=AT_ONCE)

        async for kept in _all(turns):
            yield self._ended(kept)

        async def messages(last: Message | None) -> Sequence[Message]:
            window = MessageWindow(after_seq=last.seq if last else 0, with_overwritten=True)
            return await self._store.messages.page(conversation.id, window, offset=0, limit=AT_ONCE)

        async for message in _all(messages):
            yield await self._finished(message)
        for compaction in await self._store.compactions.page(
            conversation.id, before=None, offset=0, limit=conversation.last_seq
        ):
            yield compaction
        for feedback in await self._store.feedback.of_conversation(conversation.id):
            yield feedback
        yield ConversationEnd(conversation.id)

    def _ended(self, kept: KeptTurn) -> KeptTurn:
        turn = kept.turn
        if not turn.is_active:
            return kept
        return replace(kept, turn=turn.end(TurnStatus.FAILED, self._now, error=_CUT_OFF))

    async def _finished(self, message: Message) -> Message:
        """A reply in progress, as a crash at this moment would leave it."""
        if message.completed_at is not None or message.turn_id is None:
            return message
        current = await written_so_far(self._store.log, message)
        return replace(
            current,
            status=MessageStatus.FAILED,
            completed_at=self._now,
            error=_CUT_OFF,
            parts=with_calls(current.parts, _cut_off),
        )

    async def _introduce(self, agent_id: AgentId) -> AsyncGenerator[KnownAgent]:
        """Describes another user's agent before the first reference to it, once."""
        if agent_id not in self._introduced:
            self._introduced.add(agent_id)
            agent = await self._store.agents.get(agent_id)
            assert agent is not None
            yield KnownAgent(agent.id, agent.name, agent.description, agent.is_default)

    async def _own_agents(self) -> AsyncGenerator[Agent]:
        async def page(last: Agent | None) -> Sequence[Agent]:
            after = last.id if last else None
            return await self._store.agents.page(self._user_id, after=after, offset=0, limit=AT_ONCE)

        async for agent in _all(page):
            if agent.owner_id == self._user_id:
                yield agent

    async def _components(self, agent_id: AgentId) -> dict[str, str]:
        """The prompt components that belong to the agent, without those shared by all agents."""
        return {**await self._prompt_files.read_whole(agent_id)}

    async def _documents(self, agent_id: AgentId) -> AsyncGenerator[Document]:
        async def page(last: Document | None) -> Sequence[Document]:
            before = last.id if last else None
            return await self._store.documents.page(agent_id, before=before, offset=0, limit=AT_ONCE)

        async for document in _all(page):
            yield document

    async def _payloads(self, conversation: Conversation) -> AsyncGenerator[Payload]:
        async def page(last: Payload | None) -> Sequence[Payload]:
            after = last.id if last else None
            return await self._store.whole_conversations.payloads(conversation.id, after=after, limit=AT_ONCE)

        async for payload in _all(page):
            yield payload

    async def _memories(self, last: KeptMemory | None) -> Sequence[KeptMemory]:
        after = last.memory.id if last else None
        return await self._store.whole_conversations.memories(self._user_id, after=after, limit=AT_ONCE)

    async def _conversations(self, last: Conversation | None) -> Sequence[Conversation]:
        after = (last.updated_at, last.id) if last else None
        return await self._store.conversations.page(
            self._user_id, _EVERYTHING, after=after, offset=0, limit=AT_ONCE
        )

    async def _briefings(self, last: Briefing | None) -> Sequence[Briefing]:
        before = last.id if last else None
        return await self._store.briefings.page(self._user_id, unread=False, before=before, limit=AT_ONCE)


def _cut_off(call: ToolCall) -> ToolCall:
    """A call that was still running at the time of the export."""
    if call.status is not ToolCallStatus.RUNNING:
        return call
    return call.end(ToolCallStatus.INTERRUPTED, error=_CUT_OFF.message)


async def _all(page: Callable[[T | None], Awaitable[Sequence[T]]]) -> AsyncGenerator[T]:
    """All items of a paginated list."""
    last: T | None = None
    while found := await page(last):
        for thing in found:
            yield thing
        last = found[-1]
