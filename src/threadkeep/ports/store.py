"""Where conversations and all that belongs to them are kept.

A method that takes a user's id answers as if other people's things did not exist. Every write is
committed when its method returns. Errors come as StorageError.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import BegunTurn, Conversation, ConversationStatus, EndedTurn
from threadkeep.domain.execution import ExecutionEvent
from threadkeep.domain.ids import AgentId, BriefingId, CompactionId, ConversationId, MessageId, TurnId, UserId
from threadkeep.domain.memory import Memory
from threadkeep.domain.message import Message
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.ports.documents import DocumentStore
from threadkeep.ports.exchange import ExchangeStore
from threadkeep.ports.history import HistoryIndex
from threadkeep.ports.mcp import SeenTools
from threadkeep.ports.payloads import PayloadStore
from threadkeep.ports.retriever import ChunkIndex
from threadkeep.ports.turn_log import Lease, LogChunk, TurnLogStore


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who changed which agent."""

    id: str
    at: int
    actor_id: UserId
    action: str
    agent_id: AgentId | None
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """Which of a user's conversations are meant."""

    agent_id: AgentId | None = None
    status: ConversationStatus | None = None


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """Which messages of a conversation are meant; the bounds themselves are left out."""

    after_seq: int = 0
    before_seq: int | None = None
    newest_first: bool = False
    with_overwritten: bool = False


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's name for one request, and what was asked, so that a second try is recognised."""

    name: str
    request_hash: str


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What a user's turns with one agent have cost on one day (UTC); `day` is when it began."""

    day: int
    agent_id: AgentId
    turns: int
    input_tokens: int
    output_tokens: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class ToolCallFilter:
    """Which of a user's tool calls are meant; `since` is a part of the time, `until` is not."""

    conversation_id: ConversationId | None = None
    tool_name: str | None = None
    status: ToolCallStatus | None = None
    turn_id: TurnId | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A tool call, and the conversation that it was made in."""

    call: ToolCall
    conversation_id: ConversationId


class AgentStore(Protocol):
    """Agents, and the record of who changed them."""

    async def add(self, agent: Agent, entry: AuditEntry) -> None:
        """Keeps a new agent; its owner becomes known."""
        ...

    async def add_default(self, agent: Agent) -> None:
        """Keeps the default agent, unless there is one already."""
        ...

    async def get_default(self) -> Agent:
        """The default agent, which is made at the first start."""
        ...

    async def get(self, agent_id: AgentId) -> Agent | None:
        """One agent, also a deleted one; whoever asks decides who may see it."""
        ...

    async def get_with_main(
        self, user_id: UserId, agent_id: AgentId
    ) -> tuple[Agent, Conversation | None] | None:
        """The same, and the user's main conversation with it, if there is one."""
        ...

    async def page(self, user_id: UserId, *, after: str | None, offset: int, limit: int) -> Sequence[Agent]:
        """The user's own agents and the public ones, oldest first."""
        ...

    async def update(
        self, agent_id: AgentId, change: Callable[[Agent], Agent], entry: Callable[[Agent], AuditEntry]
    ) -> Agent | None:
        """Reads, changes and writes one agent while nobody else does; the change must be pure."""
        ...

    async def note(self, entry: AuditEntry) -> None:
        """Adds to the record what changed no agent."""
        ...

    async def audit_page(self, *, before: str | None, offset: int, limit: int) -> Sequence[AuditEntry]:
        """The record, newest first."""
        ...


