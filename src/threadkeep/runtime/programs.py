"""The programs that this node can run, and what it tells the other nodes about them.

Some are built in: programs of ours that run the turns of agents without code of their own, over the same
`turn`. Every node of a release has them, so nobody tells the others, no row in `tk_agents` is theirs, and no
operator sees them among the workers. A turn that needs one has its key, which begins with `BUILT_IN`, and its
version, so that during a rolling deploy it waits for a node that has it. What it must know of its agent is in
the `settings` of its start. They have a thread of their own, which starts with the first of their turns:
code of the operator that blocks doesn't keep them from running. Only one that runs other agents is started
where the operator's are, if there are any: it may run those.
"""

import asyncio
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from threadkeep.clock import monotonic
from threadkeep.domain.agent import ABSENT, ASKING_OTHERS, BUILT_IN, BlockedLoop, Code, Served, WorkerState
from threadkeep.domain.turn import TurnCode
from threadkeep.engine.code.programs import ProgramRun, Programs
from threadkeep.storage.code.programs import SqlPrograms
from threadkeep.version import __version__
from threadkeep.wire.programs import ProgramLost, Start

SEEN_EVERY_S = 3.0
"""How often a node says that it is there: a program that wasn't seen for READY_MS counts as absent."""
STUCK_AFTER_MS = 10_000
"""After so long without an answer of the programs' event loop, other nodes run new turns."""


class NodePrograms:
    """This node's programs among those of all nodes; `running` counts its turns of each."""

    def __init__(
        self,
        node_id: str,
        store: SqlPrograms,
        running: Callable[[], Mapping[str, int]],
        programs: Programs | None = None,
        built_in: Programs | None = None,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._running = running
        self._programs = programs
        self._built_in = built_in
        self._seen_at = -SEEN_EVERY_S
        self._is_open = True
        self._told_open: bool = False
        self._telling = asyncio.Lock()
        """What is told last is true."""

    @property
    def codes(self) -> Sequence[Code]:
        """What this node can run now; nothing once it is closing."""
        built_in = self._built_in.codes if self._built_in is not None and self._is_open else ()
        return (*self._open, *built_in)

    @property
    def _open(self) -> Sequence[Code]:
        """The operator's programs that it can run now: none while they are stuck."""
        return self._own if self._is_open and self.stuck is None else ()

    @property
    def _own(self) -> Sequence[Code]:
        return self._programs.codes if self._programs is not None else ()

    @property
    def stuck(self) -> BlockedLoop | None:
        """What has blocked the programs' event loop for so long that new turns go elsewhere."""
        blocked = self._programs.blocked if self._programs is not None else None
        return blocked if blocked is not None and blocked.ms >= STUCK_AFTER_MS else None

    @property
    def port(self) -> Programs | None:
        """Runs the operator's; None if this node has none."""
        return self._programs

    def start(self, start: Start) -> ProgramRun:
        """Runs a program for a turn."""
        if start.agent == ASKING_OTHERS and self._open and self._programs is not None:
            with suppress(ProgramLost):  # it may run the operator's
                return self._programs.start(start)
        programs = self._built_in if start.agent.startswith(BUILT_IN) else self._programs
        if programs is None:
            raise ProgramLost(f"Agent {start.agent!r} doesn't run here.")
        return programs.start(start)

    @property
    def running(self) -> Mapping[str, int]:
        """How many turns of each of the operator's programs run here."""
        running = self._running()
        return {code.key: running.get(code.key, 0) for code in self._own}

    def code_for(self, key: str) -> TurnCode:
        """What a turn that begins now needs: our version of the code, or any if we have none."""
        return TurnCode(key, self.version_of(key))

    def version_of(self, key: str) -> int | None:
        """The newest version of a program that this node has."""
        return max((it.version for it in self.codes if it.key == key), default=None)

    def can_run(self, code: TurnCode) -> bool:
        """Whether this node has a turn's code, or newer code."""
        return any(it.key == code.key and it.version >= (code.version or 0) for it in self.codes)

    async def served(self, keys: Collection[str]) -> Mapping[str, Served]:
        """How some programs stand on all nodes."""
        found = await self._store.served(keys)
        # Ours can be run even before the others have heard of them.
        for key in {code.key for code in self.codes}.intersection(keys):
            if not found.get(key, ABSENT).workers:
                found = {**found, key: Served(1, is_awaited=True)}
        return found

    async def is_awaited(self, key: str) -> bool:
        """Whether a turn may begin: we have its program, or some node had it a short while ago."""
        if self.can_run(TurnCode(key)):
            return True
        return (await self._store.served([key])).get(key, ABSENT).is_awaited

    async def note_seen(self) -> None:
        """Tells the other nodes what this one can run, and how it is, unless it did so a moment ago."""
        now, is_open = monotonic(), bool(self._open)
        if self._own and (now - self._seen_at >= SEEN_EVERY_S or is_open is not self._told_open):
            self._seen_at, self._told_open = now, is_open
            async with self._telling:
                await self._store.note_seen(self._node_id, self._own, self._state())

    async def close(self) -> None:
        """Runs no more of them, and says so."""
        was_open, self._is_open = self._is_open and bool(self._own), False
        if was_open:
            async with self._telling:
                await self._store.close(self._node_id)

    def _state(self) -> WorkerState:
        blocked = self._programs.blocked if self._programs is not None else None
        return WorkerState(
            is_open=bool(self._open),
            name=socket.gethostname(),
            sdk=f"threadkeep {__version__}",
            running=self._running(),
            blocked_ms=blocked.ms if blocked is not None else 0,
        )
