"""What an export consists of: one record per line, and the conversations that they make."""

from collections.abc import Mapping
from dataclasses import dataclass

from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.document import Document
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import AgentId, ConversationId, UserId
from threadkeep.domain.memory import KeptMemory
from threadkeep.domain.message import Message
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import KeptTurn
from threadkeep.domain.user import check_instructions

EXPORT_VERSION = 2
"""Incremented when older versions couldn't read the files; then all formats since the first one are read."""
FIRST_EXPORT_VERSION = 2
"""The format of the first release."""


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


def payload_name(payload: Payload) -> str:
    """The path of a payload's content in an export."""
    return f"payloads/{payload.sha256}"


def document_name(document: Document) -> str:
    """The path of a document's file in an export."""
    return f"documents/{document.id}"