class ConversationStore(Protocol):
    """Conversations without their messages."""

    async def add(self, conversation: Conversation) -> None:
        """Keeps a new conversation."""
        ...

    async def get_or_add_main(self, fresh: Conversation) -> tuple[Conversation, bool]:
        """The main conversation of the user with the agent, and whether `fresh` became it just now."""
        ...

    async def get_main(self, user_id: UserId, agent_id: AgentId) -> Conversation | None:
        """The main conversation of the user with the agent, if there is one."""
        ...

    async def get(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """One of the user's conversations that is not deleted."""
        ...

    async def by_session(self, session_id: str) -> Conversation | None:
        """The conversation that a session id opens, whosever it is, unless it is deleted."""
        ...

    async def page(
        self,
        user_id: UserId,
        which: ConversationFilter,
        *,
        after: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[Conversation]:
        """The user's conversations by `(updated_at, id)`, newest first, after a position."""
        ...

    async def update(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        change: Callable[[Conversation], Conversation],
    ) -> Conversation | None:
        """Changes title, status, metadata or session while nobody else does; the change must be pure."""
        ...

    async def delete(self, user_id: UserId, conversation_id: ConversationId, now: int) -> bool:
        """Hides a conversation and all that hangs on it."""
        ...

    async def restore(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """Brings a deleted one back; as a further one where a new main one has been made since."""
        ...

    async def purge(self, user_id: UserId, conversation_id: ConversationId) -> bool:
        """Removes every row of a conversation, deleted before or not."""
        ...

    async def purge_deleted_before(self, time: int) -> Sequence[ConversationId]:
        """Removes every row of the conversations that were deleted before a time; tells which."""
        ...


class MessageStore(Protocol):
    """Messages, and what the tools of their turns gave."""

    async def page(
        self, conversation_id: ConversationId, which: MessageWindow, *, offset: int, limit: int
    ) -> Sequence[Message]:
        """A run of messages with their tool calls, in the order asked for."""
        ...

    async def page_of(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        which: MessageWindow,
        *,
        offset: int,
        limit: int,
    ) -> tuple[Conversation, Sequence[Message]] | None:
        """One of the user's conversations that is not deleted, with a run of its messages."""
        ...

    async def get(self, message_id: MessageId) -> Message | None:
        """One message with its tool calls, whosever it is."""
        ...

    async def add_card(self, conversation: Conversation, message: Message) -> None:
        """Keeps a card; StorageConflict when the conversation has moved on since it was read."""
        ...

    async def tool_calls(
        self,
        user_id: UserId,
        which: ToolCallFilter,
        *,
        before: tuple[int, str, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[ToolRecord]:
        """The user's tool calls by `(created_at, turn_id, tool_call_id)`, newest first, after a position."""
        ...


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn that runs on some node, without what it says."""

    id: TurnId
    conversation_id: ConversationId
    user_id: UserId
    agent_id: AgentId
    node_id: str
    model: str | None
    started_at: int
    is_aborting: bool
    is_stalled: bool


class TurnStore(Protocol):
    """Turns: how they begin and how they end."""

    async def begin(self, begun: BegunTurn, lease: Lease, key: IdempotencyKey | None = None) -> None:
        """Keeps a begun turn; StorageConflict when the conversation has moved on since it was read."""
        ...

    async def end(self, ended: EndedTurn, chunk: LogChunk, fence: int) -> None:
        """Keeps a turn's end: the last of its log, the reply, the conversation free again; all or nothing.

        StorageConflict when it has ended already or another node has taken it over.
        """
        ...

    async def get(self, user_id: UserId, turn_id: TurnId) -> Turn | None:
        """One turn in a conversation of the user that is not deleted."""
        ...

    async def status(self, turn_id: TurnId) -> TurnStatus | None:
        """How a turn stands, whosever it is; None when there is none."""
        ...

    async def running(self, *, after: str | None, offset: int, limit: int) -> Sequence[RunningTurn]:
        """The turns that run, on whichever node, oldest first; those after an id."""
        ...

    async def get_running(self, turn_id: TurnId) -> RunningTurn | None:
        """One turn that runs, whosever it is."""
        ...

    async def begun_after(
        self, conversation_id: ConversationId, seq: int, *, limit: int
    ) -> Sequence[tuple[Turn, int]]:
        """Live turns whose replies have numbers above `seq`, in that order, each with the number."""
        ...

    async def find_by_key(
        self, conversation_id: ConversationId, key: str, now: int
    ) -> tuple[Turn, str] | None:
        """The turn that was begun with an idempotency key not long ago, and the hash of what was asked."""
        ...

    async def usage(
        self, user_id: UserId, agent_id: AgentId | None, *, since: int, until: int
    ) -> Sequence[DayUsage]:
        """What a user's turns that began from `since` to before `until` have cost, by day and agent."""
        ...


class CompactionStore(Protocol):
    """Summaries, and which messages they stand for."""

    async def add(self, compaction: Compaction) -> None:
        """Keeps a compaction and archives its messages; StorageConflict when others were archived since."""
        ...

    async def current(self, conversation_id: ConversationId) -> Compaction | None:
        """The one whose summary stands for all archived messages; None where nothing is archived."""
        ...

    async def get(self, conversation_id: ConversationId, compaction_id: CompactionId) -> Compaction | None:
        """One compaction of a conversation."""
        ...

    async def page(
        self, conversation_id: ConversationId, *, before: int | None, offset: int, limit: int
    ) -> Sequence[Compaction]:
        """The compactions of a conversation, newest first; those that end before a message's number."""
        ...

    async def undo(self, compaction: Compaction) -> bool:
        """Brings the messages of the newest compaction back; tells whether it was the newest."""
        ...


class ReceiptStore(Protocol):
    """What the models were sent."""

    async def add(self, turn: Turn, receipt: Receipt, texts: Mapping[str, str]) -> None:
        """Keeps a turn's receipt, once, with the texts that it names by their hash."""
        ...

    async def get(self, turn_id: TurnId) -> tuple[Receipt, Mapping[str, str]] | None:
        """A turn's receipt and its texts, whosever it is."""
        ...

    async def forget_texts(self) -> int:
        """Removes the texts that no receipt names any more."""
        ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """A turn that ran elsewhere, whole, and its log as it is kept."""

    user_message: Message
    ended: EndedTurn
    chunk: LogChunk


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """How a run of another engine stands: its turn, once it is complete."""

    run_id: str
    turn_id: TurnId | None


RecordRun = Callable[[Conversation, Sequence[ExecutionEvent]], Recorded | None]
"""Makes a turn of a run's events, or nothing while it is not complete; must be pure."""


class ExecutionStore(Protocol):
    """Runs of other engines."""

    async def add(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        events: Sequence[ExecutionEvent],
        record: RecordRun,
    ) -> Sequence[RecordedRun] | None:
        """Keeps events, each once; a run that they complete becomes a turn. None without the conversation."""
        ...


class BriefingStore(Protocol):
    """Briefings."""

    async def add(self, briefing: Briefing) -> None:
        """Keeps a new briefing."""
        ...

    async def page(
        self, user_id: UserId, *, unread: bool, before: str | None, limit: int, offset: int = 0
    ) -> Sequence[Briefing]:
        """The user's briefings, newest first."""
        ...

    async def get(self, user_id: UserId, briefing_id: BriefingId) -> Briefing | None:
        """One of the user's briefings."""
        ...

    async def mark_read(self, user_id: UserId, briefing_id: BriefingId, now: int) -> Briefing | None:
        """Marks one as read; the first time counts."""
        ...

    async def delete(self, user_id: UserId, briefing_id: BriefingId) -> bool:
        """Removes a briefing; its card stays."""
        ...

    async def add_card(self, briefing: Briefing, conversation: Conversation, message: Message) -> None:
        """Keeps a briefing's card and marks it read.

        StorageConflict when it has got a card, or the conversation has moved on, since they were read.
        """
        ...


class MemoryStore(Protocol):
    """What agents remember of users; each agent has memories of its own of each user."""

    async def add(self, user_id: UserId, agent_id: AgentId, memory: Memory, *, most: int) -> None:
        """Keeps a memory in place of one with the same content; beyond `most` the oldest are forgotten."""
        ...

    async def latest(self, user_id: UserId, agent_id: AgentId, *, limit: int) -> Sequence[Memory]:
        """What an agent remembers of a user, newest first."""
        ...


class UserStore(Protocol):
    """The users we know of."""

    async def delete(self, user_id: UserId, now: int) -> Sequence[ConversationId] | None:
        """Removes a user and all that is theirs; tells which conversations, or None where nobody was known.

        Their agents that others talk to are emptied and hidden.
        """
        ...

    def ids(self) -> AsyncIterator[UserId]:
        """Everyone whom we know of."""
        ...

    async def sweep(self, now: int) -> None:
        """Does the same with agents whose owner the host application has deleted from its own table."""
        ...


@dataclass(frozen=True, slots=True)
class Store:
    """Everything that is kept, one room a noun."""

    agents: AgentStore
    seen_tools: SeenTools
    conversations: ConversationStore
    messages: MessageStore
    turns: TurnStore
    log: TurnLogStore
    compactions: CompactionStore
    receipts: ReceiptStore
    briefings: BriefingStore
    executions: ExecutionStore
    memories: MemoryStore
    users: UserStore
    documents: DocumentStore
    chunks: ChunkIndex
    history: HistoryIndex
    payloads: PayloadStore
    exchange: ExchangeStore
    key: bytes
    """Random bytes of this database, the same on every node; they sign the cursors of lists."""
    ping: Callable[[], Awaitable[None]]
    """Raises StorageError when the database is away."""
    close: Callable[[], Awaitable[None]]
    """Finishes what was accepted and lets go of the database."""
