"""A turn's journal: what only the server needs to resume it.

It is stored with the log in the same commits. Entries have no numbers, and clients never see them.
"""

from typing import Any, Literal

from msgspec import Raw, Struct

from threadkeep.domain.money import Cost
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.gateway import TextBlock, ThinkingBlock
from threadkeep.wire.programs import (
    NOTHING,
    ClaimKind,
    Effect,
    ProgramError,
    StartConversation,
    StartUser,
)


class UseNoted(Struct, frozen=True, omit_defaults=True, tag="use"):
    """Where in its reply the model asked for a tool; the call's event has the rest."""

    id: str
    problem: str | None = None


class CallFinished(Struct, frozen=True, omit_defaults=True, tag="call"):
    """A model call is complete. The blocks are sent back with the results of its tools."""

    iteration: int
    stop_reason: str
    blocks: tuple[TextBlock | ThinkingBlock | UseNoted, ...] = ()


class OutputRefused(Struct, frozen=True, omit_defaults=True, tag="output_refused"):
    """A model's last reply isn't the JSON that was asked for: it is asked again, with the problem."""

    iteration: int
    problem: str
    blocks: tuple[TextBlock | ThinkingBlock, ...] = ()


class Dispatch(Struct, frozen=True, omit_defaults=True):
    """A call about to be passed to its tool, and the tool's effect if known."""

    id: str
    effect: ToolEffect = ToolEffect.WRITE
    attempt: int = 1


class Dispatched(Struct, frozen=True, tag="dispatched"):
    """Calls that their tools receive as soon as this is stored."""

    calls: tuple[Dispatch, ...]


class InputNoted(Struct, frozen=True, omit_defaults=True):
    """One question of a server to the user about a call, and the id of its request."""

    key: str
    request_id: str
    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None


class InputAwaited(Struct, frozen=True, tag="input"):
    """A call returned because its server needs this input, and then the call again with `state`."""

    id: str
    state: str
    requests: tuple[InputNoted, ...]


class ModelChosen(Struct, frozen=True, tag="model"):
    """From here on, this model replies: the one before it failed."""

    model: str


class BegunByAdmin(Struct, frozen=True, tag="begun_by_admin"):
    """The turn's user was an admin when it began."""


class CodeStarted(Struct, frozen=True, omit_defaults=True, tag="code"):
    """The turn's agent is a program; this code of it began the turn, and was told this of where it runs.

    A later run is told the same: users sign in with other groups meanwhile, and conversations get titles.
    """

    key: str
    version: int
    sdk: str = ""
    user: StartUser | None = None
    conversation: StartConversation | None = None


class CallPaid(Struct, frozen=True, omit_defaults=True, tag="paid"):
    """Which model call the usage event after this is of: what was reserved for it, and when it was made.

    Only where a turn can make several calls at once; elsewhere both are the turn's.
    """

    reservation_id: str
    at: int
    is_reported: bool = False
    """Whether the program made it itself, so that nothing was reserved."""
    reported_cost: Cost | None = None
    """What the program says that it cost."""
    call: str = ""
    """The step that made the call; empty of one that the program made itself."""
    agents: tuple[str, ...] = ()
    """Whom it is charged to if not to the turn's own agent: the one that made it, then those that run it."""


class StepBegun(Struct, frozen=True, omit_defaults=True, tag="step"):
    """A claim of a program is about to be carried out; its key identifies it when the code runs again."""

    key: str
    step_id: str
    """Its number in the turn, from 1, in order of begin; it stays the same when the step runs again."""
    name: str
    kind: ClaimKind
    effect: Effect = "write"
    attempt: int = 1
    title: str | None = None
    """Of a call; that of a step is in the event that shows it."""
    is_reserved: bool = False
    """Of a model call: whether a budget has set aside what it may cost, which is charged if it is cut off."""
    parent_id: str | None = None
    """The step that is the agent in which it happened, unless that is the turn's own."""
    agent_id: str | None = None
    """The agent that it runs, if that is what was claimed."""


StepStatus = Literal["ok", "error", "cancelled", "unknown"]


class StepEnded(Struct, frozen=True, omit_defaults=True, tag="step_end"):
    """What a claim came to: a value or where it is, or an error. The code receives results in this order."""

    key: str
    status: StepStatus
    at: int
    value: Raw = NOTHING
    ref: str | None = None
    """The payload that holds the value, if it is large."""
    error: ProgramError | None = None
    code: str | None = None
    """Of an error that isn't the program's own exception."""
    retryable: bool = False
    """Of such an error: whether the turn can be tried again if it ends with it."""
    duration_ms: int = 0
    size: int = 0
    is_progress: bool = False
    """Whether losing the node after it counts as a first loss: a model call, a write, an answer."""

    @property
    def is_given_up(self) -> bool:
        """Whether it came to nothing because the code no longer waited for it."""
        return self.status in ("cancelled", "unknown") and self.error is None


class StateSaved(Struct, frozen=True, omit_defaults=True, tag="save"):
    """A point to start from: results recorded before it need no longer be claimed."""

    scope: str
    at: int
    value: Raw = NOTHING
    ref: str | None = None
    state: Raw = NOTHING
    state_ref: str | None = None


class ReplayDiverged(Struct, frozen=True, tag="diverged"):
    """The code asked for something else than is recorded, for its author to read."""

    recorded: str
    asked: str


JournalEntry = (
    CallFinished
    | OutputRefused
    | Dispatched
    | InputAwaited
    | ModelChosen
    | BegunByAdmin
    | CodeStarted
    | CallPaid
    | StepBegun
    | StepEnded
    | StateSaved
    | ReplayDiverged
)
JOURNAL_ENTRIES = (
    CallFinished,
    OutputRefused,
    Dispatched,
    InputAwaited,
    ModelChosen,
    BegunByAdmin,
    CodeStarted,
    CallPaid,
    StepBegun,
    StepEnded,
    StateSaved,
    ReplayDiverged,
)
