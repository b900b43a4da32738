"""Runs turns: each writes to its log until it ends, whether or not anybody follows it.

A turn that this node takes over, or that continues after its user's decision, resumes from its log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from threadkeep.aside import LogWork
from threadkeep.domain.conversation import BegunTurn, EndedTurn, WaitingEnd
from threadkeep.domain.errors import StorageError, StorageUnavailable, ThreadkeepError
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.ending import ABANDONED
from threadkeep.engine.fold import Folding
from threadkeep.engine.stop import StopReason, TurnLost
from threadkeep.log.format import DAMAGED, LogEntry, continues, decode_entries
from threadkeep.log.live import LEAST_KEPT
from threadkeep.log.portions import passing
from threadkeep.log.writer import LogWriter, TurnLog, opening_entries, persist
from threadkeep.program_log import add_to_subject
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.leases import KeptLease, lease_of
from threadkeep.runtime.open_steps import OpenSteps
from threadkeep.runtime.programs import NodePrograms
from threadkeep.runtime.running import NodeTurn, NodeTurns
from threadkeep.runtime.signals import Signals
from threadkeep.runtime.steering import SteeringMessages
from threadkeep.runtime.step_watch import StepWatch
from threadkeep.runtime.step_writer import StepWriter
from threadkeep.runtime.turn_course import Resumer, TurnCourse
from threadkeep.runtime.turn_ends import TurnEnds
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import NEVER_MS, HeldTurn
from threadkeep.tasks import end_tasks
from threadkeep.wire.events import UnreadableEvent

log = logging.getLogger("threadkeep.turns")

CLOSE_S = 10.0

Keep = Callable[[], Awaitable[None]]
"""Keeps what is held while a log is read."""


async def _keep_nothing() -> None:
    """For those whose turn runs or waits."""


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
        watch: StepWatch,
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
            store, running, writer, turn_ends, signals, self._open_next, self._run_new, watch
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
        control = self._control(held, turn_log)
        if stop_reason is not None:
            control.stop.request(stop_reason)
        if held.is_aborting:
            control.stop.request("abort")
        resuming = self._resumer.resume(held)
        lease = KeptLease(self._node_id, self._store.log, held.turn.id)

        async def keep() -> None:
            if await lease.keep():
                control.stop.request("abort")

        steps = OpenSteps()
        readers = (turn_log.take_in, resuming.add, *([steps.recall] if held.turn.code else ()))
        try:
            newest = await self._read(held.turn.id, *readers, keep=keep)
        except DAMAGED as exc:
            log.error("can't resume turn %s because its log is damaged: %s", held.turn.id, exc)
            await self._end_damaged(held, turn_log)
            return
        except TurnLost:
            log.info("another node has taken over turn %s", held.turn.id)
            return
        turn_log.live.extend(newest)
        course = resuming.course(is_takeover=is_takeover)
        self._start(NodeTurn(held, turn_log, control, course, steps=steps))

    async def end_of_waiting(self, held: HeldTurn) -> WaitingEnd:
        """The end of a waiting turn whose user continues without deciding; stores nothing."""
        turn_log = self._writer.open(held.turn, held.conversation, held.fence)
        try:
            await self._read(held.turn.id, turn_log.take_in)
        except DAMAGED as exc:
            log.error("ending turn %s with the readable part of its damaged log: %s", held.turn.id, exc)
            await self._read_readable(turn_log)
        return await self._turn_ends.end_of_waiting(held, turn_log)

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

    async def _read(
        self, turn_id: TurnId, *readers: Callable[[LogEntry], None], keep: Keep = _keep_nothing
    ) -> Sequence[LogChunk]:
        """Passes the entries of a turn's log to its readers, a page at a time; returns its newest chunks.

        Nobody but the caller writes the log meanwhile.
        """
        work, last_seq = LogWork(), 0
        newest = deque[LogChunk](maxlen=LEAST_KEPT)
        async for chunks in self._store.log.pages(turn_id, 0):
            if not continues(chunks, last_seq):
                break
            await work.take(partial(_pass_on, readers), chunks, at_end=False)
            newest.extend(chunks)
            last_seq = chunks[-1].last_seq
            await keep()
        else:
            if last_seq:
                return newest
        raise UnreadableEvent("Part of the log is missing.")

    async def _read_readable(self, turn_log: TurnLog) -> None:
        """Reads as much of a damaged log as is readable."""
        turn_log.folding = Folding()
        work, is_readable, last_seq = LogWork(), True, 0
        async for chunks in self._store.log.pages(turn_log.turn_id, 0):
            if is_readable:
                try:
                    await work.take(passing(turn_log.take_in), chunks, at_end=False)
                except DAMAGED:
                    is_readable = False
            last_seq = chunks[-1].last_seq
        turn_log.folding.last_seq = last_seq

    async def _run(self, turn: NodeTurn) -> None:
        held, turn_log, course = turn.held, turn.log, turn.course
        add_to_subject(conversation_id=held.conversation.id, turn_id=held.turn.id)
        try:
            if turn.opens_conversation:
                await self._signals.created(held.conversation)
            await self._signals.began(held)
            while await self._step_writer.write(turn, course.steps(held, turn.control)):
                assert self._resumer is not None
                resuming = self._resumer.resume(held)
                turn.steps = OpenSteps()
                readers = (resuming.add, *([turn.steps.recall] if held.turn.code else ()))
                await self._read(held.turn.id, *readers)
                course = resuming.course(is_takeover=False)
        finally:
            # Followers here continue where the turn does: on another node, or after its user's decision.
            self._running.discard(turn_log)
            turn_log.live.close(moved=not turn_log.live.ended and not self.is_draining)

    async def _end_damaged(self, held: HeldTurn, turn_log: TurnLog) -> None:
        """Ends a turn whose log is only partly readable, with that part."""
        await self._read_readable(turn_log)
        with suppress(TurnLost):
            await self._turn_ends.cut_off(held, turn_log, ABANDONED)


def _pass_on(readers: Sequence[Callable[[LogEntry], None]], chunks: Sequence[LogChunk]) -> None:
    for chunk in chunks:
        for entry in decode_entries(chunk.events):
            for read in readers:
                read(entry)
