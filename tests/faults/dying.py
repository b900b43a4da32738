"""Nodes within the test that die at a chosen commit: from then on their database takes nothing from them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeVar

import httpx2
import pytest

from threadkeep import Settings, create_app
from threadkeep.agents import Agent
from threadkeep.client.in_process import InProcessTransport
from threadkeep.domain.errors import StorageError
from threadkeep.handling.services import Services
from threadkeep.log.format import LogEntry, decode_entries
from threadkeep.storage.approvals import SqlApprovals
from threadkeep.storage.database.connector import Database, Plan, Query, Rows, Statement
from threadkeep.storage.database.timed import TimedDatabase
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.storage.turns import SqlTurns

T = TypeVar("T")

COMMITS = (
    (SqlTurns, "begin"),
    (SqlTurns, "end"),
    (SqlTurnLog, "append"),
    (SqlTurnLog, "pause"),
    (SqlTurnLog, "reset_attempts"),
    (SqlApprovals, "add"),
    (SqlApprovals, "decide"),
)
"""All that a turn commits: between two of them nothing of it is kept."""


_LOG = Statement(
    """SELECT chunk.events FROM tk_turn_chunks AS chunk JOIN tk_turns AS turn ON turn.id = chunk.turn_id
    WHERE turn.conversation_id = :id ORDER BY chunk.first_seq"""
)
_EXPIRE = Statement("UPDATE tk_turns SET lease_until = {now} - :ago_ms WHERE status = 'RUNNING'")


class Death(StrEnum):
    """Where at a commit a node dies."""

    BEFORE = "before"  # what happened is not stored
    AFTER = "after"  # it is stored, and nobody has heard of it


@dataclass(frozen=True)
class Point:
    """At which commit of a turn its node dies."""

    commit: int
    death: Death

    def __str__(self) -> str:
        return f"{self.death}-{self.commit}"


class Life:
    """The life of one node."""

    def __init__(self) -> None:
        self.commits: list[str] = []
        """What the node has committed since it was given its point."""
        self.ended = asyncio.Event()
        self.database: Database | None = None
        """What the node writes to; the test reaches it also when the node is dead."""
        self.stalled = asyncio.Event()
        self._awake = asyncio.Event()
        self._awake.set()
        self._point: Point | None = None
        self._only_stalls = False

    def end_at(self, point: Point) -> None:
        """Lets the node live until then."""
        self._point, self.commits, self._only_stalls = point, [], False

    def stall_at(self, point: Point) -> None:
        """Lets the node stand still from then on, as a process that is stopped, until it is woken."""
        self.end_at(point)
        self._only_stalls = True

    def wake(self) -> None:
        """Lets a node go on, whether it stands still already or has not come so far."""
        self._point = None
        self._awake.set()

    def end(self) -> None:
        """Nothing that the node does has any effect from now on."""
        self.ended.set()

    def check(self) -> None:
        if self.ended.is_set():
            raise StorageError("This node is dead.")

    async def awake(self) -> None:
        """Whatever the node does waits here while it stands still, and fails when it is dead."""
        self.check()
        await self._awake.wait()

    async def commit(self, name: str, write: Callable[[], Awaitable[T]]) -> T:
        """Commits, or dies of it."""
        await self.awake()
        self.commits.append(name)
        point, number = self._point, len(self.commits)
        await self._reach(point == Point(number, Death.BEFORE))
        done = await write()
        await self._reach(point == Point(number, Death.AFTER))
        return done

    async def _reach(self, is_point: bool) -> None:
        if is_point and self._only_stalls:
            self._awake.clear()
            self.stalled.set()
        elif is_point:
            self.end()
        await self.awake()


class MortalDatabase:
    """A database that a dead node cannot reach any more."""

    def __init__(self, database: Database, life: Life) -> None:
        self.database = database
        self.life = life

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        return self.database.dialect

    async def fetch(self, query: Query) -> Rows:
        await self.life.awake()
        return await self.database.fetch(query)

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        await self.life.awake()
        return await self.database.read(plan)

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        await self.life.awake()
        return await self.database.execute(query, urgent=urgent, apart=apart)

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        await self.life.awake()
        return await self.database.write(plan, urgent=urgent, heavy=heavy)

    def listen(self, channel: str) -> AsyncGenerator[str]:
        return self.database.listen(channel)

    async def close(self) -> None:
        await self.database.close()


_beginning: ContextVar[Life] = ContextVar("beginning")


@pytest.fixture
def mortality(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that `dying_node` starts can die."""

    def mortal(*arguments: Any) -> MortalDatabase:
        life = _beginning.get()
        life.database = TimedDatabase(*arguments)
        return MortalDatabase(life.database, life)

    monkeypatch.setattr("threadkeep.bootstrap.storage.TimedDatabase", mortal)
    for kind, name in COMMITS:
        monkeypatch.setattr(kind, name, _mortal(getattr(kind, name)))


def _mortal(write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def commit(room: Any, *arguments: Any, **named: Any) -> Any:
        database = room._database
        if not isinstance(database, MortalDatabase):
            return await write(room, *arguments, **named)
        return await database.life.commit(write.__qualname__, lambda: write(room, *arguments, **named))

    return commit


@dataclass(frozen=True)
class DyingNode:
    """A Threadkeep without a port, and a client of its user."""

    store: Store
    life: Life
    client: httpx2.AsyncClient
    services: Services

    @property
    def is_idle(self) -> bool:
        """Whether it runs no turn."""
        return self.services.turns.running_count == 0

    async def stored_log(self, conversation: str) -> list[LogEntry]:
        """All that is stored of the turn of a conversation, also when the node is dead."""
        assert self.life.database is not None
        rows = await self.life.database.fetch(_LOG(id=conversation))
        return [entry for (events,) in rows for entry in decode_entries(events)]

    async def expire_leases(self, ago_ms: int = 1) -> None:
        """Lets the time pass in which a dead node might still be alive, and some more."""
        assert self.life.database is not None
        await self.life.database.execute(_EXPIRE(ago_ms=ago_ms))


@asynccontextmanager
async def dying_node(settings: Settings, agents: Sequence[Agent] = ()) -> AsyncGenerator[DyingNode]:
    """A node that is cleared away in the end, dead or alive; a dead one writes nothing while it goes."""
    life = Life()
    _beginning.set(life)
    app = create_app(settings, agents=agents)
    async with app.lifespan():
        services = await app.services()
        async with httpx2.AsyncClient(
            transport=InProcessTransport(app), base_url="http://localhost", timeout=30
        ) as client:
            yield DyingNode(services.store, life, client, services)
