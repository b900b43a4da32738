"""Runs turns: each writes to its log until it ends, whether or not anybody follows it.

A turn that this node takes over, or that continues after its user's decision, resumes from its log.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from threadkeep.aside import LogWork
from threadkeep.domain.conversation import BegunTurn, EndedTurn, WaitingEnd
from threadkeep.domain.errors import StorageError, StorageUnavailable, ThreadkeepError
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.ending import ABANDONED
from threadkeep.engine.stop import StopReason
from threadkeep.log.format import LogEntry, decode_entries, is_whole
from threadkeep.log.writer import DAMAGED, LogWriter, TurnLog, TurnLost, opening_entries, persist
from threadkeep.program_log import add_to_subject
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.leases import lease_of
from threadkeep.runtime.programs import NodePrograms
from threadkeep.runtime.running import NodeTurn, NodeTurns
from threadkeep.runtime.signals import Signals
from threadkeep.runtime.steering import SteeringMessages
from threadkeep.runtime.step_writer import StepWriter
from threadkeep.runtime.turn_course import Resumer, TurnCourse
from threadkeep.runtime.turn_ends import TurnEnds
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import NEVER_MS, HeldTurn
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
        programs: NodePrograms,
    ) -> None:
        self.programs = programs
        """What agents are programs that this node can run."""
        self._node_id = node_id
        self._store = store
        self._running = running
        self._writer = writer
        self._turn_ends = turn_ends
        self._steering = steering
        self._signals = signals
        self._beginning: dict[TurnId, tuple[UserId, asyncio.Task[None]]] = {}
        self._step_writer = StepWriter(
            store, running, writer, turn_ends, signals, self._open_next, self._run_new
        )
        self._resumer: Resumer | None = None
        self.is_draining = False
        """Whether this process is ending and starts no more turns."""

    @property
    def can_resume(self) -> bool:
        """Whether this node can take over turns."""
        return self._resumer is not None and not self.is_draining

    def knows(self, model: str | None) -> bool:
        """Whether this node has a model."""
        return self._resumer is not None and self._resumer.knows(model)

    @property
    def resumes_within_ms(self) -> int:
        """How long after the loss of its node a turn is resumed."""
        return self._resumer.within_ms if self._resumer is not None else NEVER_MS

    def resume_with(self, resumer: Resumer) -> None:
        """From now on, this node can take over turns."""
        self._resumer = resumer

    async def begin(self, begun: BegunTurn, course: TurnCourse) -> None:
        """Stores a turn with this node's lease and its first event, shows that event, and runs the turn.

        It does so even if the request is cancelled meanwhile: a stored turn must run.
        """
        task = asyncio.create_task(self._begin(self._open(begun, course)))
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
        course = self._resumer.resume(held, entries, is_takeover=is_takeover)
        self._start(NodeTurn(held, turn_log, control, course))

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
        await self._leave_programs()
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
        await self._leave_programs()
        await end_tasks(*(task for _, task in self._beginning.values()))
        await end_tasks(*await self._hand_off_all())

    async def _begin_no_more(self) -> None:
        """Starts no more turns; waits for those being stored, but not too long."""
        self.is_draining = True
        if self._beginning:
            await asyncio.wait([task for _, task in self._beginning.values()], timeout=CLOSE_S)

    async def _leave_programs(self) -> None:
        """From now on, other nodes run what only this one could."""
        with suppress(StorageError):  # then it is soon seen no more
            await self.programs.close()

    async def _hand_off_all(self) -> set["asyncio.Task[None]"]:
        """Stops the turns that run here; returns their tasks, done unless they took too long."""
        tasks = self._running.tasks
        for turn in self._running.all().values():
            turn.control.stop.request("hand_off")
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        return tasks

    def _open(self, begun: BegunTurn, course: TurnCourse) -> NodeTurn:
        """Gives a turn a lease and a log, ready to be stored."""
        lease = lease_of(self._node_id)
        turn_log = self._writer.open(begun.turn, begun.conversation, lease.fence)
        opening = turn_log.take(*opening_entries(begun.turn, by_admin=course.by_admin))
        assert opening is not None
        held = HeldTurn(begun.turn, begun.conversation, begun.assistant_message, lease.fence)
        begun = replace(begun, lease=lease, opening=opening)
        return NodeTurn(held, turn_log, self._control(held, turn_log), course, begun)

    async def _open_next(self, turn: NodeTurn, ended: EndedTurn, message: QueuedMessage) -> NodeTurn | None:
        """The turn of a message queued behind one that ends; None if it can't begin: the queue is held."""
        held, prepare_next = turn.held, turn.course.prepare_next
        if prepare_next is None or ended.turn.status is not TurnStatus.COMPLETED:
            return None
        begun_with, began_at = held.turn.begun_with, held.turn.started_at
        if begun_with is not None and begun_with.leaves_queue and message.created_at <= began_at:
            return None
        # Loaded again: cards may have arrived since the turn began.
        user_id, id_ = held.conversation.user_id, held.conversation.id
        conversation = await persist(lambda: self._store.conversations.get(user_id, id_))
        if conversation is None:  # deleted
            return None
        at = ended.turn.ended_at or began_at
        freed = conversation.end_turn(held.turn, ended.assistant_message, at).conversation
        try:
            begun, course = await persist(lambda: prepare_next(held.turn, freed, message))
        except StorageError:
            raise
        except ThreadkeepError as exc:
            log.info("the queue is on hold: %s", exc.message)
            return None
        return self._open(begun, course)

    async def _begin(self, turn: NodeTurn) -> None:
        begun = turn.begun
        assert begun is not None
        try:
            try:
                await self._store_start(begun)
            except ThreadkeepError:  # a turn that doesn't start doesn't count, however often it is tried
                await turn.course.give_back()
                raise
            if (waiting_end := begun.waiting_end) is not None:
                await self._turn_ends.announce_end(waiting_end)
            self._run_new(turn)
        finally:  # only now: until it runs, it is nobody else's to count and to wait for
            del self._beginning[turn.log.turn_id]

    async def _store_start(self, begun: BegunTurn) -> None:
        try:
            await self._store.turns.begin(begun)
        except StorageUnavailable:
            # It may have been stored, and only the response was lost.
            if await self._store.turns.status(begun.turn.id) is not TurnStatus.RUNNING:
                raise

    def _run_new(self, turn: NodeTurn) -> None:
        """Runs a turn whose start is stored: by itself, or in the commit that ended the turn before it."""
        assert turn.begun is not None and turn.begun.opening is not None
        turn.log.live.extend([turn.begun.opening])
        self._start(turn)

    def _control(self, held: HeldTurn, turn_log: TurnLog) -> TurnControl:
        async def calling() -> int:
            await self._writer.flush(turn_log)
            return turn_log.called_at

        return TurnControl(lambda: self._steering.take_in(held, turn_log), calling)

    def _start(self, turn: NodeTurn) -> None:
        turn.control.stop.at_boundary = self.is_draining
        self._running.add(turn, asyncio.create_task(self._run(turn)))

    async def _read(self, turn_log: TurnLog) -> list[LogEntry]:
        """A turn as stored, and its log so far."""
        chunks = await self._store.log.read(turn_log.turn_id, 0)
        if not is_whole(chunks):
            raise UnreadableEvent("Part of the log is missing.")
        entries = await LogWork().take(_entries_of, chunks, at_end=False)
        turn_log.fill(chunks, entries)
        return entries

    async def _run(self, turn: NodeTurn) -> None:
        held, turn_log, course = turn.held, turn.log, turn.course
        add_to_subject(conversation_id=held.conversation.id, turn_id=held.turn.id)
        try:
            if turn.opens_conversation:
                await self._signals.created(held.conversation)
            await self._signals.began(held)
            while await self._step_writer.write(turn, course.steps(held, turn.control)):
                assert self._resumer is not None
                entries = await self._entries(turn_log)
                course = self._resumer.resume(held, entries, is_takeover=False)
        finally:
            # Followers here continue where the turn does: on another node, or after its user's decision.
            self._running.discard(turn_log)
            turn_log.live.close(moved=not turn_log.live.ended and not self.is_draining)

    async def _entries(self, turn_log: TurnLog) -> list[LogEntry]:
        chunks = await self._store.log.read(turn_log.turn_id, 0)
        return await LogWork().take(_entries_of, chunks, at_end=False)

    async def _end_damaged(self, held: HeldTurn, turn_log: TurnLog) -> None:
        """Ends a turn whose log is only partly readable, with that part."""
        chunks = await self._store.log.read(held.turn.id, 0)
        turn_log.fill_readable(chunks)
        with suppress(TurnLost):
            await self._turn_ends.cut_off(held, turn_log, ABANDONED)


def _entries_of(chunks: Sequence[LogChunk]) -> list[LogEntry]:
    return [entry for chunk in chunks for entry in decode_entries(chunk.events)]
