"""This process as one of the nodes that run turns: its leases, its running turns, and those of the dead."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from dataclasses import dataclass

from threadkeep.clock import Clock
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.errors import StorageConflict, StorageError, StorageUnavailable
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    ToolCalled,
    ToolResulted,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.ids import ConversationId, TurnId, UserId, new_uuid
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.engine.stop import Stop, StopReason
from threadkeep.engine.token_estimates import estimate_tokens
from threadkeep.log.format import decode_chunk
from threadkeep.log.live import LiveLog
from threadkeep.log.writer import LogWriter, TurnLog, TurnLost, persist
from threadkeep.logs import Subject, about, add_to_subject
from threadkeep.metrics import Metrics
from threadkeep.ports.bus import Bus, Signal
from threadkeep.ports.store import Store
from threadkeep.ports.turn_log import HeldTurn, Lease, LogChunk
from threadkeep.ports.turns import IdempotencyKey
from threadkeep.tasks import end_tasks
from threadkeep.wire.events import UnreadableEvent

log = logging.getLogger("threadkeep.turns")

LEASE_MS = 4_000
BEAT_S = 1.0
CLOSE_S = 10.0
ABORT_S = 8.0  # longer than a lease: a node that is gone has lost its turns by then
FIRST_FENCE = 1

WROTE, ABORT, CHANGED = "wrote", "abort", "changed"
INTERRUPTED = Failed("INTERRUPTED", "The server could not go on with this turn.", retryable=True)


@dataclass(slots=True)
class _Running:
    """A turn that runs here."""

    conversation_id: ConversationId
    user_id: UserId
    task: "asyncio.Task[None]"
    log: TurnLog
    stop: Stop


@dataclass(slots=True)
class _Mirror:
    """A turn that runs elsewhere, or has ended, and is followed from here."""

    live: LiveLog
    task: "asyncio.Task[None]"
    wake: asyncio.Event
    followers: int = 0


class Node:
    """Runs turns detached from whoever asked for them, and shows those of other nodes."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, metrics: Metrics, *, alone: bool) -> None:
        self._metrics = metrics
        self.id = new_uuid()
        self._store = store
        self._bus = bus
        self._clock = clock
        self._alone = alone
        self._beginning: dict[TurnId, tuple[UserId, asyncio.Task[None]]] = {}
        self._running: dict[TurnId, _Running] = {}
        self._mirrors: dict[TurnId, _Mirror] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self._waiting: dict[ConversationId, set[asyncio.Event]] = {}
        self.is_draining = False
        self._writer = LogWriter(store.log, clock, self._announce, metrics.event_lag)
        self._unsubscribe = bus.subscribe(self._hear)
        # Apart, so that no lease of ours runs out while the many turns of a dead node are ended.
        self._beating = [asyncio.create_task(self._beat(it)) for it in (self._renew, self._bury_the_dead)]

    @property
    def _lease(self) -> Lease:
        return Lease(self.id, FIRST_FENCE, LEASE_MS)

    async def begin(
        self,
        begun: BegunTurn,
        key: IdempotencyKey | None,
        events: Callable[[Stop], AsyncGenerator[EventBody]],
    ) -> None:
        """Stores a turn with this node's lease and its first event, which is shown at once, and runs it.

        Whoever asked for it may be cancelled meanwhile: what is stored has to be run.
        """
        task = asyncio.create_task(self._begin(begun, key, events))
        self._beginning[begun.turn.id] = begun.conversation.user_id, task
        await asyncio.shield(task)

    async def _begin(
        self,
        begun: BegunTurn,
        key: IdempotencyKey | None,
        events: Callable[[Stop], AsyncGenerator[EventBody]],
    ) -> None:
        turn_log = self._writer.open(begun.turn.id, FIRST_FENCE)
        opening = turn_log.take(TurnStart.of(begun.turn))
        assert opening is not None
        try:
            await self._store.turns.begin(begun, self._lease, opening, key)
        except StorageUnavailable:
            # Unless it was stored, and only the answer was lost on the way.
            if await self._store.turns.status(begun.turn.id) is not TurnStatus.RUNNING:
                raise
        finally:
            del self._beginning[begun.turn.id]
        turn_log.live.extend([opening])
        stop = Stop()
        held = HeldTurn(begun.turn, begun.conversation, begun.assistant_message, FIRST_FENCE)
        task = asyncio.create_task(self._run(held, turn_log, events(stop)))
        self._running[begun.turn.id] = _Running(
            begun.conversation.id, begun.conversation.user_id, task, turn_log, stop
        )
        task.add_done_callback(lambda _: self._running.pop(begun.turn.id, None))

    @property
    def running_count(self) -> int:
        """How many turns run here."""
        return sum(not running.log.live.ended for running in self._running.values())

    def running_of(self, user_id: UserId) -> int:
        """How many turns of a user run here or begin to; who has seen a turn's end can begin the next."""
        running = sum(it.user_id == user_id and not it.log.live.ended for it in self._running.values())
        return running + sum(it == user_id for it, _ in self._beginning.values())

    async def drain(self, grace_s: float) -> None:
        """Begins no further turn, gives those that run so long to end by themselves, and ends the rest.

        Whoever follows a turn sees its end, as long as somebody serves them while this runs.
        """
        await self._begin_no_more()
        tasks = {running.task for running in self._running.values()}
        if tasks and grace_s:
            log.info("waiting for %d running turns, %g s at most", len(tasks), grace_s)
            await asyncio.wait(tasks, timeout=grace_s)
        await self._interrupt()

    def stop(self, turn_id: TurnId, reason: StopReason) -> bool:
        """Stops a turn that runs here; tells whether there was one."""
        running = self._running.get(turn_id)
        if running is not None:
            running.stop.request(reason)
        return running is not None

    async def abort(self, turn_id: TurnId) -> bool:
        """Aborts a turn, wherever it runs; tells whether it has ended, or its node does not answer."""
        if not self.stop(turn_id, "abort"):
            await self._store.log.request_abort(turn_id)
            await self._bus.publish([f"{ABORT} {turn_id}"])
        async with self.watch(turn_id) as live:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ABORT_S):
                    async for _ in live.follow(live.last_seq):
                        pass
            return live.ended

    @contextlib.asynccontextmanager
    async def watch(self, turn_id: TurnId) -> AsyncGenerator[LiveLog]:
        """The log of a turn as it is stored, wherever it runs or has run."""
        running = self._running.get(turn_id)
        if running is not None:
            yield running.log.live
            return
        mirror = self._mirrors.get(turn_id)
        if mirror is None:
            live, wake = LiveLog(turn_id), asyncio.Event()
            mirror = _Mirror(live, asyncio.create_task(self._feed(live, wake)), wake)
            self._mirrors[turn_id] = mirror
        mirror.followers += 1
        try:
            yield mirror.live
        finally:
            mirror.followers -= 1
            if not mirror.followers:
                mirror.task.cancel()
                del self._mirrors[turn_id]

    async def announce_change(self, conversation_id: ConversationId) -> None:
        """Tells those who follow a conversation, on all nodes, that it is deleted or has another session."""
        await self._bus.publish([f"{CHANGED} {conversation_id}"])

    @contextlib.contextmanager
    def changes(self, conversation_id: ConversationId) -> Generator[asyncio.Event]:
        """An event that is set whenever a turn begins in a conversation, or a change of it is announced."""
        changed = asyncio.Event()
        self._waiting.setdefault(conversation_id, set()).add(changed)
        try:
            yield changed
        finally:
            waiting = self._waiting[conversation_id]
            waiting.remove(changed)
            if not waiting:
                del self._waiting[conversation_id]

    async def close(self) -> None:
        """Ends the turns that run here as interrupted, keeping what they have said."""
        self._unsubscribe()
        await end_tasks(*self._beating)
        await self._begin_no_more()
        await end_tasks(*(task for _, task in self._beginning.values()))
        await end_tasks(*self._given_up)
        await end_tasks(*await self._interrupt(), *(mirror.task for mirror in self._mirrors.values()))
        for mirror in self._mirrors.values():
            mirror.live.close()
        await self._writer.close()

    async def _begin_no_more(self) -> None:
        """Lets those turns run that are being stored, unless that takes too long, and no others."""
        self.is_draining = True
        if self._beginning:
            await asyncio.wait([task for _, task in self._beginning.values()], timeout=CLOSE_S)

    async def _interrupt(self) -> set["asyncio.Task[None]"]:
        """Stops what runs here; the turns that had to be stopped, ended unless they took too long."""
        tasks = {running.task for running in self._running.values()}
        for running in tuple(self._running.values()):
            running.stop.request("interrupt")
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        return tasks

    async def _run(self, held: HeldTurn, turn_log: TurnLog, events: AsyncGenerator[EventBody]) -> None:
        add_to_subject(conversation_id=held.conversation.id, turn_id=held.turn.id)
        try:
            await self._announce(turn_log.live.since(0))
            await self._write(held, turn_log, events)
            if not turn_log.live.ended:
                await self._give_up(turn_log)
        finally:
            turn_log.live.close()

    async def _write(self, held: HeldTurn, turn_log: TurnLog, events: AsyncGenerator[EventBody]) -> None:
        """Stores and shows a turn's events to the end, if that can be."""
        try:
            async for body in events:
                if isinstance(body, Done | Failed):
                    await self._end(held, turn_log, body)
                else:
                    await turn_log.add(body, at_once=isinstance(body, ToolCalled))
        except TurnLost:
            log.warning("turn %s was taken over by another node", held.turn.id)
        except StorageError as exc:
            # Nobody was shown what is not stored.
            log.error("turn %s could not be stored: %s", held.turn.id, exc.message)
        except Exception:
            log.exception("turn %s broke", held.turn.id)
            if not turn_log.live.ended:
                await self._end_broken(held, turn_log)
        finally:
            await events.aclose()

    async def _give_up(self, turn_log: TurnLog) -> None:
        """Lets the lease of a turn run out, so that whoever can ends it; its followers see that end."""
        running = self._running.pop(turn_log.turn_id)
        self._given_up.add(running.task)
        running.task.add_done_callback(self._given_up.discard)
        await self._feed(turn_log.live, asyncio.Event())

    async def _end_broken(self, held: HeldTurn, turn_log: TurnLog) -> None:
        """Ends a turn that we ourselves broke. Where even that fails, its lease runs out."""
        failure = Failed("INTERNAL_ERROR", "Something went wrong on our side; it has been logged.")
        try:
            await self._writer.flush(turn_log)
            await self._end(held, turn_log, *await self._loose_ends(held, turn_log), failure)
        except Exception:
            log.exception("turn %s could not be ended", held.turn.id)

    async def _end(self, held: HeldTurn, turn_log: TurnLog, *last: EventBody) -> None:
        """Stores what is pending, the last events, the reply and the turn's end together, then shows them."""
        await self._writer.settle(turn_log)
        chunk = turn_log.take(*last)
        assert chunk is not None
        reply = turn_log.folding.message(held.reply)
        ended = held.conversation.end_turn(held.turn, reply, self._clock())
        try:
            await persist(lambda: self._store.turns.end(ended, chunk, held.fence))
        except StorageConflict as exc:
            # Unless it was stored at the first try, and only the answer was lost on the way.
            written = await self._store.log.read(held.turn.id, chunk.first_seq - 1)
            if [it.events for it in written] != [chunk.events]:
                raise TurnLost from exc
        turn_log.live.extend([chunk], ended=True)
        self._metrics.event_lag.observe((self._clock() - turn_log.taken_at) / 1000)
        self._metrics.turn_ended(ended.turn)
        _tell_end(ended.turn)
        await self._announce([chunk])

    async def _announce(self, chunks: Iterable[LogChunk]) -> None:
        signals: list[Signal] = []
        for chunk in chunks:
            signals.append(f"{WROTE} {chunk.turn_id}")
            # That a turn has begun is worth telling once there is something to read.
            if chunk.first_seq == 1 and (running := self._running.get(chunk.turn_id)):
                signals.append(f"{CHANGED} {running.conversation_id}")
        try:
            await self._bus.publish(signals)
        except Exception:  # whoever waits looks by itself too, and no turn may end of it
            log.exception("what is stored could not be announced")

    def _hear(self, signal: Signal) -> None:
        kind, _, name = signal.partition(" ")
        if kind == CHANGED:
            for changed in self._waiting.get(ConversationId(name), ()):
                changed.set()
            return
        turn_id = TurnId(name)
        if kind == ABORT:
            self.stop(turn_id, "abort")
        elif kind == WROTE and (mirror := self._mirrors.get(turn_id)):
            mirror.wake.set()

    async def _feed(self, live: LiveLog, wake: asyncio.Event) -> None:
        """Reads the log of a turn that does not run here, when told to and from time to time."""
        while not live.closed:
            wake.clear()
            try:
                # The status first: once it says that the turn has ended, the log is complete.
                status = await self._store.turns.status(live.turn_id)
                if status is None:  # purged
                    live.close()
                    return
                ended = status is not TurnStatus.RUNNING
                live.extend(await self._store.log.read(live.turn_id, live.last_seq), ended=ended)
            except StorageError as exc:
                log.warning("turn %s cannot be read: %s", live.turn_id, exc.message)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await wake.wait()

    async def _beat(self, look_after: Callable[[], Awaitable[None]]) -> None:
        """Looks after turns from time to time."""
        while True:
            try:
                await look_after()
            except StorageError as exc:
                log.warning("turns could not be looked after: %s", exc.message)
            except Exception:
                log.exception("looking after the turns failed")
            await asyncio.sleep(BEAT_S)

    async def _renew(self) -> None:
        """Renews the leases, and hears aborts that were not signalled."""
        ours = dict(self._running)
        if not ours:
            return
        held = await self._store.log.renew(self.id, ours, LEASE_MS)
        for turn_id, running in ours.items():
            if turn_id not in held:
                running.log.error = running.log.error or TurnLost()
                running.stop.request("interrupt")
            elif held[turn_id]:
                running.stop.request("abort")

    async def _bury_the_dead(self) -> None:
        for turn_id in await self._store.log.abandoned(self.id, alone=self._alone):
            if turn_id not in self._running:  # ours are late at most
                with about(Subject(turn_id=turn_id)):
                    await self._bury(turn_id)

    async def _bury(self, turn_id: TurnId) -> None:
        """Ends a turn whose node is gone: what was shown is kept, and the conversation goes on."""
        held = await self._store.log.adopt(turn_id, self._lease, alone=self._alone)
        if held is None:
            return
        turn_log = self._writer.open(turn_id, held.fence)
        chunks = await self._store.log.read(turn_id, 0)
        try:
            for chunk in chunks:
                for event in decode_chunk(chunk.events):
                    turn_log.folding.add(event)
        except UnreadableEvent as exc:  # of a node of a later version: what comes before it is kept
            log.warning("turn %s is ended with what can be read of it: %s", turn_id, exc.message)
            turn_log.folding.last_seq = chunks[-1].last_seq
        try:
            await self._end(held, turn_log, *await self._loose_ends(held, turn_log), INTERRUPTED)
        except TurnLost:
            return
        log.warning("turn %s was ended: its node is gone", turn_id)

    async def _loose_ends(self, held: HeldTurn, turn_log: TurnLog) -> list[EventBody]:
        """What a log still lacks before its last event: results of tools, what was spent."""
        folding = turn_log.folding
        ends: list[EventBody] = [
            ToolResulted(
                call.tool_call_id, call.tool_name, "interrupted", error="The process that ran the tool ended."
            )
            for call in folding.open_calls
        ]
        reply = folding.message(held.reply)
        if reply.usage is None:
            sent = await self._store.receipts.get(held.turn.id)
            asked, answered = sent[0].token_estimate if sent else 0, estimate_tokens(str(reply.content))
            if asked or answered:
                ends.append(UsageReported(asked, answered, estimated=True))
        return ends


def _tell_end(turn: Turn) -> None:
    status = f"{turn.status} {turn.error.code}" if turn.error else turn.status
    took = (turn.ended_at or turn.started_at) - turn.started_at
    seen = {"status": turn.status, "code": turn.error and turn.error.code, "duration_ms": took}
    log.info("turn ended: %s after %d ms", status, took, extra={"fields": seen})
