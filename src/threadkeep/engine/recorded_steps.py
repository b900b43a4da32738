"""What an agent in code has done in a turn, step by step, for those who look into it; pure.

A turn's log and journal say it exactly. Once they are trimmed, the reply's parts say what its user saw.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import msgspec
from msgspec import Raw

from threadkeep.domain.events import ApprovalRequest, Done, StepChanged, TurnEvent
from threadkeep.domain.parts import Part, QuestionPart, StepPart, StepStatus, ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.code.nested import agents_above
from threadkeep.engine.journal import CodeStarted, JournalEntry, ReplayDiverged, StepBegun, StepEnded
from threadkeep.wire.claim_keys import AGENT_END
from threadkeep.wire.programs import Effect, ProgramError

StepKind = Literal["step", "model", "tool", "question", "agent"]
_KINDS: dict[str, StepKind] = {
    "step": "step",
    "model": "model",
    "tool": "tool",
    "question": "question",
    "agent": "agent",
}
"""Of what a program claims; the others are no steps: what it takes from the turn, and saved points."""
ASK = "ask"
"""The name of all questions: what they ask is their title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """One step. What the parts don't say is None."""

    number: int
    """Its place in the order of begin, from 1."""
    step_id: str
    name: str
    kind: StepKind
    status: StepStatus
    started_at: int
    title: str | None = None
    agent: str | None = None
    parent_id: str | None = None
    effect: Effect | None = None
    attempt: int | None = None
    duration_ms: int | None = None
    size: int | None = None
    """Of its result, in bytes."""
    value: Raw | None = None
    ref: str | None = None
    """Where the result is, if it is large."""
    error: ProgramError | None = None
    is_hidden: bool = False
    agents: tuple[str, ...] = ()
    """The other agents inside which it happened, by their ids, the innermost first."""


@dataclass(frozen=True, slots=True)
class RecordedSteps:
    """All steps of a turn, in order of begin."""

    code: CodeStarted | None
    """The code that began the turn, if that is known."""
    steps: Sequence[RecordedStep]
    diverged: ReplayDiverged | None = None
    """Where the code asked for something else than is recorded, if that ended the turn."""


@dataclass(slots=True)
class _Step:
    begun: StepBegun
    at: int
    """When it began, as far as the log says."""
    ended: StepEnded | None = None


@dataclass(slots=True)
class StepRecorder:
    """Collects a turn's entries, in order. `request_id` is that of the request about a subject."""

    request_id: Callable[[str], str]
    _code: CodeStarted | None = None
    _diverged: ReplayDiverged | None = None
    _steps: dict[str, _Step] = field(default_factory=dict[str, _Step])
    """By key."""
    _shown: dict[str, tuple[int, StepChanged]] = field(default_factory=dict[str, tuple[int, StepChanged]])
    """What the turn's followers saw of each step first, and when."""
    _asked: dict[str, str] = field(default_factory=dict[str, str])
    """The text of each request to the user."""
    _at: int = 0

    @property
    def is_of_program(self) -> bool:
        """Whether the turn is one of an agent in code, as far as its journal says."""
        return self._code is not None or bool(self._steps)

    def add(self, entry: TurnEvent | JournalEntry) -> None:
        """The next entry."""
        if isinstance(entry, StepBegun | StepEnded) or (
            isinstance(entry, TurnEvent) and isinstance(entry.body, Done)
        ):
            self._diverged = None  # it went on after all
        match entry:
            case TurnEvent(at=at, body=StepChanged() as body):
                self._at = at
                self._shown.setdefault(body.step_id, (at, body))
            case TurnEvent(at=at, body=ApprovalRequest(request_id, _, message)):
                self._at = at
                self._asked[request_id] = message
            case TurnEvent(at=at):
                self._at = at
            case CodeStarted():
                self._code = entry
            case ReplayDiverged():
                self._diverged = entry
            case StepBegun() if entry.kind in _KINDS:
                before = self._steps.get(entry.key)
                self._steps[entry.key] = _Step(entry, before.at if before else self._at)
            case StepEnded():
                self._end(entry)
            case _:
                pass

    def _end(self, ended: StepEnded) -> None:
        """The end of a step; an agent that one ran has begun then, and its own end comes later."""
        if (step := self._steps.get(ended.key)) is not None:
            if step.begun.kind != "agent" or ended.status != "ok":
                step.ended = ended
        elif (step := self._steps.get(ended.key.removesuffix(AGENT_END))) is not None:
            is_cancelled = ended.status == "ok" and bytes(ended.value) == b"null"
            step.ended = msgspec.structs.replace(ended, status="cancelled") if is_cancelled else ended

    def steps(self, *, is_over: bool) -> RecordedSteps:
        """The steps so far; `is_over` says that the turn has ended, and what has no end won't get one."""
        found = (self._step(number, it, is_over) for number, it in enumerate(self._steps.values(), 1))
        return RecordedSteps(self._code, list(found), self._diverged)

    def _step(self, number: int, step: _Step, is_over: bool) -> RecordedStep:
        begun = step.begun
        at, shown = self._shown.get(begun.step_id, (step.at, None))
        recorded = RecordedStep(
            number=number,
            step_id=begun.step_id,
            name=name_of(begun),
            kind=_KINDS[begun.kind],
            status=_without_end(begun, is_over),
            started_at=at,
            effect=begun.effect,
            attempt=begun.attempt,
            title=begun.title,
            agent=begun.title if begun.kind == "agent" else None,
            parent_id=begun.parent_id,
            agents=self._agents_above(begun.key),
            is_hidden=begun.kind == "step" and shown is None,
        )
        if begun.kind == "question":
            recorded = replace(recorded, title=self._asked.get(self.request_id(f"ask/{begun.key}")))
        if shown is not None:
            parent_id = shown.parent_id or begun.parent_id
            recorded = replace(recorded, title=shown.title, agent=shown.agent, parent_id=parent_id)
        return recorded if step.ended is None else _with_end(recorded, step.ended)

    def _agents_above(self, key: str) -> tuple[str, ...]:
        def known(scope: str) -> StepBegun | None:
            return step.begun if (step := self._steps.get(scope)) is not None else None

        return tuple(it.agent_id or "" for it in agents_above(key.rpartition("/")[0], known))


