"""One SQLite database in memory, which all nodes share as they would share PostgreSQL.

Each plan is one transaction, and runs at the moment when it arrives. What is between a node and the database
takes time and breaks: `Outages` says when.
"""

# pyright: reportPrivateUsage=false

import asyncio
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

from tests.proof.simulation.loop import Place, VirtualLoop
from tests.proof.simulation.trace import Trace
from tests.proof.story import AtCommit, Outage
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.storage.database.connector import Plan, Query, Rows, single
from threadkeep.storage.database.migrate import migrate, migrations
from threadkeep.storage.database.sqlite import run

T = TypeVar("T")

EPOCH_MS = 1_750_000_000_000
"""When the simulated world begins."""
_JULIAN_1970 = 2440587.5
DAY_MS = 86_400_000

_QUICK_S = 0.001
LATE_S = 0.03
MOST_QUIET = frozenset(
    (
        "SqlTurnLog.renew",
        "SqlTurnLog.abandoned",
        "SqlApprovals.expired",
        "SqlAbsences.unnoted",
        "SqlBranches.settle",
        "SqlPrograms.note_seen",
        "SqlJobs.take",
        "SqlTurnLog.unfollowed",
        "SqlTurnLog.note_followed",
    )
)
"""What nodes do all the time: not told."""


@cache
def _empty() -> bytes:
    """A migrated database."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA legacy_alter_table = ON")
    connection.execute("BEGIN")
    run(connection, lambda: migrate(migrations("sqlite")))
    connection.execute("COMMIT")
    return connection.serialize()


class SharedDatabase:
    """The database itself; its clock is the one that leases go by."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.connection = connect(_empty(), self.now_ms)

    def now_ms(self) -> int:
        """Its own clock."""
        return EPOCH_MS + round(self._loop.time() * 1000)

    def do(self, plan: Callable[[], Plan[T]], *, writes: bool) -> T:
        """Runs a plan as one transaction."""
        connection = self.connection
        if not writes:
            return run(connection, plan)
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = run(connection, plan)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return result

    def copy(self) -> bytes:
        """A backup, as of now."""
        return self.connection.serialize()

    def close(self) -> None:
        """Drops it."""
        self.connection.close()


def connect(content: bytes, now_ms: Callable[[], int]) -> sqlite3.Connection:
    """A database in memory; what it calls now is the simulated time."""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
    connection.deserialize(content)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")

    def julianday(_: str) -> float:
        return (now_ms() + 0.5) / DAY_MS + _JULIAN_1970

    connection.create_function("julianday", 1, julianday)
    return connection


@dataclass
class Faults:
    """What befalls connections to the database."""

    outages: list[Outage] = field(default_factory=list[Outage])
    at_commits: list[AtCommit] = field(default_factory=list[AtCommit])
    do_to_node: Callable[[str, str, float], None] = lambda node, what, seconds: None
    """Kills or stalls a node."""
    is_over: bool = False
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def outage(self, node: str, now: float) -> Outage | None:
        """What is wrong with a node's connections now."""
        if self.is_over:
            return None
        for it in self.outages:
            if it.at <= now < it.at + it.seconds and it.node in {node, "all"}:
                return it
        return None

    def at_commit(self, node: str, name: str) -> AtCommit | None:
        """What befalls this commit; counts it."""
        if not self.at_commits:
            return None
        self._seen[node, name] += 1
        self._seen["any", name] += 1
        for it in self.at_commits:
            if it.commit == name and it.number == self._seen[it.node, name] and it.node in {node, "any"}:
                return it
        return None


