"""Runs turns: each writes to its log until it ends, whether or not anybody follows it.

A turn that this node takes over, or that continues after its user's decision, resumes from its log.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import suppress

from threadkeep.domain.errors import StorageUnavailable, ThreadkeepError
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.ending import ABANDONED
from threadkeep.engine.loop import TurnStep
from threadkeep.engine.stop import StopReason
from threadkeep.log.format import LogEntry, decode_entries, is_whole
from threadkeep.log.writer import DAMAGED, LogWriter, TurnLog, TurnLost
from threadkeep.logs import add_to_subject
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.opened_turn import OpenedTurn, open_turn
from threadkeep.runtime.prepared_turn import PreparedTurn, Resumer
from threadkeep.runtime.running import NodeTurn, NodeTurns
from threadkeep.runtime.signals import Signals
from threadkeep.runtime.steering import SteeringMessages
from threadkeep.runtime.step_writer import StepWriter
from threadkeep.runtime.turn_ends import TurnEnds
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.storage.turns import WaitingEnd
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
        self._step_writer = StepWriter(store, running, writer, turn_ends, signals)
        self._resumer: Resumer | None = None
        self.is_draining = False

    @property
    def can_resume(self) -> bool:
        """Whether this node can take over turns."""
        return self._resumer is not None and not self.is_draining

    def knows(self, model: str | None) -> bool:
        """Whether this node has a model."""
        return self._resumer is not None and self._resumer.knows(model)

    def resume_with(self, resumer: Resumer) -> None:
        """Sets how turns resume from their logs."""
        self._resumer = resumer

    async def begin(self, prepared: PreparedTurn) -> None:
        """Stores a turn with this node's lease and its first event, shows that event, and runs the turn.

        It does so even if the request is cancelled meanwhile: a stored turn must run.
        """
        begun = prepared.new.begun
        task = asyncio.create_task(self._begin(prepared))
        self._beginning[begun.turn.id] = begun.conversation.user_id, task
        await asyncio.shield(task)

    async def resume(
        self, held: HeldTurn, *, is_takeover: bool = False, stop_reason: StopReason | None = None
    ) -> None:
        """Runs a turn that this node holds from the end of its log; ends it if a reason is given."""
        assert self._resumer is not None
        turn_log = self._writer.open(held.turn, held.conversation, held.fence)
        try:
            entries = await self._read(turn_log)
        except DAMAGED as exc:
            log.error("can't resume turn %s because its log is damaged: %s", held.turn.id, exc)
            await self._end_damaged(held, turn_log)
            return
        control = self._control(held, turn_log)
        if stop_reason is not None:
            control.stop.request(stop_reason)
        if held.is_aborting:
            control.stop.request("abort")
        steps = self._resumer.steps(held, entries, control, is_takeover=is_takeover)
        prepare_next = self._resumer.prepare_next_of(held, entries)
        self._start(NodeTurn(held, turn_log, control, prepare_next, is_resumed=True), steps)

    async def end_of_waiting(self, held: HeldTurn) -> WaitingEnd:
        """The end of a waiting turn whose user continues without deciding; stores nothing."""
        turn_log = self._writer.open(held.turn, held.conversation, held.fence)
        try:
            await self._read(turn_log)
        except DAMAGED as exc:
            log.error("ending turn %s with the readable part of its damaged log: %s", held.turn.id, exc)
            turn_log.fill_readable(await self._store.log.read(held.turn.id, 0))
        return self._turn_ends.end_of_waiting(held, turn_log)

    def count_of(self, user_id: UserId, besides: Collection[TurnId | None] = ()) -> int:
        """How many of a user's turns run or start here, besides some; one whose end is visible no longer
        counts.
        """
        beginning = sum(it == user_id and id_ not in besides for id_, (it, _) in self._beginning.items())
        return self._running.count_of(user_id, besides) + beginning

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

    async def _begin(self, prepared: PreparedTurn) -> None:
        try:
            opened = open_turn(prepared, self._node_id, self._writer)
            try:
                await self._store_start(opened)
            except ThreadkeepError:  # a turn that doesn't start doesn't count, however often it is tried
                await prepared.give_back()
                raise
            if (waiting_end := prepared.new.waiting_end) is not None:
                await self._turn_ends.announce_end(waiting_end)
            self._run_opened(opened)
        finally:  # only now: until it runs, it is nobody else's to count and to wait for
            del self._beginning[prepared.new.begun.turn.id]

    async def _store_start(self, opened: OpenedTurn) -> None:
        try:
            await self._store.turns.begin(opened.prepared.new, opened.lease, opened.opening)
        except StorageUnavailable:
            # It may have been stored, and only the response was lost.
            if await self._store.turns.status(opened.log.turn_id) is not TurnStatus.RUNNING:
                raise

    def _run_opened(self, opened: OpenedTurn) -> None:
        """Runs a turn whose start is stored: a new one, or the one that followed another in its commit."""
        held, prepared = opened.held, opened.prepared
        opened.log.live.extend([opened.opening])
        control = self._control(held, opened.log)
        turn = NodeTurn(
            held,
            opened.log,
            control,
            prepared.prepare_next,
            opens_conversation=prepared.new.new_conversation is not None,
        )
        self._start(turn, prepared.steps(held, control))

    def _control(self, held: HeldTurn, turn_log: TurnLog) -> TurnControl:
        async def calling() -> int:
            await self._writer.flush(turn_log)
            return turn_log.called_at

        control = TurnControl(lambda: self._steering.take_in(held, turn_log), calling)
        control.stop.at_boundary = self.is_draining
        return control

    def _start(self, turn: NodeTurn, steps: AsyncGenerator[TurnStep]) -> None:
        turn.task = asyncio.create_task(self._run(turn, steps))
        self._running.add(turn)

    async def _read(self, turn_log: TurnLog) -> list[LogEntry]:
        """A turn as stored, and its log so far."""
        chunks = await self._store.log.read(turn_log.turn_id, 0)
        if not is_whole(chunks):
            raise UnreadableEvent("Part of the log is missing.")
        entries = [entry for chunk in chunks for entry in decode_entries(chunk.events)]
        turn_log.fill(chunks, entries)
        return entries

    async def _run(self, turn: NodeTurn, steps: AsyncGenerator[TurnStep]) -> None:
        held, turn_log = turn.held, turn.log
        add_to_subject(conversation_id=held.conversation.id, turn_id=held.turn.id)
        try:
            if turn.opens_conversation:
                await self._signals.created(held.conversation)
            await self._signals.began(held)
            while await self._step_writer.write(turn, steps, self._run_opened):
                assert self._resumer is not None
                entries = await self._entries(turn_log)
                steps = self._resumer.steps(held, entries, turn.control, is_takeover=False)
        finally:
            # Followers here continue where the turn does: on another node, or after its user's decision.
            self._running.discard(turn_log)
            turn_log.live.close(moved=not turn_log.live.ended and not self.is_draining)

    async def _entries(self, turn_log: TurnLog) -> list[LogEntry]:
        chunks = await self._store.log.read(turn_log.turn_id, 0)
        return [entry for chunk in chunks for entry in decode_entries(chunk.events)]

    async def _end_damaged(self, held: HeldTurn, turn_log: TurnLog) -> None:
        """Ends a turn whose log is only partly readable, with that part."""
        chunks = await self._store.log.read(held.turn.id, 0)
        turn_log.fill_readable(chunks)
        with suppress(TurnLost):
            await self._turn_ends.cut_off(held, turn_log, ABANDONED)
