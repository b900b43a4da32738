"""Writes a running turn's steps to its log, and does what some of them ask for: end, pause, hand off."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from threadkeep.domain.conversation import EndedTurn
from threadkeep.domain.errors import StorageConflict, StorageError
from threadkeep.domain.events import (
    ApprovalRequest,
    Done,
    Failed,
    Notice,
    Retrieval,
    Text,
    Thought,
)
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.ending import INTERNAL_ERROR
from threadkeep.engine.journal import Dispatched, InputAwaited
from threadkeep.engine.loop import HandOff, Pause, StateLeft, Together, TurnStep
from threadkeep.engine.stop import TurnLost
from threadkeep.log.writer import LogWriter, TurnLog, persist
from threadkeep.runtime.running import NodeTurn, NodeTurns
from threadkeep.runtime.signals import Signals
from threadkeep.runtime.step_watch import StepWatch
from threadkeep.runtime.turn_ends import RunNext, TurnEnds
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

log = logging.getLogger("threadkeep.turns")


class StepWriter:
    """Stores the steps of this node's turns, then shows them."""

    def __init__(
        self,
        store: Store,
        running: NodeTurns,
        writer: LogWriter,
        turn_ends: TurnEnds,
        signals: Signals,
        open_next: "Callable[[NodeTurn, EndedTurn, QueuedMessage], Awaitable[NodeTurn | None]]",
        run_next: RunNext,
        watch: StepWatch,
    ) -> None:
        self._watch = watch
        self._store = store
        self._running = running
        self._writer = writer
        self._turn_ends = turn_ends
        self._signals = signals
        self._open_next = open_next
        self._run_next = run_next

    async def write(self, turn: NodeTurn, steps: AsyncGenerator[TurnStep]) -> bool:
        """Stores and shows a turn's steps, as far as possible; returns whether it resumes from its log."""
        held, turn_log, code = turn.held, turn.log, turn.held.turn.code
        try:
            async for step in steps:
                if code is not None:
                    self._watch.note(turn, code.key, step)
                match step:
                    case Text() | Thought():  # nearly all
                        await turn_log.add(step)
                    case Done() | Failed():
                        open_next = partial(self._open_next, turn)
                        await self._turn_ends.end(
                            held, turn_log, step, open_next=open_next, run_next=self._run_next
                        )
                    case TurnReceipt():
                        turn_log.receipts[step.call] = step
                    case StateLeft(state):
                        turn_log.state = state
                    case Pause(requests):
                        return not await self._pause(turn, requests)
                    case HandOff():
                        await self._hand_off(held, turn_log)
                    case Together():
                        await self._add_together(held, turn_log, step)
                    case Dispatched() | InputAwaited():
                        # Stored before the tools run, while the turn is still ours.
                        await turn_log.add(step, at_once=True)
                        self._running.check_lease(turn_log.turn_id)
                    case Notice() | Retrieval(tool_call_id=None):
                        # Stored before the receipt of the request: it numbers the passages found.
                        await turn_log.add(step, at_once=True)
                    case ApprovalRequest():
                        await turn_log.add(step)
                        await self._signals.asked(held, step.request_id)
                    case _:
                        await turn_log.add(step)
        except TurnLost:
            log.warning("another node took over turn %s", held.turn.id)
        except StorageError as exc:
            # Nobody has seen what isn't stored. The lease will expire; then a node continues the turn.
            log.error("couldn't store turn %s: %s", held.turn.id, exc.message)
        except Exception:
            log.exception("turn %s crashed", held.turn.id)
            if not turn_log.live.ended:
                await self._end_crashed(turn)
        finally:
            await steps.aclose()
        return False

    async def _add_together(self, held: HeldTurn, turn_log: TurnLog, step: Together) -> None:
        is_first_again = step.is_progress and held.attempts > 0
        at_once = step.is_before_effect or is_first_again
        await turn_log.add(*step.entries, at_once=at_once, is_urgent=step.is_urgent)
        if step.is_before_effect:  # while the turn is still ours
            self._running.check_lease(turn_log.turn_id)
        if is_first_again:
            await self._store.log.reset_attempts(held.turn.id, held.fence)

    async def _pause(self, turn: NodeTurn, requests: frozenset[str]) -> bool:
        """Makes the turn wait for its user; False if it continues immediately because they have decided."""
        held = turn.held
        await self._writer.flush(turn.log)
        try:
            pause = partial(self._store.log.pause, held.turn.id, held.fence, requests, turn.steps.oldest)
            paused = await persist(pause)
        except StorageConflict as exc:
            # The first try may have stored it, and only the response was lost.
            if await self._store.turns.status(held.turn.id) is not TurnStatus.WAITING:
                raise TurnLost from exc
            paused = "paused"
        if paused == "aborting":
            turn.control.stop.request("abort")
        if paused == "paused":
            log.info("turn is waiting for its user")
            await self._signals.paused(held)
        return paused == "paused"

    async def _hand_off(self, held: HeldTurn, turn_log: TurnLog) -> None:
        await self._writer.flush(turn_log)
        await persist(lambda: self._store.log.release(turn_log.turn_id, turn_log.fence))
        if held.turn.code is not None:
            await self._signals.needs(held.turn.code.key)
        log.info("turn handed off")

    async def _end_crashed(self, turn: NodeTurn) -> None:
        """Ends a turn after an internal error. If even that fails, its lease expires."""
        try:
            await self._writer.flush(turn.log)
            await self._turn_ends.cut_off(turn.held, turn.log, INTERNAL_ERROR)
        except Exception:
            log.exception("couldn't end turn %s", turn.held.turn.id)
