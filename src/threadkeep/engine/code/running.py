"""What everything that one run of a program claims is carried out with."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from threadkeep.clock import monotonic
from threadkeep.context.call_receipts import CallReceipts
from threadkeep.domain.events import EventBody, Text, UsageReported
from threadkeep.domain.file import FileKind
from threadkeep.domain.text import is_blank
from threadkeep.domain.turn import Turn
from threadkeep.engine.asking import ModelAsking
from threadkeep.engine.code.claims import Claims, OpenClaim
from threadkeep.engine.code.means import AgentMeans, OtherAgents
from threadkeep.engine.code.nested import NestedAgents
from threadkeep.engine.code.outlet import Outlet
from threadkeep.engine.code.outside_calls import OutsideCalls
from threadkeep.engine.code.programs import ProgramRun
from threadkeep.engine.code.replay import CodeState, shown_size
from threadkeep.engine.code.requests import SharedRequests
from threadkeep.engine.code.voices import PROGRAM, Voices, VoiceTaken
from threadkeep.engine.journal import CallPaid, JournalEntry, StepBegun, StepEnded, StepStatus
from threadkeep.engine.large_values import MOST_INLINE_BYTES, MOST_VALUE_BYTES
from threadkeep.engine.loop import LoadContents, Together, TurnLimits
from threadkeep.engine.outputs import CheckOutput
from threadkeep.engine.steering import Steering
from threadkeep.engine.stop import Stop
from threadkeep.engine.timer import TurnTimer
from threadkeep.engine.user_requests import UserRequests
from threadkeep.wire.programs import (
    NOTHING,
    RESULT_INVALID,
    RESULT_TOO_LARGE,
    ClaimKind,
    Effect,
    ProgramError,
    ToProgram,
    is_one_line,
)

log = logging.getLogger("threadkeep.engine")

MOST_STEPS = 1_000
MOST_UNSEEN_BYTES = 64 * 1024
"""How much of results the log holds between two events: without one, each entry rewrites its last row."""
MOST_SHOWN = 16 * 1024 * 1024
"""How many characters a program can show in a turn."""
MOST_ALL_RESULTS_BYTES = 256 * 1024 * 1024

_encode = msgspec.json.Encoder().encode


History = Callable[[int | None, bool, Sequence[FileKind] | None], Awaitable[Sequence[Mapping[str, Any]]]]
"""The messages before the turn, as clients have them or as a model receives them: the agent's, or one of the
program's own that takes these files as they are.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSurroundings(AgentMeans):
    """What a program's turn is run with: models, tools, limits, who pays, files, signals."""

    program: ProgramRun
    agents: OtherAgents
    """Those that it can run."""
    outside: OutsideCalls = field(default_factory=OutsideCalls)
    """The calls that the program's own SDK makes through us."""
    requests: UserRequests
    keep_value: Callable[[bytes], Awaitable[str]]
    """Stores a value that is too large for the log, until that is trimmed; returns its id."""
    value: Callable[[str], Awaitable[bytes | None]]
    """Such a value, as long as it is there."""
    load: LoadContents
    history: History
    limits: TurnLimits
    clock: Callable[[], int]
    stop: Stop = field(default_factory=Stop)
    steering: Steering
    check_output: CheckOutput
    """Checks the replies of model calls that ask for JSON of a schema."""
    most_steps: int = MOST_STEPS
    patience_s: float = 10.0
    """How long at least a program may claim nothing that is recorded before it counts as different."""
    pause_after_s: float = 1.0
    """How long a program waits for nothing but its user before its run ends."""


class StepLimit(Exception):
    """The program has taken more steps than a turn may have."""


class ShownTooMuch(Exception):
    """The program has shown more than a reply can hold."""


