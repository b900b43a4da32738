"""One run of an import: the file that a user uploaded, its progress, and how it ended.

What is imported stays, whatever happens to the run. Importing the same file again adds nothing twice.
"""

from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import AgentId, ConversationId, ImportId, UserId

MOST_LISTED = 50
"""How many problems and notes a run lists; it counts all."""
MOST_LINKS = 10
"""How many of the imported conversations a run names."""
SILENT_MS = 30_000
"""A run that has stored no progress for this long has lost its node: it was interrupted."""


class ImportStatus(Choice):
    """The state of a run."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    STOPPED = "STOPPED"
    """By its user."""
    FAILED = "FAILED"
    INTERRUPTED = "INTERRUPTED"
    """Its node ended, on purpose or not."""


class SkipReason(Choice):
    """Why something was left out, for programs; a person reads the sentence."""

    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"
    TOO_LARGE = "too_large"
    DUPLICATE = "duplicate"
    """Another item in the file has the same id."""
    NOT_A_CONVERSATION = "not_a_conversation"
    TOO_MANY_BRANCHES = "too_many_branches"
    """Only those beyond the limit."""
    OVER_QUOTA = "over_quota"


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Something that was left out, and why."""

    what: str
    why: str
    reason: SkipReason = SkipReason.UNREADABLE


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation that a run has added."""

    id: ConversationId
    title: str


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """Why a run failed."""

    code: str
    message: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProgress:
    """A run's progress. `found` is how many conversations the file has, once they are counted."""

    found: int | None = None
    done: int = 0
    imported: int = 0
    messages: int = 0
    files: int = 0
    already_there: int = 0
    empty: int = 0
    left_out: int = 0
    problems: tuple[ImportProblem, ...] = ()
    notes: tuple[str, ...] = ()
    conversations: tuple[ImportedConversation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRun:
    """One run of an import."""

    id: ImportId
    user_id: UserId
    agent_id: AgentId
    """The agent that conversations from other products go to."""
    file_name: str
    size: int
    status: ImportStatus
    progress: ImportProgress
    started_at: int
    ended_at: int | None = None
    failure: ImportFailure | None = None
