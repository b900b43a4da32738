"""This process as one of the nodes that run turns."""

import asyncio
import contextlib
from contextlib import AbstractContextManager
from datetime import UTC, tzinfo

from threadkeep.clock import Clock
from threadkeep.domain.conversation import WaitingEnd
from threadkeep.domain.ids import ConversationId, TurnId, new_uuid
from threadkeep.domain.turn import Turn, TurnCode
from threadkeep.domain.user_events import UserEvent
from threadkeep.engine.code.programs import Programs
from threadkeep.engine.spending import Priced, at_no_price
from threadkeep.log.live import LiveLog
from threadkeep.log.writer import LogWriter
from threadkeep.loops import Loops, do_each
from threadkeep.metrics import Metrics
from threadkeep.ports.bus import Bus
from threadkeep.runtime.followers import Followers
from threadkeep.runtime.following import Follower, Following
from threadkeep.runtime.heartbeat import beat
from threadkeep.runtime.leases import Leases
from threadkeep.runtime.mirrors import Mirrors
from threadkeep.runtime.programs import NodePrograms
from threadkeep.runtime.recovery import Recovery
from threadkeep.runtime.runner import Runner
from threadkeep.runtime.running import NodeTurns
from threadkeep.runtime.signals import Signals
from threadkeep.runtime.steering import SteeringMessages
from threadkeep.runtime.step_watch import StepWatch
from threadkeep.runtime.turn_ends import TurnEnds
from threadkeep.runtime.user_events import UserEvents
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.tasks import end_tasks

ABORT_S = 8.0  # longer than a lease: a dead node has lost its turns by then


