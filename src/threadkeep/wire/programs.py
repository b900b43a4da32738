"""What a program that is an agent and the server say to each other about one turn, wherever the program runs.

The program claims what it wants done (a step, a model call, an answer); the server decides what becomes of
each claim: run now, already recorded, held, refused. All order, rules and records are the server's. Every
claim has an `id`, a number that the program gives it, and is answered under that number in `re`.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from threadkeep.domain.file import FileKind


class ProgramLost(Exception):
    """The process or connection that ran a program is gone."""


Effect = Literal["read", "idempotent", "write"]
StepAccess = Literal["allow", "ask"]
ClaimKind = Literal["step", "tool", "model", "question", "take", "save", "agent", "agent_end"]
"""What a claim asks for, as it is recorded."""


NOTHING = Raw(b"")
"""No value; `null` is one."""


def is_one_line(encoded: bytes | Raw) -> bool:
    """Whether JSON has no line breaks and no tabs between its tokens: what is recorded is stored in lines."""
    content = bytes(encoded)
    return not any(it in content for it in (b"\n", b"\r", b"\t"))


def bare_name(step: str) -> str:
    """A step's name for people: without the function that its function is in."""
    return step.rpartition("<locals>.")[2]


class ProgramError(Struct, frozen=True, omit_defaults=True):
    """An exception of the program, as it is recorded: without a traceback, which may differ next time."""

    type: str
    """Its class as `module.qualname`."""
    message: str
    args: Raw = NOTHING
    """The arguments that it was made with as JSON, if they are JSON."""


class ProgramTool(Struct, frozen=True, omit_defaults=True):
    """A function of the program that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect = "write"
    access: StepAccess = "allow"


class AgentDeclared(Struct, frozen=True, omit_defaults=True):
    """An agent as its code declares it. What it leaves out, an admin may set."""

    key: str
    """Identifies the agent for ever."""
    version: int = 1
    name: str = ""
    """Its key if the code gives none."""
    description: str = ""
    visibility: Literal["private", "public"] = "private"
    """Only at first: an admin may change it."""
    model: str | None = None
    tools: tuple[ProgramTool, ...] = ()
    """Functions of the program that models may call."""
    timeout_s: float | None = None
    max_steps: int | None = None
    starters: tuple[str, ...] = ()
    icon: str | None = None


# From the program


class StepClaim(Struct, frozen=True, omit_defaults=True, tag="step"):
    """A function to run once, whatever crashes. One that is a tool or asks is shown as a call of a tool."""

    id: int
    name: str
    hash: str
    """Of its arguments, which are not stored, or of the key that the program gives it."""
    scope: str = ""
    effect: Effect = "write"
    access: StepAccess = "allow"
    is_tool: bool = False
    """Whether a model asked for it."""
    streams: bool = False
    """Whether it says what it yields."""
    title: str | None = None
    hidden: bool = False
    arguments: dict[str, Any] | None = None
    """Only of one that is shown as a call."""
    call_id: str | None = None
    """The model's id of the call, if a model asked for it."""
    schema: dict[str, Any] | None = None
    """Of the arguments, which its user may change."""
    timeout_s: float | None = None
    asks_if_unknown: bool = False
    """Whether its user decides what happens if nobody knows whether it took effect."""
    keeps_output: bool = False
    """Whether what a write has said stays in the reply if it was cut off and is not run again."""


class StepDone(Struct, frozen=True, omit_defaults=True, tag="step_end"):
    """The function returned, failed, or was cancelled by the program itself: then it has neither."""

    re: int
    value: Raw = NOTHING
    shows: Raw = NOTHING
    """What clients and models read of a tool's value, where that is for the program alone."""
    error: ProgramError | None = None
    shown: bool = False
    """Whether the error's message is meant for the user."""
    duration_ms: int = 0


class StepRepeats(Struct, frozen=True, tag="step_repeats"):
    """A step that has failed runs again, as its program wants it: what it has shown no longer counts."""

    re: int


class Settled(Struct, frozen=True, tag="settled"):
    """The program has reacted to a delivery; the next one may come."""

    re: int


class TextItem(Struct, frozen=True, tag="text"):
    """A piece of the reply."""

    text: str


class ThoughtItem(Struct, frozen=True, tag="thought"):
    """A piece of reasoning."""

    text: str


class NoticeItem(Struct, frozen=True, tag="notice"):
    """A notice to the user."""

    text: str


