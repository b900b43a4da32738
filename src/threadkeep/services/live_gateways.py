"""Brings the gateways that admins save to this node, and looks after all gateways in use."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from threadkeep.clock import monotonic
from threadkeep.domain.model import GatewayConfig
from threadkeep.gateways.registry import GatewayRegistry
from threadkeep.loops import Loops
from threadkeep.ports.bus import MISSED, Bus, Signal
from threadkeep.ports.gateways import GatewayHealth, GatewayState
from threadkeep.storage.gateways import SqlGateways
from threadkeep.tasks import end_tasks

CHANGED = "gateways"
"""The signal to the other nodes."""
POLL_S = 3.0
"""How soon a node notices a change whose signal was lost."""
LOOK_S = 60.0
"""How old what is known about a gateway can become while somebody asks for it."""


class LiveGateways:
    """The gateways that this node uses, always as they are saved."""

    def __init__(
        self,
        store: SqlGateways,
        running: GatewayRegistry,
        bus: Bus,
        loops: Loops,
        *,
        alone: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`alone`: no other node could change them, so there is nothing to poll for."""
        self._store = store
        self._running = running
        self._bus = bus
        self._alone = alone
        self._clock = clock
        self._have_changed, self._is_look_wanted = asyncio.Event(), asyncio.Event()
        self._applying = asyncio.Lock()
        self._looked_at = -LOOK_S
        self._unsubscribe = bus.subscribe(self._hear)
        self._following = loops.start("following changes of gateways", self.apply, self._wait_for_change)
        self._looking = loops.start("looking at gateways", self._look, self._is_look_wanted.wait)

    @property
    def fixed(self) -> Sequence[GatewayConfig]:
        """The gateways of the settings."""
        return self._running.fixed

    def health(self) -> Mapping[str, GatewayHealth]:
        """What is known about each gateway, by name."""
        return self._running.health()

    def look_soon(self) -> None:
        """Has the providers asked how they are, unless that is known since a minute ago."""
        is_old = self._clock() - self._looked_at >= LOOK_S
        if is_old or any(it.state is GatewayState.UNKNOWN for it in self.health().values()):
            self._is_look_wanted.set()

    async def changed(self) -> None:
        """What is saved has changed: uses it here at once, and notifies the other nodes."""
        await self.apply()
        await self._bus.publish([CHANGED])

    async def apply(self) -> None:
        """Uses the gateways as they are saved now."""
        async with self._applying:  # what is read first is also used first
            self._have_changed.clear()
            saved = await self._store.all()
            await self._running.replace_added([it.config for it in saved])

    async def close(self) -> None:
        """Stops following."""
        self._unsubscribe()
        await end_tasks(self._following.task, self._looking.task)

    def _hear(self, signal: Signal) -> None:
        if signal in (CHANGED, MISSED):
            self._have_changed.set()

    async def _wait_for_change(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None if self._alone else POLL_S):
                await self._have_changed.wait()

    async def _look(self) -> None:
        if self._is_look_wanted.is_set():
            self._looked_at = self._clock()
            try:
                await self._running.look()
            finally:
                self._is_look_wanted.clear()  # only now: this look answers those who asked during it, too