class Node:
    """Runs turns (`runner`), follows them on any node, and resumes those of dead nodes."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        user_events: UserEvents,
        clock: Clock,
        metrics: Metrics,
        loops: Loops,
        *,
        alone: bool,
        zone: tzinfo = UTC,
        priced: Priced = at_no_price,
        programs: Programs | None = None,
        built_in: Programs | None = None,
    ) -> None:
        self.id = new_uuid()
        self._store = store
        self._running = NodeTurns()
        self._mirrors = Mirrors(store, loops)
        self._user_events = user_events
        self._signals = Signals(
            bus,
            user_events,
            on_wrote=self._mirrors.wake,
            on_abort=lambda it: self._running.stop(it, "abort"),
            on_decided=self._running.nudge,
            on_needed=self._look_for_turns,
        )
        self._writer = LogWriter(
            store.log,
            clock,
            self._signals.wrote,
            metrics.event_lag,
            lambda: self._running.count,
            loops,
            zone,
            metrics.charged,
        )
        turn_ends = TurnEnds(store, self._writer, self._signals, clock, metrics, priced)
        steering = SteeringMessages(store, self._writer, self._signals, clock)
        self.programs = NodePrograms(
            self.id, store.programs, self._running.count_by_program, programs, built_in
        )
        self.runner = Runner(
            self.id,
            store,
            self._running,
            self._writer,
            turn_ends,
            steering,
            self._signals,
            self.programs,
            StepWatch(clock, metrics),
        )
        followers = Followers(store.log, self._running)
        self._following = Following(store, self._running, self._mirrors, followers)
        leases = Leases(self.id, store.log, self._running)
        self._recovery = Recovery(
            self.id, store, self._running, self.runner, clock, self.programs, self._signals, alone=alone
        )
        self._needed = asyncio.Event()
        # Separate, so that our leases don't expire while we take over many turns of a dead node.
        self._beats = [
            beat(loops, "renewal of leases", leases.renew),
            beat(loops, "takeover of turns", self._recovery.recover_abandoned),
            loops.start("takeover of turns that need a program", self._recover_needed),
            beat(loops, "sight of programs", self.programs.note_seen),
            beat(loops, "notices of absent programs", self._recovery.note_absences),
            beat(loops, "expiry of approvals", self._recovery.end_expired),
            beat(loops, "end of turns that nobody follows", followers.look),
            beat(loops, "rest of moved paths", store.branches.settle),
        ]

    async def recover_abandoned(self) -> None:
        """Takes over turns of dead nodes without waiting for the next heartbeat."""
        await do_each({"takeover of turns": self._recovery.recover_abandoned})

    async def end_of_waiting(self, turn_id: TurnId) -> WaitingEnd | None:
        """The end of a waiting turn whose user continues without deciding; None if it isn't waiting."""
        held = await self._store.log.waiting(turn_id)
        return await self.runner.end_of_waiting(held) if held else None

    async def resume(self, held: HeldTurn) -> None:
        """Continues a turn whose user has decided; another node does if this one is ending or doesn't know
        the turn's model.
        """
        turn, code = held.turn, held.turn.code
        has_code = code is None or self.programs.can_run(code)
        if self.runner.can_resume and has_code and not self._recovery.leaves(turn.id, turn.model, code):
            await self.runner.resume(held)
        else:
            await self._store.log.release(turn.id, held.fence)
            if code is not None:
                await self._signals.needs(code.key)

    def _look_for_turns(self, key: str) -> None:
        """A turn needs a program: if we have it, takes it over without waiting for the next heartbeat."""
        if self.programs.can_run(TurnCode(key)):
            self._needed.set()

    async def _recover_needed(self) -> None:
        await self._needed.wait()
        self._needed.clear()
        await self._recovery.recover_abandoned()

    async def decided(self, turn_id: TurnId) -> None:
        """Notifies the node that runs a turn that its user has decided."""
        self._running.nudge(turn_id)
        await self._signals.decided(turn_id)

    async def follow(self, turn: Turn, after: int = 0, *, from_first: bool = False) -> Follower | None:
        """A turn's log for a reader who has seen its events up to `after`; None if nothing is left."""
        return await self._following.follow(turn, after, from_first=from_first)

    async def abort(self, turn_id: TurnId) -> bool:
        """Aborts a turn, wherever it runs or waits; returns whether it has ended: its node may not respond.

        If the turn waits and this node can't end it, being too old or itself ending, another one does.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ABORT_S):
                live = await self._stop_once(turn_id)
                # It just began to wait for its user, or moved to another node: stop it there.
                while live.moved and not live.ended:
                    live = await self._stop_once(turn_id)
                return live.ended
        return False

    async def _stop_once(self, turn_id: TurnId) -> LiveLog:
        """Stops a turn where it is now; returns its log once that is closed."""
        if not (
            self._running.stop(turn_id, "abort")
            or await self._recovery.end_waiting(turn_id, "abort")
            or await self._recovery.end_ownerless(turn_id, "abort")
        ):
            await self._store.log.request_abort(turn_id)
            await self._signals.abort(turn_id)
        async with self._following.watch(turn_id) as live:
            await live.until_closed()
        return live

    def lose(self, turn_id: TurnId, for_s: float) -> None:
        """Drops a turn that runs here, as if this process had ended and restarted after a while: it continues
        from its log.
        """
        self._recovery.leave(turn_id, for_s)
        self._running.stop(turn_id, "hand_off")

    @property
    def running_count(self) -> int:
        """How many turns run here."""
        return self._running.count

    def changes(self, conversation_id: ConversationId) -> AbstractContextManager[asyncio.Event]:
        """An event that is set when a turn begins in a conversation or a change of it is announced."""
        return self._signals.changes(conversation_id)

    async def announce(self, event: UserEvent) -> None:
        """Announces an event to the user's pages and the conversation's followers, on all nodes."""
        await self._signals.changed(event)

    async def drain(self, grace_s: float) -> None:
        """Starts no more turns and hands off those that run; a step in progress has `grace_s` to end.

        Then disconnects all followers: waiting ones would delay the end of the process.
        """
        await self.runner.drain(grace_s)
        self._user_events.close()
        await self._mirrors.close()

    async def close(self) -> None:
        """Hands off the turns that run here, keeping their output, and stops following others."""
        self._user_events.close()
        self._signals.close()
        await end_tasks(*(it.task for it in self._beats))
        await self.runner.close()
        await self._mirrors.close()
        await self._writer.close()