class NodeDatabase:
    """A node's connector to it."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(
        self, shared: SharedDatabase, place: Place, faults: Faults, chance: random.Random, trace: Trace
    ) -> None:
        self._shared = shared
        self._place = place
        self._faults = faults
        self._chance = chance
        self._trace = trace
        self.in_use = 0
        """How many statements wait for their answers."""

    async def fetch(self, query: Query) -> Rows:
        return await self._ask(lambda: single(query), _caller(), writes=False)

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        return await self._ask(plan, _caller(), writes=False)

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        return await self._ask(lambda: single(query), _caller(), writes=True)

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        return await self._ask(plan, _caller(), writes=True)

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        return
        yield

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _ask(self, plan: Callable[[], Plan[T]], name: str, *, writes: bool) -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        sent = _Sent(self, loop, plan, name, writes)
        self.in_use += 1
        try:
            return await sent.answer
        finally:
            self.in_use -= 1

    def latency(self) -> float:
        """How long a message takes on its way."""
        outage = self._faults.outage(self._place.name, asyncio.get_running_loop().time())
        if outage is not None and outage.what == "slow":
            return self._chance.uniform(0.2, 1.5)
        return _QUICK_S * (0.2 + self._chance.random())


class _Sent:
    """One plan on its way to the database and back."""

    __slots__ = ("_at", "_database", "_loop", "_name", "_plan", "_writes", "answer")

    def __init__(
        self,
        database: NodeDatabase,
        loop: VirtualLoop,
        plan: Callable[[], Plan[Any]],
        name: str,
        writes: bool,
    ) -> None:
        self._database = database
        self._loop = loop
        self._plan = plan
        self._name = name
        self._writes = writes
        self.answer: asyncio.Future[Any] = loop.create_future()
        loop.elsewhere(self._arrive, after_s=database.latency())

    def _arrive(self) -> None:
        database, place, faults = self._database, self._database._place, self._database._faults
        fault = faults.at_commit(place.name, self._name) if self._writes else None
        outage = faults.outage(place.name, self._loop.time())
        if fault is not None:
            self._befall(fault)
            return
        if place.is_dead and database._chance.random() < 0.5:
            return
        if outage is not None and outage.what != "slow":
            self._break(outage)
            return
        self._execute()

    def _break(self, outage: Outage) -> None:
        chance = self._database._chance.random()
        if outage.what == "refusing" or (outage.what == "flaky" and chance < 0.25) or not self._writes:
            if outage.what == "flaky" and chance >= 0.5:
                self._execute()
                return
            self._fail("refused")
        elif outage.what == "flaky" and chance >= 0.5:
            self._execute()
        else:
            self._execute(is_lost=True)

    def _befall(self, fault: AtCommit) -> None:
        trace, place, faults = self._database._trace, self._database._place, self._database._faults
        trace.add(place.name, f"FAULT {fault.what}", f"{self._name} number {fault.number}")
        trace.count(f"{fault.what} {self._name}")
        match fault.what:
            case "lost before":
                self._fail("lost before")
            case "lost after":
                self._execute(is_lost=True)
            case "kill before":
                faults.do_to_node(place.name, "kill", fault.seconds)
            case "kill after":
                self._execute()
                faults.do_to_node(place.name, "kill", fault.seconds)
            case "stall after":
                self._execute()
                faults.do_to_node(place.name, "stall", fault.seconds)
            case "stall before":
                faults.do_to_node(place.name, "stall", fault.seconds)
                self._loop.elsewhere(self._execute, after_s=fault.seconds)
            case "late":
                self._loop.elsewhere(self._execute, after_s=fault.seconds)

    def _execute(self, *, is_lost: bool = False) -> None:
        result, error, how = None, None, "ok"
        try:
            result = self._database._shared.do(self._plan, writes=self._writes)
        except Exception as exc:
            error, how = exc, type(exc).__name__
        if self._writes and self._name not in MOST_QUIET:
            self._tell(f"{how}, answer lost" if is_lost else how)
        if is_lost:
            error = StorageUnavailable("The connection was lost.")
        self._answer(result, error)

    def _fail(self, how: str) -> None:
        if self._writes and self._name not in MOST_QUIET:
            self._tell(how)
        self._answer(None, StorageUnavailable("The connection was lost."))

    def _tell(self, how: str) -> None:
        database = self._database
        database._trace.add(database._place.name, f"{self._name}: {how}")

    def _answer(self, result: Any, error: Exception | None) -> None:
        self._loop.elsewhere(self._settle, result, error, after_s=self._database.latency())

    def _settle(self, result: Any, error: Exception | None) -> None:
        if self.answer.done():
            return
        if error is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(result)


def _caller() -> str:
    """The storage method that asks, such as `SqlTurnLog.pause`: the last one outside this module."""
    return sys._getframe(2).f_code.co_qualname