class HitItem(Struct, frozen=True, omit_defaults=True):
    """A passage that the reply is based on."""

    text: str
    source: str = ""
    document_id: str = ""
    chunk_id: str = ""
    page: int | None = None
    score: float = 0.0


class HitsItem(Struct, frozen=True, omit_defaults=True, tag="hits"):
    """Passages that the reply cites."""

    hits: tuple[HitItem, ...]
    query: str = ""


class FileItem(Struct, frozen=True, tag="file"):
    """A file that the turn produced."""

    name: str
    media_type: str
    content: bytes


class ProgressItem(Struct, frozen=True, omit_defaults=True, tag="progress"):
    """How far a step shown as a call has come."""

    progress: float
    total: float | None = None
    message: str | None = None


class RemoteCallItem(Struct, frozen=True, tag="remote_call"):
    """A call of a tool that another server makes itself: only shown."""

    call_id: str
    """The same whenever this call is shown again."""
    name: str
    arguments: dict[str, Any]


class RemoteResultItem(Struct, frozen=True, omit_defaults=True, tag="remote_result"):
    """What such a call came to."""

    call_id: str
    result: Any = None
    error: str | None = None


class RemoteStepItem(Struct, frozen=True, omit_defaults=True, tag="remote_step"):
    """A step that another server takes: once when it begins, once when it ends."""

    number: int
    """Which of the run's steps it is."""
    name: str
    status: Literal["running", "ok", "error"]
    title: str | None = None


RemoteItem = RemoteCallItem | RemoteResultItem | RemoteStepItem
OutputItem = TextItem | ThoughtItem | NoticeItem | HitsItem | FileItem | ProgressItem | RemoteItem

MOST_UNACKNOWLEDGED_BYTES = 256 * 1024
"""A program that has sent so much output waits until the server acknowledges some."""


def output_size(item: OutputItem) -> int:
    """How many bytes of an item the server acknowledges when it is stored or dropped."""
    match item:
        case TextItem(text) | ThoughtItem(text) | NoticeItem(text):
            return len(text.encode())
        case HitsItem(hits):
            return sum(len(hit.text.encode()) for hit in hits)
        case FileItem(content=content):
            return len(content)
        case ProgressItem() | RemoteCallItem() | RemoteResultItem() | RemoteStepItem():
            return 0


class Output(Struct, frozen=True, omit_defaults=True, tag="output"):
    """Something to show; `step` is the claim that it belongs to, None for the function itself."""

    items: tuple[OutputItem, ...]
    step: int | None = None


class ModelMessageItem(Struct, frozen=True, omit_defaults=True):
    """A message for a model: a text, or blocks of `text`, `tool_use` and `tool_result`."""

    role: Literal["user", "assistant"]
    content: str | list[dict[str, Any]]


class ModelClaim(Struct, frozen=True, omit_defaults=True, tag="model"):
    """One model call."""

    id: int
    messages: tuple[ModelMessageItem, ...]
    scope: str = ""
    system: str = ""
    model: str | None = None
    tools: tuple[ProgramTool, ...] = ()
    server_tools: bool = False
    """Whether the tools of the agent's servers, and those of the client, are offered, too."""
    temperature: float | None = None
    max_tokens: int | None = None
    output: dict[str, Any] | None = None
    """The JSON schema of the reply, if it is to be JSON."""
    show: bool = True


class CallClaim(Struct, frozen=True, omit_defaults=True, tag="call"):
    """A call of a tool of the agent's servers, or of the client."""

    id: int
    tool: str
    """As a model knows it."""
    arguments: dict[str, Any]
    scope: str = ""
    call_id: str | None = None


class AskClaim(Struct, frozen=True, omit_defaults=True, tag="ask"):
    """A question to the user; `schema` describes the answer, which is `null` if they decline."""

    id: int
    message: str
    scope: str = ""
    schema: dict[str, Any] | None = None


class TakeClaim(Struct, frozen=True, omit_defaults=True, tag="take"):
    """Something that only the server knows, as it was when it was first taken.

    The value of `steering` is a list of texts; of `tools`, of `ServerTool`; of `agents`, of `OfferedAgent`;
    of `history`, of messages as clients have them, before the turn's own; or `as_context`, of
    `ModelMessageItem` as a model would receive them, whose last one is the turn's own message with its files.
    """

    id: int
    what: Literal["steering", "history", "tools", "agents"]
    scope: str = ""
    limit: int | None = None
    as_context: bool = False
    files: tuple[FileKind, ...] | None = None
    """Of `as_context`, for a model of the program's own: which files it takes as they are."""


