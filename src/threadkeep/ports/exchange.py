"""Moving data: out of a database, into another, from one user to another."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.document import Document
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import AgentId, ConversationId, ImportId, MemoryId, PayloadId, TurnId, UserId
from threadkeep.domain.memory import Memory
from threadkeep.domain.message import Message
from threadkeep.domain.parts import BLANK_LINE
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import check_instructions

EXPORT_VERSION = 2
"""Incremented when older versions couldn't read the files; then all formats since the first one are read."""
FIRST_EXPORT_VERSION = 2
"""The format of the first release."""

CheckBytes = Callable[[int], None]
"""Raises LimitNotAllowed if a user may not have that many bytes."""

Owned = Literal["user", "agent", "conversation", "memory", "document", "message"]


@dataclass(frozen=True, slots=True)
class ExportHeader:
    """The first record of an export: whose it is, and its version."""

    version: int
    user_id: UserId
    exported_at: int


@dataclass(frozen=True, slots=True)
class OwnAgent:
    """An agent of the user, with the prompt components stored in files."""

    agent: Agent
    prompt_files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An agent that the user talks to without owning it: only its public fields."""

    id: AgentId
    name: str
    description: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn, and the id another engine recorded it under."""

    turn: Turn
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """A memory, and the agent that has it."""

    agent_id: AgentId
    memory: Memory


@dataclass(frozen=True, slots=True)
class OwnInstructions:
    """What the user tells every agent."""

    text: str

    def __post_init__(self) -> None:
        check_instructions(self.text)


@dataclass(frozen=True, slots=True)
class ConversationEnd:
    """The end of a conversation; without it, the conversation is incomplete."""

    id: ConversationId


@dataclass(frozen=True, slots=True)
class ExportEnd:
    """The last record of an export."""

    conversations: int


Record = (
    ExportHeader | OwnInstructions | OwnAgent | KnownAgent | Document | KeptMemory | Conversation | Payload
    | KeptTurn | Message | Compaction | Feedback | ConversationEnd | Briefing | ExportEnd
)  # fmt: skip
"""One line of an export."""


@dataclass(frozen=True, slots=True)
class WholeConversation:
    """A conversation with everything that belongs to it; messages in order, including overwritten ones."""

    conversation: Conversation
    turns: Sequence[KeptTurn]
    messages: Sequence[Message]
    compactions: Sequence[Compaction] = ()
    payloads: Sequence[Payload] = ()
    feedback: Sequence[Feedback] = ()


@dataclass(frozen=True, slots=True)
class AddedConversation:
    """What became of a conversation that was to be stored."""

    is_main: bool
    """Not if the user already has a main one with this agent."""
    text_bytes: int
    """The size of its texts and values, without files."""


@dataclass(frozen=True, slots=True)
class ForeignText:
    """A text; `iteration` counts the calls of the other product's model."""

    text: str
    iteration: int = 1


@dataclass(frozen=True, slots=True)
class ForeignThought:
    """Reasoning of the other product's model."""

    text: str
    iteration: int = 1


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A tool call of the other product's assistant."""

    name: str
    arguments: Mapping[str, object]
    result: object
    failed: bool = False
    iteration: int = 1


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file of a message: a separate one in the archive, or a text within the conversation."""

    file_name: str
    """Empty if only the archive has it."""
    instead: str
    """The text that replaces the file if it can't be stored; may be empty."""
    asset_id: str | None = None
    content: str | None = None
    iteration: int = 1


ForeignPart = ForeignText | ForeignThought | ForeignCall | ForeignFile


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """A message from another product, part by part; for the user's, text and files count."""

    id: str
    is_question: bool
    parts: Sequence[ForeignPart]
    at: int | None
    model: str | None = None
    follows: str | None = None
    """The previous message; several can follow the same one."""

    @property
    def text(self) -> str:
        """The message's text."""
        return BLANK_LINE.join(part.text for part in self.parts if isinstance(part, ForeignText))


