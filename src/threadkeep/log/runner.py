"""Runs turns: each begins, says what it says into its log, and ends, whether or not anybody follows it."""

import asyncio
import logging
from collections.abc import AsyncGenerator

from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.errors import StorageError, StorageUnavailable
from threadkeep.domain.events import Done, EventBody, Failed, ToolCalled, TurnStart, UsageReported
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.ending import INTERNAL_ERROR
from threadkeep.engine.stop import Stop
from threadkeep.log.end_writer import Begun, EndWriter
from threadkeep.log.leases import lease_of
from threadkeep.log.mirrors import feed
from threadkeep.log.running import RunningTurn, RunningTurns
from threadkeep.log.signals import Signals
from threadkeep.log.steering import SteeringDesk
from threadkeep.log.work import Events, Succeed
from threadkeep.log.writer import LogWriter, TurnLog, TurnLost
from threadkeep.logs import add_to_subject
from threadkeep.ports.store import Store
from threadkeep.ports.turn_log import HeldTurn
from threadkeep.ports.turns import FromQueue, IdempotencyKey
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.turns")

CLOSE_S = 10.0


class Runner:
    """Runs turns on this node, detached from the requests that began them."""

    def __init__(
        self,
        node_id: str,
        store: Store,
        running: RunningTurns,
        writer: LogWriter,
        end_writer: EndWriter,
        steering: SteeringDesk,
        signals: Signals,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._running = running
        self._writer = writer
        self._end_writer = end_writer
        self._steering = steering
        self._signals = signals
        self._beginning: dict[TurnId, tuple[UserId, asyncio.Task[None]]] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self.is_draining = False

    async def begin(
        self,
        begun: BegunTurn,
        key: IdempotencyKey | None,
        events: Events,
        *,
        succeed: Succeed | None = None,
        queue: FromQueue | None = None,
    ) -> None:
        """Stores a turn with this node's lease and its first event, which is shown at once, and runs it.

        The request may be cancelled meanwhile: what is stored has to be run.
        """
        task = asyncio.create_task(self._begin(begun, key, queue, events, succeed))
        self._beginning[begun.turn.id] = begun.conversation.user_id, task
        await asyncio.shield(task)

    def count_of(self, user_id: UserId) -> int:
        """How many turns of a user run here or begin to; who has seen a turn's end can begin the next."""
        beginning = sum(it == user_id for it, _ in self._beginning.values())
        return self._running.count_of(user_id) + beginning

    async def drain(self, grace_s: float) -> None:
        """Begins no further turn, gives those that run so long to end by themselves, and ends the rest.

        Followers see how each turn ends, as long as somebody serves them while this runs.
        """
        await self._begin_no_more()
        tasks = self._running.tasks
        if tasks and grace_s:
            log.info("waiting for %d running turns, %g s at most", len(tasks), grace_s)
            await asyncio.wait(tasks, timeout=grace_s)
        await self._interrupt()

    async def close(self) -> None:
        """Ends the turns that run here as interrupted, keeping what they have said."""
        await self._begin_no_more()
        await end_tasks(*(task for _, task in self._beginning.values()))
        await end_tasks(*self._given_up)
        await end_tasks(*await self._interrupt())

    async def _begin_no_more(self) -> None:
        """Lets those turns run that are being stored, unless that takes too long, and no others."""
        self.is_draining = True
        if self._beginning:
            await asyncio.wait([task for _, task in self._beginning.values()], timeout=CLOSE_S)

    async def _interrupt(self) -> set["asyncio.Task[None]"]:
        """Stops what runs here; the turns that had to be stopped, ended unless they took too long."""
        tasks = self._running.tasks
        for turn in self._running.all().values():
            turn.stop.request("interrupt")
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        return tasks

    async def _begin(
        self,
        begun: BegunTurn,
        key: IdempotencyKey | None,
        queue: FromQueue | None,
        events: Events,
        succeed: Succeed | None,
    ) -> None:
        lease = lease_of(self._node_id)
        turn_log = self._writer.open(begun.turn.id, lease.fence)
        opening = turn_log.take(TurnStart.of(begun.turn))
        assert opening is not None
        try:
            await self._store.turns.begin(begun, lease, opening, key, queue=queue)
        except StorageUnavailable:
            # Unless it was stored, and only the answer was lost on the way.
            if await self._store.turns.status(begun.turn.id) is not TurnStatus.RUNNING:
                raise
        finally:
            del self._beginning[begun.turn.id]
        turn_log.live.extend([opening])
        held = HeldTurn(begun.turn, begun.conversation, begun.assistant_message, lease.fence)
        self._start(held, turn_log, events, succeed)

    def _start(self, held: HeldTurn, turn_log: TurnLog, events: Events, succeed: Succeed | None) -> None:
        """Runs a turn whose beginning is stored."""
        stop = Stop()
        body = events(stop, lambda: self._steering.take_in(held, turn_log))
        task = asyncio.create_task(self._run(held, turn_log, body, succeed))
        self._running.add(RunningTurn(held.conversation.user_id, task, turn_log, stop))

    def _run_next(self, next_turn: Begun) -> None:
        """Runs the turn of a queued message, which has begun with the end of the one before it."""
        successor = next_turn.successor
        self._start(next_turn.held, next_turn.log, successor.events, successor.succeed)

    async def _run(
        self,
        held: HeldTurn,
        turn_log: TurnLog,
        events: AsyncGenerator[EventBody],
        succeed: Succeed | None,
    ) -> None:
        add_to_subject(conversation_id=held.conversation.id, turn_id=held.turn.id)
        try:
            await self._signals.began(held.turn)
            await self._write(held, turn_log, events, succeed)
            if not turn_log.live.ended:
                await self._give_up(turn_log)
        finally:
            turn_log.live.close()

    async def _write(
        self,
        held: HeldTurn,
        turn_log: TurnLog,
        events: AsyncGenerator[EventBody],
        succeed: Succeed | None,
    ) -> None:
        """Stores and shows a turn's events to the end, if that can be."""
        asks_for_tools = False
        try:
            async for body in events:
                if isinstance(body, Done | Failed):
                    await self._end_writer.end(held, turn_log, body, succeed=succeed, run_next=self._run_next)
                    continue
                asks_for_tools = asks_for_tools or isinstance(body, ToolCalled)
                # A call of the model with all that it asks for is stored before its tools run.
                is_asked = asks_for_tools and isinstance(body, UsageReported)
                asks_for_tools = asks_for_tools and not is_asked
                await turn_log.add(body, at_once=is_asked)
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

    async def _end_broken(self, held: HeldTurn, turn_log: TurnLog) -> None:
        """Ends a turn that we ourselves broke. Where even that fails, its lease runs out."""
        try:
            await self._writer.flush(turn_log)
            await self._end_writer.cut_off(held, turn_log, INTERNAL_ERROR)
        except Exception:
            log.exception("turn %s could not be ended", held.turn.id)

    async def _give_up(self, turn_log: TurnLog) -> None:
        """Lets the lease of a turn run out, so that another node ends it; its followers see that end."""
        turn = self._running.pop(turn_log.turn_id)
        self._given_up.add(turn.task)
        turn.task.add_done_callback(self._given_up.discard)
        await feed(self._store, turn_log.live, asyncio.Event())
