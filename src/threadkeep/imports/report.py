"""The outcome of an import."""

from dataclasses import dataclass, field

from threadkeep.domain.briefing import Briefing
from threadkeep.domain.conversation import WholeConversation
from threadkeep.domain.document import Document
from threadkeep.domain.errors import LimitNotAllowed
from threadkeep.domain.import_run import ImportProblem, SkipReason
from threadkeep.domain.memory import KeptMemory
from threadkeep.exports.records import KnownAgent, OwnAgent, OwnInstructions
from threadkeep.imports.source import ForeignOutline, ImportItem


@dataclass(slots=True)
class ImportReport:
    """How many items were added, already existed, or were left out and why."""

    added: dict[str, int] = field(default_factory=dict[str, int])
    done: int = 0
    """How many conversations, flawed ones too."""
    there: int = 0
    empty: int = 0
    notes: list[str] = field(default_factory=list[str])
    left_out: list[ImportProblem] = field(default_factory=list[ImportProblem])
    limit: LimitNotAllowed | None = None
    """The limit that left something out."""

    def count(self, kind: str, number: int = 1) -> None:
        """Counts added items."""
        self.added[kind] = self.added.get(kind, 0) + number

    def leave_out(
        self, found: ImportItem | ImportProblem, why: str, reason: SkipReason = SkipReason.UNREADABLE
    ) -> None:
        """Records an item that couldn't be imported."""
        self.left_out.append(ImportProblem(_name(found), why, reason))


def _name(found: ImportItem | ImportProblem) -> str:
    match found:
        case WholeConversation(conversation):
            return f"conversation {conversation.title or conversation.id!r}"
        case ForeignOutline():
            return f"conversation {found.name}"
        case OwnAgent(agent):
            return f"agent {agent.name!r}"
        case KnownAgent():
            return f"agent {found.name!r}"
        case OwnInstructions():
            return "the user's instructions"
        case Document():
            return f"document {found.file_name!r}"
        case KeptMemory():
            return f"memory {found.memory.id!r}"
        case Briefing():
            return f"briefing {found.title!r}"
        case ImportProblem():
            return found.what
