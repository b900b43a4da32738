"""The state of a turn of an agent in code, from its log and journal; pure. The program runs from the top."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    EventBody,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    Text,
    Thought,
    TurnEvent,
    UserMessage,
    joined,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import NoticePart, Part, TextPart
from threadkeep.domain.payload import Lost
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall
from threadkeep.engine.call_state import CallState
from threadkeep.engine.code import codes
from threadkeep.engine.code.nested import agents_above
from threadkeep.engine.code.voices import PROGRAM
from threadkeep.engine.ending import tokens_written
from threadkeep.engine.journal import (
    CallPaid,
    CodeStarted,
    JournalEntry,
    ReplayDiverged,
    StateSaved,
    StepBegun,
    StepEnded,
)
from threadkeep.engine.replay import Replaying

_LINE = 200
"""How much a part takes besides its text, in characters."""
STEERING = "steering"
"""What a program takes that wants to hear what the user sent meanwhile."""


@dataclass(frozen=True, slots=True)
class UnpaidCall:
    """A model call that was cut off before anything said what it used, and for which nothing is reserved."""

    step_id: str
    number: int
    """Which of the turn's model calls it is, from 1: its receipt has this number."""
    at: int
    """About when it was made."""
    written_tokens: int
    """How much of its reply is in the log."""
    agents: tuple[str, ...] = ()
    """The agents in whose scope it was made, the innermost first, without the turn's own."""


@dataclass(frozen=True, slots=True)
class CodeState:
    """How far a turn of an agent in code has come; empty for a new turn."""

    code: CodeStarted | None = None
    """The code that began it."""
    recorded: tuple[StepEnded, ...] = ()
    """Results since the last saved point, in the order in which the program receives them."""
    optional: Mapping[str, StepEnded] = field(default_factory=dict[str, StepEnded])
    """Results from before it, by key."""
    begun: Mapping[str, StepBegun] = field(default_factory=dict[str, StepBegun])
    """What has begun, by key: its last attempt."""
    step_count: int = 0
    result_bytes: int = 0
    iteration: int = 0
    cut_off: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Iteration and first event of each step that spoke and has not ended."""
    shown: tuple[EventBody, ...] = ()
    """What the program itself has shown."""
    saved: Mapping[str, StateSaved] = field(default_factory=dict[str, StateSaved])
    """The last saved point of each scope."""
    steered: tuple[UserMessage, ...] = ()
    """What the user sent meanwhile and the turn took in, but no program has heard."""
    requests: frozenset[str] = frozenset()
    """All requests to the user so far."""
    open_requests: frozenset[str] = frozenset()
    """Those without a decision."""
    calls: Mapping[str, CallState] = field(default_factory=dict[str, CallState])
    open_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    unpaid: tuple[UnpaidCall, ...] = ()
    has_spoken: bool = False
    noticed: frozenset[Notice] = frozenset()
    ran_ms: int = 0
    shown_size: int = 0
    """How much has been shown so far."""
    speaks_itself: bool = False
    """Whether the program itself spoke last: what it says next goes on there."""
    has_diverged: bool = False
    """Whether an earlier run seemed to differ, and the next one is the last."""

    @property
    def unfinished(self) -> Mapping[str, StepBegun]:
        """What has begun and not ended, by key."""
        ended = {it.key for it in self.recorded} | self.optional.keys()
        return {key: begun for key, begun in self.begun.items() if key not in ended}

    def saved_state(self) -> StateSaved | None:
        """The newest saved point that has the turn's state."""
        found = [it for it in self.saved.values() if it.state_ref or bytes(it.state)]
        return max(found, key=lambda it: it.at, default=None)


def replay_code(
    entries: Iterable[TurnEvent | JournalEntry], payloads: Mapping[PayloadId, bytes | Lost]
) -> CodeState:
    """The state that a turn's entries describe; `payloads` are the values that its calls refer to."""
    replaying = ReplayingCode()
    for entry in entries:
        replaying.add(entry)
    return replaying.state(payloads)


def shown_size(body: EventBody) -> int:
    """How much of a reply something takes, in characters."""
    match body:
        case Text(text) | Thought(text):
            return len(text)
        case Notice(_, message):
            return _LINE + len(message)
        case Retrieval():
            return sum(_LINE + len(hit.text) for hit in body.hits)
        case _:
            return 0


