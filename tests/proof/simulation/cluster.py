"""The nodes that share one database, and the faults that befall them."""

import asyncio
import random
from collections.abc import Callable

from tests.proof.seen import Seen
from tests.proof.simulation.bus import NodeBus, Wires
from tests.proof.simulation.database import EPOCH_MS, Faults, NodeDatabase, SharedDatabase
from tests.proof.simulation.loop import Place, VirtualLoop, place_of
from tests.proof.simulation.model import Provider, SimulatedGateway
from tests.proof.simulation.node import SimulatedNode, usual_settings
from tests.proof.simulation.trace import Trace
from tests.proof.simulation.world import World
from tests.proof.story import AtCommit, NodeFault, Outage, Story

GRACE_S = 3.0


class Cluster:
    """All nodes of a run, those that have died, too."""

    def __init__(self, story: Story, loop: VirtualLoop, trace: Trace, seen: Seen) -> None:
        self._story = story
        self._loop = loop
        self._trace = trace
        self._seen = seen
        self._count = 0
        self.nodes: list[SimulatedNode] = []
        self.dead: list[SimulatedNode] = []
        self.database = SharedDatabase(loop)
        self.provider = Provider(self.chance("model"), trace, fails=story.model_fails)
        self.world = World(self.chance("world"), seen, trace)
        self.wires = Wires(self.chance("bus"))
        self.wires.loses = story.loses_signals
        self.faults = Faults(
            [it for it in story.faults if isinstance(it, Outage)],
            [it for it in story.faults if isinstance(it, AtCommit)],
            self.befall,
        )
        self.on_death: list[Callable[[SimulatedNode], None]] = []

    def chance(self, name: str) -> random.Random:
        """A generator of its own for each source of chance."""
        return random.Random(f"{self._story.seed} {name}")

    async def start(self) -> None:
        """Starts the first nodes, and waits for the faults of nodes to come."""
        for _ in range(self._story.nodes):
            await self.add()

    def schedule_faults(self) -> None:
        """From now on, the story's faults come at their times."""
        begun = self._loop.time()
        for outage in self.faults.outages:
            self._loop.elsewhere(
                self._trace.add, outage.node, f"FAULT database {outage.what}", after_s=outage.at
            )
        self.faults.outages = [
            Outage(begun + it.at, it.seconds, it.node, it.what) for it in self.faults.outages
        ]
        for fault in self._story.faults:
            if isinstance(fault, NodeFault):
                self._loop.elsewhere(self._befall_one, fault, after_s=fault.at)

    async def add(self) -> SimulatedNode:
        """Starts another node."""
        self._count += 1
        name = f"n{self._count}"
        place = Place(name)
        drift = self.chance(f"clock {name}").uniform(-self._story.drift_s, self._story.drift_s)
        database = NodeDatabase(
            self.database, place, self.faults, self.chance(f"database {name}"), self._trace
        )
        node = SimulatedNode(
            place,
            database,
            NodeBus(self.wires, place),
            SimulatedGateway(self.provider),
            self.world,
            lambda: EPOCH_MS + round((self._loop.time() + drift) * 1000),
            usual_settings(self._story.budget),
        )
        self.nodes.append(node)
        await self._started(node)
        return node

    async def _started(self, node: SimulatedNode) -> None:
        """A node that can't start, because the database can't be reached, is started again."""
        task: asyncio.Task[None] | None = None
        for _ in range(30):
            task = self._loop.at(node.place, node.start())
            await asyncio.wait([task], timeout=60)
            if node.place.is_dead:
                return
            if task.done() and task.exception() is None:
                self._trace.add(node.place.name, "serves")
                return
            await asyncio.sleep(1)
        raise AssertionError(f"node {node.place.name} doesn't start: {task!r}")

    @property
    def serving(self) -> list[SimulatedNode]:
        """Those that take requests."""
        return [it for it in self.nodes if it.is_serving and not it.place.is_dead]

    def befall(self, name: str, what: str, seconds: float) -> None:
        """Kills a node, and starts another after a while; or stops it for a while."""
        node = next((it for it in self.nodes if it.place.name == name), None)
        if node is None or node.place.is_dead:
            return
        if what == "stall":
            if not node.place.is_stalled:
                self._loop.stall(node.place, seconds)
            return
        self.kill(node)
        self._loop.elsewhere(self._replace, after_s=seconds)

    def _replace(self) -> None:
        self._loop.create_task(self.add())

    def kill(self, node: SimulatedNode) -> None:
        """Its process is gone: nothing of it runs any more."""
        self._loop.kill(node.place)
        node.is_serving = False
        self.wires.remove(node.bus)
        self.nodes.remove(node)
        self.dead.append(node)
        for tell in self.on_death:
            tell(node)

    def _befall_one(self, fault: NodeFault) -> None:
        if not self.serving:
            return
        node = self.serving[fault.node % len(self.serving)]
        self._trace.add(node.place.name, f"FAULT {fault.what}", f"{fault.seconds} s")
        self._trace.count(f"{fault.what} of a node")
        if fault.what == "deploy":
            self._loop.create_task(self._deploy(node, fault.seconds))
        else:
            self.befall(node.place.name, fault.what, fault.seconds)

    async def _deploy(self, node: SimulatedNode, seconds: float) -> None:
        """A new one starts, then the old one ends, as a rolling deploy does; or the other way round."""
        if seconds > 5:
            await self.add()
        await self.end(node, GRACE_S)
        if seconds <= 5:
            await asyncio.sleep(seconds)
            await self.add()

    async def end(self, node: SimulatedNode, grace_s: float) -> None:
        """Ends a node as an operator does."""
        task = self._loop.at(node.place, node.drain(grace_s))
        await asyncio.wait([task], timeout=120)
        if node.place.is_dead:
            return
        if not task.done() or task.exception() is not None:
            self._seen.left.append(f"node {node.place.name} didn't end: {task!r}")
        self._trace.add(node.place.name, "has ended")
        left = self._left_at(node.place, task)
        if left:
            self._seen.left.append(f"node {node.place.name} has ended, but its tasks go on: {left}")
        self._loop.kill(node.place)
        self.nodes.remove(node)
        self.dead.append(node)
        for tell in self.on_death:
            tell(node)

    def _left_at(self, place: Place, besides: "asyncio.Task[None]") -> list[str]:
        return sorted(
            str(task.get_coro())
            for task in asyncio.all_tasks(self._loop)
            if task is not besides and not task.done() and place_of(task) is place
        )