class Unrecordable(Exception):
    """A value that can't be recorded: what its claim comes to instead."""

    def __init__(self, error: ProgramError, code: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.code = code

    @staticmethod
    def too_large(message: str) -> "Unrecordable":
        """There is too much of it."""
        return Unrecordable(ProgramError("StepResultTooLarge", message), RESULT_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value as it is recorded: itself, or where it is."""

    value: Raw
    ref: str | None
    size: int


class Activity:
    """Whether anything goes on in a turn besides waiting for its user."""

    def __init__(self) -> None:
        self._busy = 0
        self._noted_at = monotonic()
        self._waiting = Counter[str]()
        self._listening: set[asyncio.Future[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether something runs."""
        return self._busy > 0

    @property
    def requests(self) -> frozenset[str]:
        """The requests that the turn waits for."""
        return frozenset(+self._waiting)

    @contextmanager
    def running(self) -> Generator[None]:
        """Something runs inside the block."""
        self._busy += 1
        self.note()
        try:
            yield
        finally:
            self._busy -= 1
            self.note()

    @contextmanager
    def waiting(self, requests: frozenset[str] = frozenset()) -> Generator[None]:
        """What runs waits inside the block, for the user if it names requests."""
        self._waiting.update(requests)
        self._busy -= 1
        self._wake()
        try:
            yield
        finally:
            self._waiting.subtract(requests)
            self._busy += 1
            self._wake()

    def note(self) -> None:
        """Something has happened; looking whether the user has decided doesn't count."""
        self._noted_at = monotonic()
        self._wake()

    async def changed(self) -> None:
        """Returns when something begins or ends, to run or to wait."""
        listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._listening.add(listening)
        try:
            await listening
        finally:
            self._listening.discard(listening)

    async def rest(self, seconds: float) -> None:
        """Returns when nothing has happened for so long, and only the user can continue the turn."""
        since = monotonic()
        while True:
            left = max(since, self._noted_at) + seconds - monotonic()
            if left > 0:  # it sleeps through what happens: that can be thousands of things a second
                await asyncio.sleep(left)
            elif not self._busy and self.requests:
                return
            else:
                await self.changed()
                since = monotonic()

    def _wake(self) -> None:
        for listening in self._listening:
            if not listening.done():
                listening.set_result(None)


class RunningCode:
    """One run of a program for a turn: what its claims share."""

    def __init__(self, turn: Turn, around: CodeSurroundings, state: CodeState, timer: TurnTimer) -> None:
        self.turn = turn
        self.around = around
        self.state = state
        self.timer = timer
        self.outlet = Outlet()
        self.claims = Claims(state.recorded, state.optional, began_at=turn.started_at)
        speaker = PROGRAM if state.speaks_itself else None
        ended = {it.key: it for it in (*state.optional.values(), *state.recorded)}
        self.agents = NestedAgents(state.begun, ended, around, around.agents)
        self.voices = Voices(self.outlet.emit, state.iteration, state.cut_off, speaker)
        self.requests = SharedRequests(around.requests)
        self.activity = Activity()
        self.step_count = state.step_count
        self._shown_size = state.shown_size
        self._unseen_bytes = 0
        self.has_spoken = state.has_spoken
        """Whether the reply has anything to read."""
        self._result_bytes = state.result_bytes
        self.steered = list(state.steered)
        """What the user sent meanwhile and the turn took in, but the program has not heard."""
        self.receipts = CallReceipts(turn.id, turn.conversation_id)
        self._model_calls = [it.step_id for it in state.begun.values() if it.kind == "model"]
        self._failures = {
            _failure_of(it): it for it in (*state.optional.values(), *state.recorded) if it.code
        }
        self.used = state.usage
        """What all model calls so far have used."""

    def send(self, message: ToProgram) -> None:
        """Passes a message to the program."""
        self.around.program.send(message)

    def say(self, voice: str, body: EventBody) -> None:
        """Shows what a step, a model call or the program itself says."""
        self._unseen_bytes = 0
        self.note_shown(shown_size(body))
        self.has_spoken = self.has_spoken or (isinstance(body, Text) and not is_blank(body.text))
        self.voices.say(voice, body)

    def note_shown(self, size: int) -> None:
        """Counts what is shown, in characters; raises ShownTooMuch."""
        self._shown_size += size
        if self._shown_size > MOST_SHOWN:
            raise ShownTooMuch

    async def stop_speaking(self, voice: str) -> None:
        """Passes the voice on, once all is shown that something has said whose end is recorded."""
        try:
            await self.voices.spoken(voice)
        except VoiceTaken as exc:
            log.warning("turn %s: %s", self.turn.id, exc)
        finally:
            self.voices.end(voice)

    def now(self) -> int:
        """The time in milliseconds."""
        return self.around.clock()

    async def check_boundary(self) -> None:
        """Nothing new begins in a turn that is to be handed off: Stopped, once what has begun has ended."""
        if self.around.limits.hands_off and self.around.stop.at_boundary:
            with self.activity.waiting():
                while self.activity.is_busy:
                    await self.activity.changed()
            self.around.stop.check_boundary()

    def begun(self, claim: OpenClaim, name: str, kind: ClaimKind, effect: Effect) -> StepBegun:
        """The entry for a claim that is carried out now, for the first time or again."""
        before = self.state.begun.get(claim.key)
        if before is not None:
            attempt = before.attempt + (kind in ("step", "model"))
            return replace(before, name=name, kind=kind, effect=effect, attempt=attempt)
        self.step_count += 1
        if self.step_count > self.around.most_steps:
            raise StepLimit
        return StepBegun(
            claim.key, str(self.step_count), name, kind, effect, parent_id=self.parent_of(claim.key)
        )

    def parent_of(self, key: str) -> str | None:
        """The step that is the agent in which something is claimed, unless that is the turn's own."""
        within = self.agents.within(key.rpartition("/")[0])
        return None if within is None else within.step_id

    def named(self, scope: str, asked: str) -> str:
        """What the user is asked, with the agent that wants to know it, unless that is the turn's own."""
        within = self.agents.within(scope)
        return asked if within is None else f"{within.title}: {asked}"

    def model_call_number(self, begun: StepBegun) -> int:
        """Which of the turn's model calls this one is, from 1; the same when it is made again."""
        if begun.step_id not in self._model_calls:
            self._model_calls.append(begun.step_id)
        return self._model_calls.index(begun.step_id) + 1

    async def stored(self, value: Raw) -> StoredValue:
        """Stores a value that is too large for the log; raises Unrecordable."""
        size = len(bytes(value))
        if size > MOST_VALUE_BYTES:
            raise Unrecordable.too_large(
                f"A step's result can have at most {MOST_VALUE_BYTES} bytes; this one has {size}."
            )
        if self._result_bytes + size > MOST_ALL_RESULTS_BYTES:
            raise Unrecordable.too_large(
                f"All results of a turn can have at most {MOST_ALL_RESULTS_BYTES} bytes."
            )
        if not _is_recordable(value):
            raise Unrecordable(
                ProgramError("StepResultInvalid", "A value that is recorded is JSON in UTF-8, in one line."),
                RESULT_INVALID,
            )
        self._result_bytes += size
        if size <= MOST_INLINE_BYTES and self._unseen_bytes + size <= MOST_UNSEEN_BYTES:
            self._unseen_bytes += size
            return StoredValue(value, None, size)
        return StoredValue(NOTHING, await self.around.keep_value(bytes(value)), size)

    async def ok(
        self, claim: OpenClaim, value: object, *, duration_ms: int = 0, is_progress: bool = False
    ) -> StepEnded:
        """The end of a claim that came to a value; one that is too large is an error of the claim."""
        try:
            stored = await self.stored(value if isinstance(value, Raw) else Raw(_encode(value)))
        except Unrecordable as exc:
            return self.failed(claim, exc.error, exc.code, duration_ms=duration_ms, is_progress=is_progress)
        return StepEnded(
            claim.key,
            "ok",
            self.now(),
            value=stored.value,
            ref=stored.ref,
            duration_ms=duration_ms,
            size=stored.size,
            is_progress=is_progress,
        )

    def failed(
        self,
        claim: OpenClaim,
        error: ProgramError | None,
        code: str | None = None,
        *,
        status: StepStatus = "error",
        duration_ms: int = 0,
        is_progress: bool = False,
    ) -> StepEnded:
        """The end of a claim that came to no value."""
        if error is not None and not _is_recordable(error.args):
            error = ProgramError(error.type, error.message)
        return StepEnded(
            claim.key,
            status,
            self.now(),
            error=error,
            code=code,
            duration_ms=duration_ms,
            is_progress=is_progress,
        )

    def reported(self, asking: ModelAsking) -> Sequence[EventBody | JournalEntry]:
        """What a model call has used, unless it is reported already, after which call that was."""
        found: list[EventBody | JournalEntry] = []
        for it in asking.report():
            self.used += it.usage
            if asking.made_call is not None:
                found.append(asking.made_call)
            found.append(it)
        return found

    def report(self, paid: CallPaid, reported: UsageReported) -> None:
        """Records what a model call has used that is no claim."""
        self.used += reported.usage
        self.outlet.emit(Together((paid, reported)))

    def end(self, ended: StepEnded, *before: EventBody | JournalEntry, is_urgent: bool = False) -> None:
        """Records how a claim ended, and what belongs to that; the program hears of it in this order."""
        is_urgent = is_urgent or ended.is_progress
        self.outlet.emit(Together((*before, ended), is_progress=ended.is_progress, is_urgent=is_urgent))
        if before:
            self._unseen_bytes = 0
        self.claims.end(ended)
        if ended.code:
            self._failures[_failure_of(ended)] = ended

    def failure(self, code: str, message: str) -> StepEnded | None:
        """How the claim failed that the program was told of in these words."""
        return self._failures.get((code, message))


def _failure_of(ended: StepEnded) -> tuple[str | None, str]:
    """What the program is told of a claim that failed with an error of ours."""
    return ended.code, ended.error.message if ended.error else ""


def _is_recordable(value: Raw) -> bool:
    """Whether a value that the program encoded fits in a line of the log."""
    try:
        bytes(value).decode()
    except UnicodeDecodeError:
        return False
    return is_one_line(value)