class ContentClaim(Struct, frozen=True, tag="content"):
    """The bytes of a file of the conversation, in base64; `null` if they are gone.

    They never change, so they aren't recorded: a run that asks again gets the same.
    """

    id: int
    content_id: str


Tokens = Annotated[int, Meta(ge=0, le=1_000_000_000_000)]
"""How many tokens a program says that a call had."""
ReportedModel = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""What a program calls the model that it used."""


class UsageClaim(Struct, frozen=True, omit_defaults=True, tag="usage"):
    """A model call that the program made with an SDK of its own.

    With a `step`, it belongs to that step and is no claim: its id is 0, and nobody answers it. A step that
    has ended isn't run again, so it isn't reported again.
    """

    id: int
    model: ReportedModel
    input_tokens: Tokens
    output_tokens: Tokens
    cache_read_tokens: Tokens = 0
    cost: str | None = None
    scope: str = ""
    step: int | None = None


class SaveClaim(Struct, frozen=True, omit_defaults=True, tag="save"):
    """A point to start from: what was recorded before it need no longer be claimed."""

    id: int
    value: Raw
    scope: str = ""
    state: Raw = NOTHING
    is_read: bool = False
    """Whether the function has looked at the scope's saved point, and so may start from it."""


class AgentClaim(Struct, frozen=True, omit_defaults=True, tag="agent"):
    """Another agent is to run inside this turn; the value is an `AgentGranted`."""

    id: int
    agent: str
    """Its key if it is in code, else its id."""
    text: str
    """What it is asked."""
    scope: str = ""
    is_handoff: bool = False
    """Whether what it says is the turn's reply."""


class AgentDone(Struct, frozen=True, omit_defaults=True, tag="agent_end"):
    """Such an agent has replied or failed; with neither, the code has cancelled it. The value is its reply,
    a `ModelReply`.
    """

    id: int
    scope: str
    """The one that was granted."""
    value: Raw = NOTHING
    error: ProgramError | None = None


class End(Struct, frozen=True, omit_defaults=True, tag="end"):
    """The function has returned, raised, or been cancelled."""

    status: Literal["completed", "failed", "cancelled"]
    text: str | None = None
    error: ProgramError | None = None
    code: str | None = None
    """The code of the turn's error, where it isn't the program's own exception."""
    shown: bool = False
    """Whether the error's message is meant for the user."""
    retryable: bool = False
    """Of such an error: whether the turn can be tried again."""
    state: Raw = NOTHING
    """The new state, if it was changed."""
    output: Raw = NOTHING
    """The reply as a value, where it is structured."""


FromProgram = (
    StepClaim
    | StepDone
    | StepRepeats
    | Settled
    | Output
    | ModelClaim
    | CallClaim
    | AskClaim
    | TakeClaim
    | ContentClaim
    | UsageClaim
    | SaveClaim
    | AgentClaim
    | AgentDone
    | End
)
Claim = (
    StepClaim
    | ModelClaim
    | CallClaim
    | AskClaim
    | TakeClaim
    | ContentClaim
    | UsageClaim
    | SaveClaim
    | AgentClaim
    | AgentDone
)


MOST_OPEN_CLAIMS = 100
"""More are refused. Programs wait until one of theirs is answered."""


# From the server


class StartUser(Struct, frozen=True, omit_defaults=True):
    """Whose turn it is."""

    id: str
    role: str = "user"
    name: str | None = None
    groups: tuple[str, ...] = ()


class StartConversation(Struct, frozen=True, omit_defaults=True):
    """Where the turn runs."""

    id: str
    title: str
    metadata: dict[str, Any] = {}


class StartFile(Struct, frozen=True, omit_defaults=True):
    """A file of the message."""

    id: str
    name: str
    media_type: str
    size: int = 0


class StartMessage(Struct, frozen=True, omit_defaults=True):
    """The message that began the turn."""

    id: str
    text: str
    files: tuple[StartFile, ...] = ()


class Start(Struct, frozen=True, omit_defaults=True, tag="start"):
    """A turn to run from the top of the function, for the first time or again."""

    turn: str
    run: int
    agent: str
    version: int
    """Of the code that began the turn."""
    user: StartUser
    conversation: StartConversation
    message: StartMessage
    at: int
    """When the turn began, in milliseconds."""
    attempt: int = 0
    is_resumed: bool = False
    model: str | None = None
    client_tools: tuple[ProgramTool, ...] = ()
    state: Raw = NOTHING
    saved: dict[str, Raw] = {}
    """The last saved value of each scope."""
    is_check: bool = False
    """Whether the turn has ended, and the function only shows that it does the same again."""
    token: str = ""
    """Opens the server's models to this run; none if the server has no secret key."""
    url: str = ""
    """Where this process reaches the server's API; none if nobody knows."""
    settings: dict[str, Any] = {}
    """What a program that is built in needs to know of its agent, as that is now."""

    def __repr__(self) -> str:
        """Without the token, or anything of the user's or the agent's."""
        return f"Start(turn={self.turn!r}, run={self.run})"