def name_of(begun: StepBegun) -> str:
    """A step's name for people."""
    return ASK if begun.kind == "question" else begun.name


def _without_end(begun: StepBegun, is_over: bool) -> StepStatus:
    if not is_over:
        return "running"
    return "unknown" if begun.kind == "step" and begun.effect == "write" else "cancelled"


def _with_end(step: RecordedStep, ended: StepEnded) -> RecordedStep:
    # Only the program's own steps are timed.
    took = ended.duration_ms if step.kind == "step" else max(ended.at - step.started_at, 0)
    return replace(
        step,
        status=ended.status,
        duration_ms=took,
        size=ended.size,
        value=ended.value if bytes(ended.value) else None,
        ref=ended.ref,
        error=ended.error,
    )


def steps_of_parts(parts: Iterable[Part]) -> RecordedSteps:
    """The steps, calls and questions of a reply."""
    counting = (part for part in parts if not part.superseded)
    found = (it for it in map(_of_part, counting) if it is not None)
    return RecordedSteps(None, [replace(it, number=number) for number, it in enumerate(found, 1)])


def _of_part(part: Part) -> RecordedStep | None:
    match part:
        case StepPart():
            return RecordedStep(
                number=0,
                step_id=part.step_id,
                name=part.name,
                kind="step" if part.agent is None else "agent",
                status=part.status,
                started_at=part.at,
                title=part.title,
                agent=part.agent,
                parent_id=part.parent_id,
                duration_ms=part.duration_ms,
            )
        case ToolCallPart(call=call):
            return replace(_of_call(call), parent_id=part.parent_id)
        case QuestionPart():
            decided = part.decision
            return RecordedStep(
                number=0,
                step_id=part.request_id,
                name=ASK,
                kind="question",
                status="running" if decided is None else "ok",
                started_at=part.at,
                title=part.message,
                duration_ms=None if decided is None else max(decided.at - part.at, 0),
            )
        case _:
            return None


def _of_call(call: ToolCall) -> RecordedStep:
    kept = {ToolCallStatus.RUNNING, ToolCallStatus.OK, ToolCallStatus.UNKNOWN}
    status = call.status.value if call.status in kept else "error"
    if call.status is ToolCallStatus.INTERRUPTED:
        status = "cancelled"
    return RecordedStep(
        number=0,
        step_id=call.tool_call_id,
        name=call.tool_name,
        kind="tool",
        status=cast("StepStatus", status),
        started_at=call.created_at,
        duration_ms=call.duration_ms,
    )