class ReplayingCode:
    """Collects a turn's entries, in order."""

    def __init__(self) -> None:
        self._turn = Replaying()
        self._code: CodeStarted | None = None
        self._ended: dict[str, StepEnded] = {}
        self._optional: dict[str, StepEnded] = {}
        self._begun: dict[str, StepBegun] = {}
        self._saved: dict[str, StateSaved] = {}
        self._spoke: dict[str, tuple[int, int]] = {}
        self._speaker: str | None = None
        self._iteration = 0
        self._shown: list[EventBody] = []
        self._steered: list[UserMessage] = []
        self._requests: set[str] = set()
        self._undecided: set[str] = set()
        self._has_diverged = False
        self._shown_size = 0
        self._at = 0
        """When the last entry was made that says so."""
        self._unpaid: dict[str, int] = {}
        """When each model call was made that nobody has paid for, by its step."""

    def add(self, entry: TurnEvent | JournalEntry) -> None:
        """The next entry."""
        self._turn.add(entry)
        match entry:
            case TurnEvent():
                self._add_event(entry)
            case CodeStarted():
                self._code = entry
            case StepBegun():
                self._begun[entry.key] = entry
                if entry.kind == "model" and not entry.is_reserved:
                    self._unpaid[entry.step_id] = self._at
            case CallPaid(call=step_id):
                self._unpaid.pop(step_id, None)
            case StepEnded():
                self._at = entry.at
                self._ended.pop(entry.key, None)  # one that the program cancelled after all ends there
                self._ended[entry.key] = entry
                if (begun := self._begun.get(entry.key)) is not None:
                    self._spoke.pop(begun.step_id, None)
                    self._unpaid.pop(begun.step_id, None)
                    if begun.kind == "take" and begun.name == STEERING:
                        self._steered.clear()
            case StateSaved():
                self._save(entry)
            case ReplayDiverged():
                self._has_diverged = True
            case _:
                pass

    def _add_event(self, event: TurnEvent) -> None:
        self._at = event.at
        self._shown_size += shown_size(event.body)
        match event.body:
            case IterationStart(iteration, step_id):
                self._iteration, self._speaker = iteration, step_id
                if step_id:
                    self._spoke[step_id] = iteration, event.seq
            case IterationRestart(iteration, step_id=step_id):
                self._speaker = None
                if step_id:  # it may speak on in the same iteration
                    self._spoke[step_id] = iteration, event.seq
            case Text() | Thought() | Notice(code=codes.AGENT_NOTICE) | Retrieval(tool_call_id=None) as body:
                if self._speaker == PROGRAM:
                    self._show(body)
            case UserMessage() as body:
                self._steered.append(body)
            case ApprovalRequest(request_id):
                self._requests.add(request_id)
                self._undecided.add(request_id)
            case ApprovalResponse(request_id):
                self._undecided.discard(request_id)
            case _:
                pass

    def _show(self, body: EventBody) -> None:
        if self._shown and (both := joined(self._shown[-1], body)) is not None:
            self._shown[-1] = both
        else:
            self._shown.append(body)

    def _save(self, saved: StateSaved) -> None:
        """Results in its scope become optional."""
        self._saved[saved.scope] = saved
        inside = f"{saved.scope}/" if saved.scope else ""
        for key in [it for it in self._ended if it.startswith(inside)]:
            self._optional[key] = self._ended.pop(key)

    def state(self, payloads: Mapping[PayloadId, bytes | Lost]) -> CodeState:
        """The state that they describe; `payloads` are the values that its calls refer to."""
        folding = self._turn.folding
        all_ended: Sequence[StepEnded] = (*self._optional.values(), *self._ended.values())
        return CodeState(
            code=self._code,
            recorded=tuple(self._ended.values()),
            optional=self._optional,
            begun=self._begun,
            step_count=len({it.step_id for it in self._begun.values()}),
            result_bytes=sum(it.size for it in all_ended),
            iteration=self._iteration,
            cut_off=self._spoke,
            shown=tuple(self._shown),
            saved=self._saved,
            steered=tuple(self._steered),
            requests=frozenset(self._requests),
            open_requests=frozenset(self._undecided),
            calls=self._turn.calls(payloads),
            open_calls=tuple(folding.open_calls),
            usage=folding.usage,
            unpaid=tuple(self._unpaid_calls(folding.parts)),
            has_spoken=any(
                isinstance(part, TextPart) and not part.superseded and not is_blank(part.text)
                for part in folding.parts
            ),
            noticed=frozenset(
                Notice(part.code, part.message) for part in folding.parts if isinstance(part, NoticePart)
            ),
            ran_ms=self._turn.ran_ms,
            shown_size=self._shown_size,
            speaks_itself=self._speaker == PROGRAM,
            has_diverged=self._has_diverged,
        )

    def _unpaid_calls(self, parts: Sequence[Part]) -> Iterator[UnpaidCall]:
        models = {it.step_id: key for key, it in self._begun.items() if it.kind == "model"}
        for number, (step_id, key) in enumerate(models.items(), 1):
            if step_id in self._unpaid:
                iteration, _ = self._spoke.get(step_id, (0, 0))
                written = tokens_written(iteration, parts) if iteration else 0
                agents = tuple(it.agent_id or "" for it in agents_above(key, self._begun.get))
                yield UnpaidCall(step_id, number, self._unpaid[step_id], written, agents)