class Run(Struct, frozen=True, omit_defaults=True, tag="run"):
    """Run this step now; `arguments` as its user changed them, if they did."""

    re: int
    idempotency_key: str
    attempt: int = 1
    arguments: dict[str, Any] | None = None


class Result(Struct, frozen=True, omit_defaults=True, tag="result"):
    """What a claim came to, as it is recorded. After it, the server waits for `settled` if it says so."""

    re: int
    value: Raw
    at: int = 0
    settle: bool = True


class ClaimFailed(Struct, frozen=True, omit_defaults=True, tag="failed"):
    """A claim failed: with the program's own exception, or with an error of ours, which has a `code`."""

    re: int
    error: ProgramError
    code: str | None = None
    at: int = 0
    settle: bool = True


CancelReason = Literal["abort", "timeout", "pause", "hand_off", "lost", "diverged", "failed"]


class Cancel(Struct, frozen=True, tag="cancel"):
    """The run ends here; nothing it still does counts."""

    reason: CancelReason


class Ack(Struct, frozen=True, tag="ack"):
    """So many more bytes of output are stored or dropped, as `output_size` counts them."""

    bytes: int


NOT_RUNNING = "NOT_RUNNING"
"""The code of `Refused`: a step of this number doesn't run, or runs no more."""


class Refused(Struct, frozen=True, omit_defaults=True, tag="refused"):
    """A message that the server doesn't accept; also anything of a run that is over."""

    code: str
    message: str
    re: int | None = None


ToProgram = Start | Run | Result | ClaimFailed | Cancel | Ack | Refused

AMBIGUOUS = "AMBIGUOUS"
"""The code of `Refused` for a claim that a run which starts from a saved point could take for another."""

# The codes of `ClaimFailed`

OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
DENIED = "DENIED"
BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
MODEL_FAILED = "MODEL_FAILED"
OUTPUT_INVALID = "OUTPUT_INVALID"
TOOL_FAILED = "TOOL_FAILED"
AGENT_UNUSABLE = "AGENT_UNUSABLE"
AGENT_ABSENT = "AGENT_ABSENT"
"""Of a run that needs another agent in code, which this process doesn't have."""
RESULT_INVALID = "STEP_RESULT_INVALID"
RESULT_TOO_LARGE = "STEP_RESULT_TOO_LARGE"
STEP_LIMIT = "STEP_LIMIT"


class ModelReply(Struct, frozen=True, omit_defaults=True):
    """The value of a model call."""

    text: str
    tool_calls: tuple["ModelToolCall", ...] = ()
    model: str = ""
    stop_reason: str = "end_turn"
    input_tokens: int = 0
    output_tokens: int = 0
    blocks: tuple[dict[str, Any], ...] = ()
    """The reply as it goes back to a model: texts, signed thoughts and tool uses, in order."""
    output: Any = None
    """The reply as a value, where not the code but an agent's owner or another agent made it one."""


class ModelToolCall(Struct, frozen=True):
    """A tool that the model asks for."""

    id: str
    name: str
    arguments: dict[str, Any]


class CallReturned(Struct, frozen=True, omit_defaults=True):
    """The value of a tool's call: what it returned, and the text that a model reads of that."""

    status: Literal["ok", "error", "timeout", "denied", "interrupted", "unknown"]
    text: str
    result: Any = None
    error: str | None = None


class ServerTool(Struct, frozen=True, omit_defaults=True):
    """A tool that `turn.tools()` lists."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_run_by_client: bool = False


class AgentGranted(Struct, frozen=True, omit_defaults=True):
    """The value of an agent's claim: what is to run, and the scope of what it does."""

    scope: str
    name: str
    """Its name for people."""
    key: str | None = None
    """Of an agent in code; all others run as our loop does."""
    version: int = 1
    """Of the code that began."""
    most_rounds: int = 0
    """How often an agent without code asks its model at most; 0 means as often as any."""


class OfferedAgent(Struct, frozen=True):
    """An agent that a model may call."""

    id: str
    name: str
    description: str
