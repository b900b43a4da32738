"""What befalls the servers. Each fault ends by itself; several can last at once."""

import asyncio
import random
import resource
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tests.chaos.person import Somebody
from tests.chaos.seen import Failover, Record
from tests.chaos.world import Cluster, Node, World
from threadkeep.testing.waiting import until

QUIET_S = 60.0
"""How long after a failover the next fault waits for everybody to get on."""
FULL = 1
"""A disk on which no file can grow beyond its first byte."""


class Faults:
    """Chooses the next fault, and carries it out."""

    def __init__(
        self, world: World, record: Record, chance: random.Random, people: Sequence[Somebody]
    ) -> None:
        self._world = world
        self._record = record
        self._chance = chance
        self._people = people
        self._ending: set[Node] = set()
        self._lasting = 0
        self._is_quiet = False
        self._pooler, self._server = asyncio.Lock(), asyncio.Lock()
        """Held while PgBouncer or PostgreSQL is ended and started."""

    async def strike(self) -> None:
        """One fault from its beginning to its end."""
        faults = {**OF_NODES, **(OF_SQLITE if self._world.cluster is None else OF_POSTGRES)}
        (fault,) = self._chance.choices([*faults], [*faults.values()])
        if self._is_quiet:
            return
        self._lasting += 1
        try:
            if await fault(self) is not False:
                self._record.faults[fault.__name__.replace("_", " ")] += 1
        finally:
            self._lasting -= 1

    async def kill_a_node(self) -> bool:
        """As the kernel does when memory runs out."""
        return await self._replace(signal.SIGKILL)

    async def deploy_a_node(self) -> bool:
        """It ends in good order, and its next version starts."""
        return await self._replace(signal.SIGTERM)

    async def stop_a_node(self) -> bool:
        """It stands still, as in a debugger or a paused container, and goes on."""
        node = self._chance.choice(self._world.nodes)
        if node in self._ending:
            return False
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(self._chance.choice([0.2, 2, 7, 12]))
        node.signal(signal.SIGCONT)
        return True

    async def hang_the_model(self) -> None:
        """It says nothing for a while."""
        self._world.model_pause_s = 3.0
        await asyncio.sleep(3)
        self._world.model_pause_s = 0

    async def cut_off_the_model(self) -> None:
        """Its streams break off."""
        self._world.model_relay.cut()

    async def end_the_tool_server(self) -> None:
        """It is away for a while."""
        with self._world.tool_relay.away():
            await asyncio.sleep(self._chance.uniform(0.3, 3))

    async def fill_the_disk(self) -> bool:
        """The server's files can't grow for a while."""
        (node,) = self._world.nodes
        if node in self._ending or node.server is None:
            return False
        pid = node.server.process.pid
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL, most))
        await asyncio.sleep(self._chance.uniform(0.2, 3))
        if node.server and node.server.process.pid == pid and node.server.process.poll() is None:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        return True

    async def cut_connections(self) -> None:
        """Those of one node to the database break."""
        self._chance.choice(self._world.relays).cut()

    async def freeze_connections(self) -> None:
        """Those of one node stay, and nothing gets through; new ones work."""
        relay = self._chance.choice(self._world.relays)
        relay.freeze()
        await asyncio.sleep(self._chance.uniform(1, 6))
        relay.cut()

    async def slow_connections(self) -> None:
        """Each exchange of one node with the database takes longer."""
        relay = self._chance.choice(self._world.relays)
        relay.slow_down(self._chance.choice([0.02, 0.1, 0.3]))
        await asyncio.sleep(self._chance.uniform(1, 6))
        relay.slow_down(0)

    async def restart_the_pooler(self) -> None:
        """PgBouncer ends with all its connections."""
        assert self._world.pooler
        async with self._pooler:
            await asyncio.to_thread(self._world.pooler.stop)
            await asyncio.sleep(self._chance.uniform(0, 2))
            await asyncio.to_thread(self._world.pooler.start)

    async def restart_postgres(self) -> None:
        """As for an update."""
        assert self._world.cluster
        async with self._server:
            await asyncio.to_thread(self._world.cluster.restart)

    async def crash_postgres(self) -> None:
        """All its processes die, and it recovers."""
        assert self._world.cluster
        async with self._server:
            await asyncio.to_thread(self._world.cluster.crash)

    async def fail_over(self) -> bool:
        """The primary dies and the replica takes over; nothing else happens until all have got on."""
        cluster = self._world.cluster
        assert cluster
        if self._is_quiet:
            return False
        self._is_quiet = True
        try:
            await until(lambda: self._lasting == 1)
            await self._fail_over(cluster)
        finally:
            self._is_quiet = False
        return True

    async def _fail_over(self, cluster: Cluster) -> None:
        down_s = await asyncio.to_thread(cluster.fail_over)
        self._world.lead_to_primary()
        begun = time.monotonic()
        waiting = set(range(len(self._people)))
        while waiting and time.monotonic() < begun + QUIET_S:
            waiting -= {it for it in waiting if self._people[it].progressed_at > begun}
            await asyncio.sleep(0.05)
        self._record.failovers.append(Failover(down_s, time.monotonic() - begun))
        await asyncio.to_thread(cluster.follow)

    async def _replace(self, how: signal.Signals) -> bool:
        """Ends a node and starts it again."""
        node = self._chance.choice(self._world.nodes)
        if node in self._ending:
            return False
        self._ending.add(node)
        try:
            node.signal(signal.SIGCONT)
            await node.end(how)
            await asyncio.sleep(self._chance.choice([0, 0, 1, 7]))  # also longer than a lease
            await node.start()
        finally:
            self._ending.discard(node)
        return True


Fault = Callable[[Faults], Awaitable[bool | None]]
OF_NODES: Mapping[Fault, int] = {
    Faults.kill_a_node: 5,
    Faults.deploy_a_node: 2,
    Faults.stop_a_node: 3,
    Faults.hang_the_model: 1,
    Faults.cut_off_the_model: 1,
    Faults.end_the_tool_server: 1,
}
OF_SQLITE: Mapping[Fault, int] = {Faults.fill_the_disk: 5}
OF_POSTGRES: Mapping[Fault, int] = {
    Faults.cut_connections: 6,
    Faults.freeze_connections: 2,
    Faults.slow_connections: 3,
    Faults.restart_the_pooler: 2,
    Faults.restart_postgres: 1,
    Faults.crash_postgres: 1,
    Faults.fail_over: 1,
}
