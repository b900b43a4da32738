"""Runs turns: each writes to its log until it ends, whether or not anybody follows it.

A turn that this node takes over, or that continues after its user's answer, starts from its log.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress

from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.errors import StorageConflict, StorageError, StorageUnavailable
from threadkeep.domain.events import ApprovalRequest, Done, Failed, Notice, Retrieval, UsageReported
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.ending import ABANDONED, INTERNAL_ERROR
from threadkeep.engine.journal import CallFinished, Dispatched, InputAwaited
from threadkeep.engine.loop import HandOff, Pause, TurnStep
from threadkeep.engine.stop import StopReason
from threadkeep.log.format import LogEntry, decode_entries
from threadkeep.log.rebuilding import is_whole
from threadkeep.log.writer import DAMAGED, LogWriter, TurnLog, TurnLost, opening_entries, persist
from threadkeep.logs import add_to_subject
from threadkeep.ports.idempotency import IdempotencyKey
from threadkeep.ports.store import Store
from threadkeep.ports.turn_log import HeldTurn
from threadkeep.ports.turns import QueueChange, WaitingEnd
from threadkeep.runtime.leases import lease_of
from threadkeep.runtime.prepared_turn import PrepareNextOf, PrepareNextTurn, ResumedSteps, Steps
from threadkeep.runtime.running import NodeTurn, NodeTurns, TurnControl
from threadkeep.runtime.signals import Signals
from threadkeep.runtime.steering import SteeringMessages
from threadkeep.runtime.turn_ends import OpenedTurn, TurnEnds
from threadkeep.tasks import end_tasks
from threadkeep.wire.events import UnreadableEvent

log = logging.getLogger("threadkeep.turns")

CLOSE_S = 10.0


class Runner:
    """Runs turns on this node, detached from the requests that started them."""

    def __init__(
        self,
        node_id: str,
        store: Store,
        running: NodeTurns,
        writer: LogWriter,
        turn_ends: TurnEnds,
        steering: SteeringMessages,
        signals: Signals,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._running = running
        self._writer = writer
        self._turn_ends = turn_ends
        self._steering = steering
        self._signals = signals
        self._beginning: dict[TurnId, tuple[UserId, asyncio.Task[None]]] = {}
        self._resumed_steps: ResumedSteps | None = None
        self._prepare_next_of: PrepareNextOf | None = None
        self.is_draining = False

    @property
    def can_resume(self) -> bool:
        """Whether this node can take over turns."""
        return self._resumed_steps is not None and not self.is_draining

    def resume_with(self, steps: ResumedSteps, prepare_next_of: PrepareNextOf) -> None:
        """Sets how turns that are taken over continue, and how the next turn follows them."""
        self._resumed_steps, self._prepare_next_of = steps, prepare_next_of

    async def begin(
        self,
        begun: BegunTurn,
        key: IdempotencyKey | None,
        steps: Steps,
        *,
        prepare_next: PrepareNextTurn | None = None,
        queue: QueueChange | None = None,
        waiting_end: WaitingEnd | None = None,
        by_admin: bool = False,
    ) -> None:
        """Stores a turn with this node's lease and its first event, shows that event, and runs the turn.

        It does so even if the request is cancelled meanwhile: a stored turn must run.
        """
        task = asyncio.create_task(self._begin(begun, key, queue, waiting_end, steps, prepare_next, by_admin))
        self._beginning[begun.turn.id] = begun.conversation.user_id, task
        await asyncio.shield(task)

    async def resume(
        self, held: HeldTurn, *, is_takeover: bool = False, stop_reason: StopReason | None = None
    ) -> None:
        """Runs a turn that this node holds from the end of its log; ends it if a reason is given."""
        assert self._resumed_steps is not None
        assert self._prepare_next_of is not None
        turn_log = self._writer.open(held.turn.id, held.fence)
        try:
            entries = await self._read(turn_log)
        except DAMAGED as exc:
            log.error("can't resume turn %s because its log is damaged: %s", held.turn.id, exc)
            await self._end_damaged(held, turn_log)
            return
        control = self._control(held, turn_log)
        control.stop.at_boundary = self.is_draining
        if stop_reason is not None:
            control.stop.request(stop_reason)
        if held.is_aborting:
            control.stop.request("abort")
        steps = self._resumed_steps(held, entries, control, is_takeover)
        self._start(held, turn_log, control, steps, self._prepare_next_of(held, entries))

    async def end_of_waiting(self, held: HeldTurn) -> WaitingEnd:
        """The end of a waiting turn whose user continues without answering; stores nothing."""
        turn_log = self._writer.open(held.turn.id, held.fence)
        try:
            await self._read(turn_log)
        except DAMAGED as exc:
            log.error("ending turn %s with the readable part of its damaged log: %s", held.turn.id, exc)
            turn_log.fill_readable(await self._store.log.read(held.turn.id, 0))
        return self._turn_ends.end_of_waiting(held, turn_log)

    def count_of(self, user_id: UserId) -> int:
        """How many of a user's turns run or start here; one whose end is visible no longer counts."""
        beginning = sum(it == user_id for it, _ in self._beginning.values())
        return self._running.count_of(user_id) + beginning

    async def drain(self, grace_s: float) -> None:
        """Starts no more turns and hands off those that run, so that another node continues them.

        A model call or tool in progress has `grace_s` to end by itself.
        """
        await self._begin_no_more()
        tasks = self._running.tasks
        for turn in self._running.all().values():
            turn.control.stop.at_boundary = True
        if tasks and grace_s:
            log.info("waiting for %d running turns, at most %g s", len(tasks), grace_s)
            await asyncio.wait(tasks, timeout=grace_s)
        await self._hand_off_all()

    async def close(self) -> None:
        """Hands off the turns that run here, keeping their output."""
        await self._begin_no_more()
        await end_tasks(*(task for _, task in self._beginning.values()))
        await end_tasks(*await self._hand_off_all())

    async def _begin_no_more(self) -> None:
        """Starts no more turns; waits for those being stored, but not too long."""
        self.is_draining = True
        if self._beginning:
            await asyncio.wait([task for _, task in self._beginning.values()], timeout=CLOSE_S)

    async def _hand_off_all(self) -> set["asyncio.Task[None]"]:
        """Stops the turns that run here; returns their tasks, done unless they took too long."""
        tasks = self._running.tasks
        for turn in self._running.all().values():
            turn.control.stop.request("hand_off")
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        return tasks

    async def _begin(
        self,
        begun: BegunTurn,
        key: IdempotencyKey | None,
        queue: QueueChange | None,
        waiting_end: WaitingEnd | None,
        steps: Steps,
        prepare_next: PrepareNextTurn | None,
        by_admin: bool,
    ) -> None:
        lease = lease_of(self._node_id)
        turn_log = self._writer.open(begun.turn.id, lease.fence)
        opening = turn_log.take(*opening_entries(begun.turn, by_admin=by_admin))
        assert opening is not None
        try:
            await self._store.turns.begin(begun, lease, opening, key, queue=queue, waiting_end=waiting_end)
        except StorageUnavailable:
            # It may have been stored, and only the response was lost.
            if await self._store.turns.status(begun.turn.id) is not TurnStatus.RUNNING:
                raise
        finally:
            del self._beginning[begun.turn.id]
        if waiting_end is not None:
            await self._turn_ends.announce_end(waiting_end)
        turn_log.live.extend([opening])
        held = HeldTurn(begun.turn, begun.conversation, begun.assistant_message, lease.fence)
        self._start_new(held, turn_log, steps, prepare_next)

    def _start_new(
        self, held: HeldTurn, turn_log: TurnLog, steps: Steps, prepare_next: PrepareNextTurn | None
    ) -> None:
        """Runs a turn whose start is stored."""
        control = self._control(held, turn_log)
        control.stop.at_boundary = self.is_draining
        self._start(held, turn_log, control, steps(held, control), prepare_next)

    def _control(self, held: HeldTurn, turn_log: TurnLog) -> TurnControl:
        return TurnControl(lambda: self._steering.take_in(held, turn_log))

    def _run_next(self, next_turn: OpenedTurn) -> None:
        """Runs the turn of a queued message, which began when the previous turn ended."""
        prepared = next_turn.prepared
        self._start_new(next_turn.held, next_turn.log, prepared.steps, prepared.prepare_next)

    def _start(
        self,
        held: HeldTurn,
        turn_log: TurnLog,
        control: TurnControl,
        steps: AsyncGenerator[TurnStep],
        prepare_next: PrepareNextTurn | None,
    ) -> None:
        task = asyncio.create_task(self._run(held, turn_log, control, steps, prepare_next))
        self._running.add(NodeTurn(held.conversation.user_id, task, turn_log, control))

    async def _read(self, turn_log: TurnLog) -> list[LogEntry]:
        """A turn as stored, and its log so far."""
        chunks = await self._store.log.read(turn_log.turn_id, 0)
        if not is_whole(chunks):
            raise UnreadableEvent("Part of the log is missing.")
        entries = [entry for chunk in chunks for entry in decode_entries(chunk.events)]
        turn_log.fill(chunks, entries)
        return entries

    async def _run(
        self,
        held: HeldTurn,
        turn_log: TurnLog,
        control: TurnControl,
        steps: AsyncGenerator[TurnStep],
        prepare_next: PrepareNextTurn | None,
    ) -> None:
        add_to_subject(conversation_id=held.conversation.id, turn_id=held.turn.id)
        try:
            await self._signals.began(held)
            while await self._write(held, turn_log, control, steps, prepare_next):
                assert self._resumed_steps is not None
                steps = self._resumed_steps(held, await self._entries(turn_log), control, False)
        finally:
            # Followers here continue where the turn does: on another node, or after its user's answer.
            self._running.discard(turn_log)
            turn_log.live.close(moved=not turn_log.live.ended and not self.is_draining)

    async def _entries(self, turn_log: TurnLog) -> list[LogEntry]:
        chunks = await self._store.log.read(turn_log.turn_id, 0)
        return [entry for chunk in chunks for entry in decode_entries(chunk.events)]

    async def _write(
        self,
        held: HeldTurn,
        turn_log: TurnLog,
        control: TurnControl,
        steps: AsyncGenerator[TurnStep],
        prepare_next: PrepareNextTurn | None,
    ) -> bool:
        """Stores and shows a turn's steps, as far as possible; returns whether it continues from its log."""
        previous = None
        try:
            async for step in steps:
                match step:
                    case Done() | Failed():
                        await self._turn_ends.end(
                            held, turn_log, step, prepare_next=prepare_next, run_next=self._run_next
                        )
                    case Pause(requests):
                        return not await self._pause(held, turn_log, control, requests)
                    case HandOff():
                        await self._hand_off(turn_log)
                    case UsageReported() if held.attempts and isinstance(previous, CallFinished):
                        await turn_log.add(step, at_once=True)
                        await self._store.log.reset_attempts(held.turn.id, held.fence)
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
                previous = step
        except TurnLost:
            log.warning("another node took over turn %s", held.turn.id)
        except StorageError as exc:
            # Nobody has seen what isn't stored. The lease will expire; then a node continues the turn.
            log.error("couldn't store turn %s: %s", held.turn.id, exc.message)
        except Exception:
            log.exception("turn %s crashed", held.turn.id)
            if not turn_log.live.ended:
                await self._end_broken(held, turn_log)
        finally:
            await steps.aclose()
        return False

    async def _pause(
        self, held: HeldTurn, turn_log: TurnLog, control: TurnControl, requests: frozenset[str]
    ) -> bool:
        """Makes the turn wait for its user; False if it continues immediately because they have answered."""
        await self._writer.flush(turn_log)
        try:
            paused = await persist(lambda: self._store.log.pause(held.turn.id, held.fence, requests))
        except StorageConflict as exc:
            # The first try may have stored it, and only the response was lost.
            if await self._store.turns.status(held.turn.id) is not TurnStatus.WAITING:
                raise TurnLost from exc
            paused = "paused"
        if paused == "aborting":
            control.stop.request("abort")
        if paused == "paused":
            log.info("turn is waiting for its user")
            await self._signals.paused(held)
        return paused == "paused"

    async def _hand_off(self, turn_log: TurnLog) -> None:
        await self._writer.flush(turn_log)
        await persist(lambda: self._store.log.release(turn_log.turn_id, turn_log.fence))
        log.info("turn handed off")

    async def _end_broken(self, held: HeldTurn, turn_log: TurnLog) -> None:
        """Ends a turn after an internal error. If even that fails, its lease expires."""
        try:
            turn_log.release()
            await self._writer.flush(turn_log)
            await self._turn_ends.cut_off(held, turn_log, INTERNAL_ERROR)
        except Exception:
            log.exception("couldn't end turn %s", held.turn.id)

    async def _end_damaged(self, held: HeldTurn, turn_log: TurnLog) -> None:
        """Ends a turn whose log is only partly readable, with that part."""
        chunks = await self._store.log.read(held.turn.id, 0)
        turn_log.fill_readable(chunks)
        with suppress(TurnLost):
            await self._turn_ends.cut_off(held, turn_log, ABANDONED)
