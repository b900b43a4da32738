"""Recovery: resumes turns whose node died or released them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from threadkeep.clock import Clock, monotonic
from threadkeep.domain.errors import AgentAbsent
from threadkeep.domain.events import LogChunk, Notice, TurnEvent
from threadkeep.domain.ids import TurnId
from threadkeep.domain.turn import TurnCode
from threadkeep.engine.stop import StopReason
from threadkeep.log.format import encode_chunk
from threadkeep.loops import SomeFailed, do_each
from threadkeep.program_log import Subject, about
from threadkeep.runtime.heartbeat import BEAT_S
from threadkeep.runtime.leases import lease_of
from threadkeep.runtime.programs import NodePrograms
from threadkeep.runtime.runner import Runner
from threadkeep.runtime.running import NodeTurns
from threadkeep.runtime.signals import Signals
from threadkeep.storage.running.absences import NOTED_AFTER_MS, Absence
from threadkeep.storage.store import Store
from threadkeep.storage.turns import LEASE_MS

log = logging.getLogger("threadkeep.turns")

MOST_AT_ONCE = 20
"""How many turns to take over per beat: a node that starts after a crash must serve requests, too."""
MOST_NOTED_AT_ONCE = 100
"""To how many turns a notice is added per beat: that is a small write each."""
LEFT_S = 30.0
"""How long a node leaves a turn to others that may know its model: a saved gateway is there in seconds."""
LEASE_S = LEASE_MS / 1000
OUTAGE_S = LEASE_S - BEAT_S
"""After such an outage of the database, leases of running nodes have expired."""


class TakeoverPause:
    """Gives the other nodes time to renew their leases when the database comes back."""

    def __init__(self) -> None:
        self.reached_at: float | None = None
        """When the database was reached last."""
        self._ends_at: float | None = None

    def is_over(self, now: float) -> bool:
        """Whether turns may be taken over, now that the database has responded."""
        was_out = self.reached_at is not None and now - self.reached_at > OUTAGE_S
        self.reached_at = now
        if self._ends_at is not None and now >= self._ends_at:
            self._ends_at = None
            return True  # also where the database is slow every time
        if self._ends_at is None and was_out:
            self._ends_at = now + LEASE_S
        return self._ends_at is None


class Recovery:
    """Looks for turns that no node runs; `alone` means that there is no other node."""

    def __init__(
        self,
        node_id: str,
        store: Store,
        running: NodeTurns,
        runner: Runner,
        clock: Clock,
        programs: NodePrograms,
        signals: Signals,
        *,
        alone: bool,
        noted_after_ms: int = NOTED_AFTER_MS,
    ) -> None:
        self._signals = signals
        self._noted_after_ms = noted_after_ms
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._running = running
        self._runner = runner
        self._alone = alone
        self._programs = programs
        self._free = asyncio.Lock()
        self._takeover_pause = TakeoverPause()
        self._left_until: dict[TurnId, float] = {}
        self._unknown_since: dict[TurnId, float] = {}
        """When we first saw each turn whose model we don't know."""

    def leave(self, turn_id: TurnId, for_s: float) -> None:
        """Leaves a turn alone for a while, as if nobody were there to take it over."""
        self._left_until[turn_id] = monotonic() + for_s

    def leaves(self, turn_id: TurnId, model: str | None, code: TurnCode | None) -> bool:
        """Leaves a turn to nodes that know its model, unless there are none: then we end it after a while.

        A program chooses its models itself, and storage knows whose turns we can run.
        """
        if self._alone or code is not None or self._runner.knows(model):
            self._unknown_since.pop(turn_id, None)
            return False
        now = monotonic()
        return now - self._unknown_since.setdefault(turn_id, now) < LEFT_S

    async def recover_abandoned(self) -> None:
        """Takes over turns whose lease has expired, up to the limit; one call at a time."""
        if not self._runner.can_resume:
            return
        async with self._free:
            found = await self._store.log.abandoned(
                self._node_id,
                alone=self._alone,
                limit=MOST_AT_ONCE,
                codes=self._programs.codes,
                within_ms=self._runner.resumes_within_ms,
            )
            if not self._alone and not self._takeover_pause.is_over(monotonic()):
                return
            now = monotonic()
            self._left_until = {it: until for it, until in self._left_until.items() if until > now}
            self._unknown_since = {it: at for it, at in self._unknown_since.items() if it in found}
            # Our own are merely late.
            lost = [it for it in found if self._running.get(it) is None and it not in self._left_until]
            try:
                await _do_for_each(lost, self._recover)
            finally:
                self._takeover_pause.reached_at = monotonic()  # taking over may take long

    async def end_expired(self) -> None:
        """Ends turns whose user hasn't decided in time, up to the limit."""
        if not self._runner.can_resume:
            return
        expired = await self._store.approvals.expired(self._clock(), limit=MOST_AT_ONCE)
        await _do_for_each(expired, partial(self.end_waiting, reason="expire"))

    async def note_absences(self) -> None:
        """Tells the users of turns that wait for a program that nobody runs, once for each wait."""
        if not self._runner.can_resume:
            return
        found = await self._store.absences.unnoted(limit=MOST_NOTED_AT_ONCE, after_ms=self._noted_after_ms)
        # Ours are merely late.
        absent = {turn_id: code for turn_id, code in found if not self._programs.can_run(code)}
        await _do_for_each(absent, lambda turn_id: self._note_absence(turn_id, absent[turn_id]))

    async def _note_absence(self, turn_id: TurnId, code: TurnCode) -> None:
        chunk = await self._store.absences.note(turn_id, self._notice, after_ms=self._noted_after_ms)
        if chunk is None:
            return
        if (ours := self._programs.version_of(code.key)) is not None:
            log.warning(
                'turn %s waits: it began with version %s of agent "%s", and this node has version %d;'
                " older code never continues a turn",
                turn_id,
                code.version,
                code.key,
                ours,
            )
        await self._signals.wrote([chunk])

    def _notice(self, absence: Absence) -> LogChunk:
        seq = absence.last_seq + 1
        body = Notice(AgentAbsent.code, f"Waiting for the agent's program ({absence.key}) to connect.")
        event = TurnEvent(absence.turn_id, seq, self._clock(), body)
        return LogChunk(absence.turn_id, seq, seq, encode_chunk([event]))

    async def end_waiting(self, turn_id: TurnId, reason: StopReason) -> bool:
        """Ends a turn that waits for its user; False if it isn't waiting."""
        if not self._runner.can_resume:
            return False
        held = await self._store.log.adopt_waiting(turn_id, lease_of(self._node_id))
        if held is not None:
            await self._runner.resume(held, stop_reason=reason)
        return held is not None

    async def end_ownerless(self, turn_id: TurnId, reason: StopReason) -> bool:
        """Ends a program's turn that no node runs; False if it isn't one."""
        if not self._runner.can_resume:
            return False
        held = await self._store.log.adopt_ownerless(turn_id, lease_of(self._node_id))
        if held is not None:
            await self._runner.resume(held, stop_reason=reason)
        return held is not None

    async def _recover(self, turn_id: TurnId) -> None:
        running = await self._store.active.get(turn_id)
        if running is None:
            return
        if not running.is_aborting and self.leaves(turn_id, running.model, running.code):
            return
        held = await self._store.log.adopt(
            turn_id,
            lease_of(self._node_id),
            alone=self._alone,
            codes=self._programs.codes,
            within_ms=self._runner.resumes_within_ms,
        )
        if held is not None:
            await self._runner.resume(held, is_takeover=True)


async def _do_for_each(turn_ids: Iterable[TurnId], do: Callable[[TurnId], Awaitable[object]]) -> None:
    """Does something for each turn, even if it fails for another."""

    async def do_for(turn_id: TurnId) -> None:
        with about(Subject(turn_id=turn_id)):
            await do(turn_id)

    if await do_each({f"looking after turn {it}": partial(do_for, it) for it in turn_ids}):
        raise SomeFailed
