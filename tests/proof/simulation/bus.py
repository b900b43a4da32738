"""Signals between nodes, which get lost, come late and out of order."""

import asyncio
import random
from collections.abc import Iterable

from tests.proof.simulation.loop import Place
from threadkeep.ports.bus import MISSED, Signal
from threadkeep.storage.database.bus import LocalBus


class Wires:
    """What connects the nodes' buses."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._buses: dict[str, NodeBus] = {}
        self.loses = 0.15
        """How many signals get lost; the rest of them arrives late or early."""

    def add(self, bus: "NodeBus") -> None:
        """Another node listens."""
        self._buses[bus.place.name] = bus

    def remove(self, bus: "NodeBus") -> None:
        """It has ended."""
        self._buses.pop(bus.place.name, None)

    def send(self, sender: "NodeBus", signals: Iterable[Signal]) -> None:
        """Signals on their way to all other nodes."""
        loop, chance = asyncio.get_running_loop(), self._chance
        for signal in signals:
            for bus in self._buses.values():
                if bus is sender or chance.random() < self.loses:
                    continue
                delay = chance.uniform(0.5, 3.0) if chance.random() < 0.1 else chance.uniform(0.001, 0.03)
                loop.call_later(delay, bus.deliver, [signal], context=bus.place.context())
                if chance.random() < 0.05:
                    loop.call_later(2 * delay, bus.deliver, [signal, MISSED], context=bus.place.context())


class NodeBus(LocalBus):
    """One node's end."""

    def __init__(self, wires: Wires, place: Place) -> None:
        super().__init__()
        self.place = place
        self._wires = wires
        wires.add(self)

    async def publish(self, signals: Iterable[Signal]) -> None:
        signals = list(signals)
        self.deliver(signals)
        self._wires.send(self, signals)

    async def close(self) -> None:
        self._wires.remove(self)
