"""The programs that this node can run, and what it tells the other nodes about them."""

import time
from collections.abc import Collection, Mapping, Sequence

from threadkeep.domain.agent import ABSENT, Code, Served
from threadkeep.domain.turn import TurnCode
from threadkeep.engine.code.programs import Programs
from threadkeep.storage.code.programs import SqlPrograms

SEEN_EVERY_S = 3.0
"""How often a node says that it is there: a program that wasn't seen for READY_MS counts as absent."""


class NodePrograms:
    """This node's programs among those of all nodes."""

    def __init__(self, node_id: str, store: SqlPrograms, programs: Programs | None = None) -> None:
        self._node_id = node_id
        self._store = store
        self._programs = programs
        self._seen_at = -SEEN_EVERY_S
        self._is_open = True

    @property
    def codes(self) -> Sequence[Code]:
        """What this node can run; nothing once it is closing."""
        return self._programs.codes if self._programs is not None and self._is_open else ()

    @property
    def port(self) -> Programs | None:
        """Runs them; None if this node has none."""
        return self._programs

    def code_for(self, key: str) -> TurnCode:
        """What a turn that begins now needs: our version of the code, or any if we have none."""
        return TurnCode(key, max((it.version for it in self.codes if it.key == key), default=None))

    def can_run(self, code: TurnCode) -> bool:
        """Whether this node has a turn's code, or newer code."""
        return any(it.key == code.key and it.version >= (code.version or 0) for it in self.codes)

    async def served(self, keys: Collection[str]) -> Mapping[str, Served]:
        """How some programs stand on all nodes."""
        return await self._store.served(keys)

    async def is_awaited(self, key: str) -> bool:
        """Whether a turn may begin: we have its program, or some node had it a short while ago."""
        if self.can_run(TurnCode(key)):
            return True
        return (await self._store.served([key])).get(key, ABSENT).is_awaited

    async def note_seen(self) -> None:
        """Tells the other nodes what this one can run, unless it did a moment ago."""
        now = time.monotonic()
        if self.codes and now - self._seen_at >= SEEN_EVERY_S:
            self._seen_at = now
            await self._store.note_seen(self._node_id, self.codes)

    async def close(self) -> None:
        """Runs no more of them, and says so."""
        was_open, self._is_open = self._is_open and bool(self.codes), False
        if was_open:
            await self._store.close(self._node_id)
