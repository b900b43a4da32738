"""Steps of a program: functions that run once, whatever crashes."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any, Literal

from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.events import StepChanged
from threadkeep.domain.ids import derived_uuid
from threadkeep.engine.code.claims import OpenClaim
from threadkeep.engine.code.questions import Question
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.code.voices import VoiceTaken
from threadkeep.engine.journal import StepBegun, StepEnded, StepStatus
from threadkeep.engine.loop import Together
from threadkeep.wire.programs import OUTCOME_UNKNOWN, ProgramError, Run, StepClaim, StepDone, bare_name

log = logging.getLogger("threadkeep.engine")


class Steps:
    """Runs a program's steps where the program is."""

    def __init__(self, code: RunningCode) -> None:
        self._code = code
        self._running: dict[int, asyncio.Future[StepDone]] = {}
        self._begun: dict[int, StepBegun] = {}
        self._open: dict[int, tuple[StepClaim, StepBegun]] = {}
        self._handed_over: set[int] = set()
        """Those that the program has been let to run."""

    def done(self, done: StepDone) -> bool:
        """The program has run a step; False if it runs none of this number."""
        if (running := self._running.get(done.re)) is None or running.done():
            return False
        running.set_result(done)
        return True

    def begun_of(self, id_: int) -> StepBegun | None:
        """The entry of a step that runs."""
        return self._begun.get(id_)

    def left_open(self) -> Iterator[StepChanged]:
        """How the steps have ended that ran when the turn was stopped."""
        for claim, begun in self._open.values():
            is_unknown = claim.effect == "write" and claim.id in self._handed_over
            yield from changed(claim, begun, "unknown" if is_unknown else "cancelled")

    async def carry_out(self, claim: StepClaim, open_: OpenClaim) -> None:
        """Runs a step to its one result."""
        code = self._code
        begun = code.begun(open_, bare_name(claim.name), "step", claim.effect)
        if begun.attempt > 1:
            if not (claim.keeps_output and claim.effect == "write"):
                code.voices.restart(begun.step_id)
            if claim.effect == "write" and not await self._is_wanted_again(claim, open_, begun):
                ended = code.failed(
                    open_,
                    unknown(code, claim.name),
                    OUTCOME_UNKNOWN,
                    status="unknown",
                    is_progress=True,
                )
                code.end(ended, *changed(claim, begun, "unknown", 0))
                return
        begun_at = code.now()
        entries = (*changed(claim, begun, "running"), begun)
        self._open[claim.id] = claim, begun
        try:
            if claim.effect == "read":
                code.outlet.emit(Together(entries))
            else:
                await code.outlet.store(Together(entries, is_before_effect=True))
            done = await self.run(claim, open_, begun, begun.attempt)
            await self._end(claim, open_, begun, done)
        except asyncio.CancelledError:
            if open_.is_given_up:
                took = code.now() - begun_at
                is_progress = claim.effect == "write"
                ended = code.failed(
                    open_, None, status="cancelled", duration_ms=took, is_progress=is_progress
                )
                self._close(claim, begun, ended, "cancelled", took)
                code.voices.end(begun.step_id)
            raise

    def give_up(self, claim: StepClaim, open_: OpenClaim) -> None:
        """Ends a step that an earlier run began, and that the program no longer waits for."""
        begun = self._code.state.begun[open_.key]
        is_write = claim.effect == "write"
        status: StepStatus = "unknown" if is_write else "cancelled"
        ended = self._code.failed(open_, None, status=status, is_progress=is_write)
        self._code.end(ended, *changed(claim, begun, status, 0))

    async def run(
        self,
        claim: StepClaim,
        open_: OpenClaim,
        begun: StepBegun,
        attempt: int,
        arguments: dict[str, Any] | None = None,
    ) -> StepDone:
        """Lets the program run a step now."""
        self._begun[claim.id] = begun
        running = self._running[claim.id] = asyncio.get_running_loop().create_future()
        turn = self._code.turn
        # The same for every attempt, so that what the step calls can recognize a repetition.
        key = derived_uuid(turn.started_at, turn.id, open_.key)
        self._handed_over.add(claim.id)
        try:
            self._code.send(Run(claim.id, key, attempt, arguments))
            return await running
        finally:
            del self._running[claim.id], self._begun[claim.id]

    async def _end(self, claim: StepClaim, open_: OpenClaim, begun: StepBegun, done: StepDone) -> None:
        code = self._code
        is_progress = claim.effect == "write"
        if done.error is not None:
            took = done.duration_ms
            ended = code.failed(open_, done.error, duration_ms=took, is_progress=is_progress)
        else:
            ended = await code.ok(open_, done.value, duration_ms=done.duration_ms, is_progress=is_progress)
        if claim.effect != "write":  # if what it says is lost with a node, it runs again
            try:
                await code.voices.spoken(begun.step_id)
            except VoiceTaken as exc:
                ended = code.failed(open_, ProgramError("VoiceTaken", str(exc)), duration_ms=done.duration_ms)
        status: StepStatus = "ok" if ended.status == "ok" else "error"
        self._close(claim, begun, ended, status, done.duration_ms)
        await code.stop_speaking(begun.step_id)

    def _close(
        self, claim: StepClaim, begun: StepBegun, ended: StepEnded, status: StepStatus, took: int
    ) -> None:
        is_urgent = claim.effect != "read"  # it must not happen twice
        self._code.end(ended, *changed(claim, begun, status, took), is_urgent=is_urgent)
        del self._open[claim.id]

    async def _is_wanted_again(self, claim: StepClaim, open_: OpenClaim, begun: StepBegun) -> bool:
        """Whether the user wants a step to run again that may have taken effect."""
        if not claim.asks_if_unknown:
            return False
        what = self._code.named(claim.scope, claim.title or bare_name(claim.name))
        question = Question(
            subject=f"again/{open_.key}/{begun.attempt}",
            kind=ApprovalKind.QUESTION,
            message=f"{what} may already have happened. Run it again?",
            schema={"type": "string", "enum": ["yes", "no"]},
        )
        decision, response = await question.ask(self._code)
        await self._code.outlet.store(response)
        return decision.action is ApprovalAction.ANSWER and decision.content == "yes"


def unknown(code: RunningCode, step_name: str) -> ProgramError:
    """What a program is told of a step that was cut off; the log says what its author can do about it."""
    name = bare_name(step_name)
    log.warning(
        'turn %s: "%s" was cut off and may have taken effect, so it is not repeated. '
        'Catch OutcomeUnknown; a step that only reads says so with effect="read"',
        code.turn.id,
        name,
    )
    return ProgramError("OutcomeUnknown", f'The step "{name}" was interrupted and may have taken effect.')


def changed(
    claim: StepClaim,
    begun: StepBegun,
    status: Literal["running", "ok", "error", "cancelled", "unknown"],
    duration_ms: int | None = None,
) -> tuple[StepChanged, ...]:
    """What the turn's followers see of a step, if anything."""
    if claim.hidden:
        return ()
    return (
        StepChanged(
            step_id=begun.step_id,
            name=begun.name,
            kind="stream" if claim.streams else "step",
            status=status,
            title=claim.title,
            duration_ms=duration_ms,
            parent_id=begun.parent_id,
        ),
    )
