"""Runs a turn of an agent in code: serves its program from any state of the turn.

The program claims what it wants done; everything that becomes of that goes through one outlet into the
turn's log, and back to the program only from there.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from typing import Any

import msgspec

from threadkeep.domain.approval import ApprovalAction
from threadkeep.domain.errors import (
    BudgetExceeded,
    DatabaseAway,
    GenerationFailed,
    OutputInvalid,
    ThreadkeepError,
)
from threadkeep.domain.events import (
    ApprovalResponse,
    EventBody,
    Failed,
    Notice,
    Terminal,
    Text,
    ToolProgress,
    TurnResumed,
)
from threadkeep.domain.text import storable
from threadkeep.domain.turn import Turn
from threadkeep.engine.batch import Paused
from threadkeep.engine.code import codes
from threadkeep.engine.code.agents import AgentCalls
from threadkeep.engine.code.attachments import Attachments
from threadkeep.engine.code.claims import Diverged, OpenClaim
from threadkeep.engine.code.deliveries import Deliveries
from threadkeep.engine.code.model_calls import ModelCalls
from threadkeep.engine.code.outlet import Alone
from threadkeep.engine.code.places import ambiguous, place_of
from threadkeep.engine.code.questions import ask, give_up_question
from threadkeep.engine.code.remote_shown import RemoteShown
from threadkeep.engine.code.replay import CodeState
from threadkeep.engine.code.running import CodeSurroundings, RunningCode, ShownTooMuch, StepLimit
from threadkeep.engine.code.shown import MOST_NOTICE_CHARACTERS, ShownOutput, body_of
from threadkeep.engine.code.steps import Steps
from threadkeep.engine.code.takes import Takes
from threadkeep.engine.code.tool_calls import ToolCalls
from threadkeep.engine.code.voices import PROGRAM
from threadkeep.engine.ending import ABANDONED, completed, failed, last_events, stopped
from threadkeep.engine.journal import CodeStarted, ReplayDiverged, StepBegun
from threadkeep.engine.loop import HandOff, Pause, StateLeft, TurnStep
from threadkeep.engine.stop import Stopped, StopReason, TurnLost
from threadkeep.engine.timer import TurnTimer
from threadkeep.wire.programs import (
    AGENT_ABSENT,
    AGENT_UNUSABLE,
    BUDGET_EXCEEDED,
    MODEL_FAILED,
    MOST_OPEN_CLAIMS,
    NOT_RUNNING,
    OUTCOME_UNKNOWN,
    OUTPUT_INVALID,
    Ack,
    AgentClaim,
    AgentDone,
    AskClaim,
    CallClaim,
    Cancel,
    CancelReason,
    Claim,
    ContentClaim,
    End,
    FileItem,
    ModelClaim,
    Output,
    OutputItem,
    ProgramLost,
    ProgressItem,
    Refused,
    RemoteCallItem,
    RemoteResultItem,
    RemoteStepItem,
    SaveClaim,
    Settled,
    StepClaim,
    StepDone,
    StepRepeats,
    TakeClaim,
    UsageClaim,
    output_size,
)

log = logging.getLogger("threadkeep.engine")

CANCEL_GRACE_S = 2.0
MOST_STANDSTILL_S = 120.0
ACK_EVERY_BYTES = 64 * 1024
SHOWN_AT_ONCE = 50

AGENT_FAILED = "The agent's code failed."
DIVERGED = "The agent's code has changed since this reply began, so the reply can't continue."
TOO_MUCH = "The agent's code said more than a reply can hold."
DIFFERED = "The agent's code, run again, said something else than before."


class Ended(Exception):
    """The program has ended, and the turn with it."""

    def __init__(self, end: Terminal, state: bytes) -> None:
        super().__init__("the program has ended")
        self.end = end
        self.state = state


async def run_code(
    turn: Turn,
    around: CodeSurroundings,
    *,
    state: CodeState,
    opening: Sequence[CodeStarted | Notice | TurnResumed] = (),
) -> AsyncGenerator[TurnStep]:
    """Runs a program for a turn from the top of its function, step by step.

    It ends in exactly one Done or Failed, unless it pauses or is handed off.
    """
    limits, stop = around.limits, around.stop
    timer = TurnTimer(limits.generation_timeout_s, state.ran_ms / 1000, lambda: stop.request("timeout"))
    running = RunningCode(turn, around, state, timer)
    serving = _Serving(running)
    around.outside.open(running.report)
    steps = serving.steps()
    end: Terminal | Pause | HandOff
    try:
        try:
            for event in opening:
                if isinstance(event, TurnResumed):
                    serving.log_resumption()
                yield event
            while True:
                yield await stop.guard(steps.__anext__)
        except Ended as exc:
            end, kept = exc.end, exc.state
        except ProgramLost:
            end, kept = HandOff(), b""
        except TurnLost:
            raise
        except Exception as exc:  # `end_after` logs what is unexpected
            if isinstance(exc, DatabaseAway) and limits.hands_off:
                raise  # as if this node had died: the program continues from its log
            await steps.aclose()  # nothing else hears what the program says last
            end, reason = serving.end_after(exc)
            kept = await serving.leave(reason)
            if isinstance(exc, Diverged):
                yield ReplayDiverged(exc.recorded, exc.asked)
    finally:
        timer.stop()
        around.outside.close()
        await steps.aclose()
        await around.program.close()
    for step in serving.left_over():
        yield step
    if isinstance(end, Pause | HandOff):
        yield end
        return
    if kept:
        yield StateLeft(kept)
    if stop.reason == "expire":
        for request_id in serving.open_requests:
            yield ApprovalResponse(request_id, ApprovalAction.EXPIRE)
    for event in serving.last_events(end):
        yield event


_OF_MODELS = (MODEL_FAILED, BUDGET_EXCEEDED, OUTPUT_INVALID)
"""Errors of model calls: a turn whose program does not catch one ends with what is recorded of it."""

_OF_FOREIGN_MODELS = (GenerationFailed.code, BudgetExceeded.code, OutputInvalid.code, ABANDONED.code)
"""Errors of models, or of other servers, that the program called itself, without a claim."""

_REASONS: dict[StopReason, CancelReason] = {
    "abort": "abort",
    "expire": "abort",
    "timeout": "timeout",
    "interrupt": "hand_off",
    "hand_off": "hand_off",
}


_CARRIED_OUT = ("step", "model", "tool")


def _is_call(claim: StepClaim | CallClaim) -> bool:
    """Whether it is shown as a call of a tool."""
    return isinstance(claim, CallClaim) or claim.is_tool or claim.access == "ask"


def _told(begun: StepBegun) -> str:
    """A claim for the log."""
    told = f'"{begun.name}" (step {begun.step_id})'
    return f"{told}, a write" if begun.kind == "step" and begun.effect == "write" else told


class _Serving:
    """Serves one run of a program."""

    def __init__(self, code: RunningCode) -> None:
        self._code = code
        self._program = code.around.program
        self._steps = Steps(code)
        self._tools = ToolCalls(code, self._steps)
        self._models = ModelCalls(code, self._tools)
        self._takes = Takes(code, self._tools)
        self._agents = AgentCalls(code)
        self._attachments = Attachments(code)
        self._remote = RemoteShown(code, self._tools)
        self._shown = ShownOutput(code.state.shown)
        self._claimed: dict[int, tuple[OpenClaim, Claim]] = {}
        self._working: dict[int, asyncio.Task[None]] = {}
        self._deliveries = Deliveries(code.claims, code.send, code.around.value, self._received)
        self._tasks: set[asyncio.Task[None]] = set()
        self._unacknowledged = 0
        self._has_noticed = any(it.code == codes.OUTPUT_DIFFERED for it in code.state.noticed)

    async def steps(self) -> AsyncGenerator[TurnStep]:
        """What the turn does, until the program has ended."""
        code = self._code
        for work in (
            self._read(),
            self._deliveries.run(),
            self._watch(),
            self._pause(),
            code.requests.listen(),
        ):
            self._start(work)
        try:
            while True:
                step, written = await code.outlet.take()
                if isinstance(step, Alone):
                    await step.work()
                else:
                    yield step
                if written is not None and not written.done():
                    written.set_result(None)
        finally:
            tasks = [*self._tasks, *self._working.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def log_resumption(self) -> None:
        """Says what was going on when the turn's node was lost."""
        unfinished = [it for it in self._code.state.unfinished.values() if it.kind in _CARRIED_OUT]
        log.info(
            "turn %s continues after its node was lost; in progress then: %s",
            self._code.turn.id,
            ", ".join(map(_told, unfinished)) or "nothing",
        )

    def _log_unclaimed(self) -> None:
        """Says what an earlier run had begun and this one has not asked for: a question, reworded since."""
        state, claims = self._code.state, self._code.claims
        if left := [it for key, it in state.unfinished.items() if not claims.has_claimed(key)]:
            log.warning(
                "turn %s: its code no longer asks for what it had begun: %s. An answer to that is not used",
                self._code.turn.id,
                ", ".join(map(_told, left)),
            )

    def left_over(self) -> Iterator[TurnStep]:
        """What was on its way when the turn stopped, and nothing has waited for."""
        yield from self._code.outlet.left_over()

    def end_after(self, exc: Exception) -> tuple[Terminal | Pause | HandOff, CancelReason]:
        """What becomes of the turn after anything but its program's end, and why the program is left."""
        turn, limits, most = self._code.turn, self._code.around.limits, self._code.around.most_steps
        match exc:
            case Paused():
                return Pause(exc.requests), "pause"
            case Stopped(reason="hand_off") if limits.hands_off:
                return HandOff(), "hand_off"
            case Stopped():
                end = stopped(turn, exc.reason, timeout_s=limits.generation_timeout_s)
                return end, _REASONS[exc.reason]
            case Diverged():
                log.error("agent in code diverged in turn %s: %s", turn.id, exc)
                if exc.may_be_slow and not self._code.state.has_diverged:
                    return HandOff(), "hand_off"
                return Failed(codes.REPLAY_DIVERGED, DIVERGED), "diverged"
            case StepLimit():
                message = f"The agent's code took more than {most} steps in one turn."
                return Failed(codes.STEP_LIMIT, message), "failed"
            case ShownTooMuch():
                return Failed(codes.AGENT_FAILED, TOO_MUCH), "failed"
            case ThreadkeepError():
                return failed(exc), "failed"
            case _:
                log.error("turn %s failed", turn.id, exc_info=exc)
                return failed(exc), "failed"

    async def leave(self, reason: CancelReason) -> bytes:
        """Ends the run before the program has ended; returns the turn's state as the program leaves it."""
        self._code.send(Cancel(reason))
        if reason == "hand_off":
            return b""
        try:
            async with asyncio.timeout(CANCEL_GRACE_S):
                while not isinstance(message := await self._program.receive(), End):
                    pass
        except (TimeoutError, ProgramLost):
            return b""
        return bytes(message.state)

    @property
    def open_requests(self) -> frozenset[str]:
        """The requests that nobody has decided."""
        return self._code.activity.requests | self._code.state.open_requests

    def last_events(self, end: Terminal) -> Iterator[EventBody]:
        """The turn's end, after closing what it leaves open."""
        yield from self._steps.left_open()
        yield from self._agents.left_open()
        yield from last_events(
            end,
            open_calls=self._tools.open_calls,
            why=self._code.around.tools.why_open,
            reported=self._code.used,
            unreported=None,
            waiting=self._tools.waiting,
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (exc := task.exception()):
            self._code.outlet.fail(exc)

    # From the program

    async def _read(self) -> None:
        while True:
            message = await self._program.receive()
            self._code.activity.note()
            match message:
                case Output():
                    await self._show(message)
                case StepDone():
                    self._done(message)
                case StepRepeats(re):
                    if (begun := self._steps.begun_of(re)) is not None:
                        self._code.voices.repeat(begun.step_id)
                case Settled(re):
                    self._deliveries.note_settled(re)
                case UsageClaim(step=int()):
                    await self._takes.note_usage(message)
                case SaveClaim():
                    if message.is_read:
                        self._code.claims.pass_saved_point(message.scope)
                    self._code.send(await self._takes.save(message))
                case ContentClaim():
                    self._start(self._takes.content(message))
                case End():
                    self._end(message)
                    return
                case _:
                    self._claim(message)

    def _claim(self, claim: Claim) -> None:
        """Something new that the program wants done; it may have been done by an earlier run."""
        code = self._code
        if not isinstance(claim, UsageClaim) and self._waited_for() >= MOST_OPEN_CLAIMS:
            message = f"A turn can have at most {MOST_OPEN_CLAIMS} open steps at once."
            code.send(Refused("TOO_MANY_OPEN", message, claim.id))
            return
        place = place_of(claim)
        if code.claims.is_ambiguous(*place):
            code.send(ambiguous(claim))
            return
        open_ = code.claims.add(claim.id, *place)
        if (ended := code.claims.optional(open_.key)) is not None:
            code.claims.close(open_)
            self._start(self._deliveries.at_once(claim.id, ended))
            return
        self._claimed[claim.id] = open_, claim
        if not code.claims.is_recorded(open_.key):
            task = self._working[claim.id] = self._start(self._carry_out(claim, open_))
            task.add_done_callback(lambda _: self._working.pop(claim.id, None))

    def _waited_for(self) -> int:
        """How many claims count: usage ends by itself, and the program may report much of it at once."""
        return sum(not isinstance(claim, UsageClaim) for _, claim in self._claimed.values())

    async def _carry_out(self, claim: Claim, open_: OpenClaim) -> None:
        try:
            await self._carry_out_whole(claim, open_)
        except asyncio.CancelledError:
            if open_.is_given_up:
                if open_.key in self._code.state.begun:
                    await self._give_up(claim, open_)
                else:
                    self._code.claims.close(open_)
            raise

    async def _give_up(self, claim: Claim, open_: OpenClaim) -> None:
        """Ends what an earlier run began, and this one cancelled before it could go on."""
        match claim:
            case StepClaim() | CallClaim() if _is_call(claim):
                self._tools.give_up(self._tools.id_of(claim, open_), open_)
            case StepClaim():
                self._steps.give_up(claim, open_)
            case AskClaim():
                await give_up_question(self._code, claim, open_)
            case _:
                self._code.end(self._code.failed(open_, None, status="cancelled"))

    async def _carry_out_whole(self, claim: Claim, open_: OpenClaim) -> None:
        code = self._code
        with code.activity.running():
            await code.claims.hold(open_.key)
            await code.check_boundary()
            match claim:
                case StepClaim() if _is_call(claim):
                    await self._tools.step(claim, open_)
                case StepClaim():
                    await self._steps.carry_out(claim, open_)
                case ModelClaim():
                    await self._models.carry_out(claim, open_)
                case CallClaim():
                    await self._tools.call(claim, open_)
                case AskClaim():
                    await ask(code, claim, open_)
                case TakeClaim():
                    await self._takes.take(claim, open_)
                case UsageClaim():
                    await self._takes.usage(claim, open_)
                case AgentClaim():
                    await self._agents.begin(claim, open_)
                case AgentDone():
                    await self._agents.end(claim, open_)
                case SaveClaim() | ContentClaim():
                    pass

    def _done(self, done: StepDone) -> None:
        """The program has run a step, or no longer waits for a claim."""
        if bytes(done.value) or done.error is not None:
            if not self._steps.done(done):
                self._code.send(Refused(NOT_RUNNING, "No step of this number runs.", done.re))
            return
        claimed = self._claimed.pop(done.re, None)
        open_ = self._code.claims.cancel(done.re)
        if (last := self._deliveries.last) is not None and last.id == done.re:
            self._note_unwanted(last)
        if claimed is None or open_ is None:
            return
        if self._code.claims.is_due(open_):
            self._note_unwanted(open_)
        elif (task := self._working.get(done.re)) is not None and not task.done():
            task.cancel()
        self._deliveries.note_settled(done.re)

    def _note_unwanted(self, claim: OpenClaim) -> None:
        """A claim has a result, but the program gave up first: another run must not receive it earlier."""
        self._code.outlet.emit(self._code.failed(claim, None, status="cancelled"))

    def _end(self, end: End) -> None:
        """The function has returned or failed."""
        code = self._code
        code.claims.check_end()
        if end.status == "completed":
            self._log_unclaimed()
        if end.status == "completed" and end.text:
            self._say_itself(Text(storable(end.text)))
        code.outlet.fail(Ended(self._end_of(end), bytes(end.state)))

    def _end_of(self, end: End) -> Terminal:
        if end.status == "completed" and not self._code.has_spoken:
            return Failed(codes.AGENT_FAILED, codes.NOTHING_SAID, retryable=True)
        if end.status == "completed":
            output = msgspec.json.decode(end.output) if bytes(end.output) else None
            return completed(self._code.turn, stop_reason="end_turn", has_spoken=True, output=output)
        message = storable(end.error.message) if end.error else AGENT_FAILED
        if end.code == AGENT_ABSENT:
            return Failed(AGENT_ABSENT, message, retryable=True)
        if end.code == OUTCOME_UNKNOWN and self._code.failure(end.code, message):
            return Failed(codes.OUTCOME_UNKNOWN, message)
        if end.code == AGENT_UNUSABLE and self._code.failure(end.code, message):
            return Failed(codes.AGENT_FAILED, message)
        if end.code in _OF_MODELS and (ended := self._code.failure(end.code, message)) and ended.error:
            return Failed(ended.error.type, message, retryable=ended.retryable)
        if end.shown and end.code in _OF_FOREIGN_MODELS:
            return Failed(end.code, message, retryable=end.retryable)
        return Failed(codes.AGENT_FAILED, message if end.shown else AGENT_FAILED)

    # What it shows

    async def _show(self, output: Output) -> None:
        for number, item in enumerate(output.items, 1):
            await self._show_item(item, output.step)
            if number % SHOWN_AT_ONCE == 0:
                await asyncio.sleep(0)  # a program can say thousands of words at once
        self._unacknowledged += sum(map(output_size, output.items))
        if self._unacknowledged >= ACK_EVERY_BYTES:
            ack, self._unacknowledged = Ack(self._unacknowledged), 0

            async def acknowledge() -> None:
                self._code.send(ack)

            self._code.outlet.emit(Alone(acknowledge))

    async def _show_item(self, item: OutputItem, step: int | None) -> None:
        match item:
            case FileItem():
                await self._attach(item, step)
            case ProgressItem():
                self._progress(item, step)
            case RemoteCallItem() | RemoteResultItem() | RemoteStepItem():
                if step is not None and (begun := self._steps.begun_of(step)) is not None:
                    await self._remote.show(item, begun)
            case _ if (body := body_of(item)) is not None:
                self._say(body, step)
            case _:
                pass

    async def _attach(self, item: FileItem, step: int | None) -> None:
        begun = None if step is None else self._steps.begun_of(step)
        if begun is not None or step is None:
            await self._attachments.add(item, begun.step_id if begun else PROGRAM)

    def _say(self, body: EventBody, step: int | None) -> None:
        if step is None:
            self._say_itself(body)
        elif (begun := self._steps.begun_of(step)) is not None:
            self._code.say(begun.step_id, body)

    def _say_itself(self, body: EventBody) -> None:
        """What the program says outside steps; what an earlier run has shown is not shown again."""
        new = self._shown.new(body)
        if self._shown.has_differed and not self._has_noticed:
            self._has_noticed = True
            self._code.outlet.emit(Notice(codes.OUTPUT_DIFFERED, DIFFERED))
        if new is not None:
            self._code.say(PROGRAM, new)

    def _progress(self, item: ProgressItem, step: int | None) -> None:
        call_id = None if step is None else self._tools.call_of(step)
        if call_id is not None:
            message = None if item.message is None else storable(item.message)[:MOST_NOTICE_CHARACTERS]
            self._code.outlet.emit(ToolProgress(call_id, item.progress, item.total, message))

    # To the program

    def _received(self, claim: OpenClaim) -> None:
        """The program has a claim's result."""
        self._claimed.pop(claim.id, None)
        self._code.activity.note()

    async def _watch(self) -> None:
        """Notices that the program doesn't ask again for what is recorded."""
        claims, least_s = self._code.claims, self._code.around.patience_s
        look_s = least_s / 20
        while not claims.has_caught_up:
            moves, stood_s = claims.moves, 0.0
            while claims.moves == moves:
                await asyncio.sleep(look_s)
                if claims.has_caught_up:
                    return
                stood_s += look_s if self._program.answers else 0
                if stood_s >= claims.patience_s(least_s, MOST_STANDSTILL_S):
                    raise claims.stuck()

    async def _pause(self) -> None:
        """Ends the run when it has waited for nothing but its user."""
        await self._code.activity.rest(self._code.around.pause_after_s)
        self._log_unclaimed()
        raise Paused(self._code.activity.requests)