@dataclass(frozen=True, slots=True)
class ForeignConversation:
    """A conversation from another product, with all its branches."""

    product: str
    id: str
    title: str | None
    created_at: int | None
    updated_at: int | None
    messages: Sequence[ForeignMessage]
    """Each comes after the one that it follows."""
    last: str | None
    """The last message of the branch that was shown."""
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class Flawed:
    """An item that can't be imported, and why."""

    what: str
    why: str


ImportItem = (
    OwnInstructions | OwnAgent | KnownAgent | Document | KeptMemory | Briefing | WholeConversation
    | ForeignConversation
)  # fmt: skip
"""An item of an imported file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """How much of a file is read; None: as much as there is."""

    conversation_bytes: int
    """Of one conversation; a larger one is flawed."""
    conversations: int | None = None
    unpacked_bytes: int | None = None
    """Of all conversations, and of all files beside them that are read."""
    directory_bytes: int | None = None
    """Of the list of files that a ZIP file has at its end."""


class ImportSource(Protocol):
    """An imported file, read in chunks."""

    @property
    def is_ours(self) -> bool:
        """Whether it is a Threadkeep export."""
        ...

    def stop(self) -> None:
        """Ends counting and reading soon, on whichever thread: what follows is as if it weren't there."""
        ...

    def count(self) -> int:
        """How many conversations it has, flawed ones too. UnsupportedImport if it has too many."""
        ...

    def found(self) -> Iterator[ImportItem | Flawed]:
        """Its items in order; conversations one at a time."""
        ...

    def open(self, name: str) -> BinaryIO | None:
        """An accompanying file, such as a payload's content; None if it is missing."""
        ...

    def read_asset(self, asset_id: str, *, most: int) -> tuple[str, bytes] | None:
        """Name and content of a file that another product's conversations name by its id; None if missing.

        InvalidRequest if it is damaged, or has more than `most` bytes.
        """
        ...


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved to another user.

    `former_mains` are conversations that are no longer main ones, because the user already has a main one
    with the same agent. `unsearchable` are those that must be indexed again.
    """

    conversations: int
    agents: int
    briefings: int
    memories: int
    former_mains: Sequence[ConversationId] = ()
    unsearchable: Sequence[ConversationId] = ()


class ExchangeStore(Protocol):
    """Operations that only exports, imports and moves need."""

    async def owner_of(self, kind: Owned, id_: str) -> str | None:
        """The owner of an item, deleted or not: a user, or a document's agent. None if it doesn't exist."""
        ...

    async def turns(
        self, conversation_id: ConversationId, *, after: TurnId | None, limit: int
    ) -> Sequence[KeptTurn]:
        """The turns of a conversation by id."""
        ...

    async def payloads(
        self, conversation_id: ConversationId, *, after: PayloadId | None, limit: int
    ) -> Sequence[Payload]:
        """The metadata of a conversation's values and files, by id."""
        ...

    async def memories(self, user_id: UserId, *, after: MemoryId | None, limit: int) -> Sequence[KeptMemory]:
        """An agent's memories of a user, by id."""
        ...

    async def text_bytes(self, user_id: UserId) -> int:
        """The size of all texts and values in the user's conversations, without files."""
        ...

    async def add(
        self,
        whole: WholeConversation,
        content: Callable[[Payload], bytes],
        check_bytes: CheckBytes | None = None,
        *,
        within: ImportId | None = None,
    ) -> AddedConversation:
        """Stores a whole conversation, all or nothing.

        `content` is called for each payload, in a thread, again on a retry. Before that, `check_bytes` is
        called with the size of the conversation's texts and values, and of all files and documents that the
        user would then have. StorageConflict if one of its ids is taken, or if the run `within` which it is
        imported has ended.
        """
        ...

    async def add_fork(self, whole: WholeConversation, source_id: ConversationId) -> None:
        """Stores a copy of part of another conversation, all or nothing; its turns don't count as usage."""
        ...

    async def reassign(self, giver: UserId, receiver: UserId, now: int, *, alone: bool) -> Moved:
        """Moves everything from one user to another, all or nothing; UserNotFound if there is nothing.

        TurnInProgress while a turn of the giver runs, unless we are known to be `alone` on this database.
        """
        ...
