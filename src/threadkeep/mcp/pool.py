"""The pool of MCP servers: started when they are needed, shared by turns, watched, and ended."""

import asyncio
import itertools
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.mcp import McpServer
from threadkeep.logs import about
from threadkeep.loops import Loop, Loops
from threadkeep.mcp.breaker import Breaker
from threadkeep.mcp.large import Reading
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.lines import ServerLog
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.processes.programs import ServerEnvironment, ServerKey
from threadkeep.mcp.used_servers import UsedServers
from threadkeep.ports.mcp import ServerState, ServerStatus
from threadkeep.ports.tools import Asked, GivenInput, InputRequired, Outcome, Step, Tool
from threadkeep.tasks import end_tasks

if TYPE_CHECKING:
    from threadkeep.mcp.connection import Connection

Launch = Callable[
    [ServerKey, McpServer, ServerEnvironment, ServerLog, Limits, Reading], Awaitable["Connection"]
]

FORGET_S = 3600.0
"""After this long without use a server's place is dropped, with its log and its failures."""


class _Place:
    """A server's place in the pool. It outlives the process: it keeps the latest failures and the log."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.breaker = Breaker()
        self.log = ServerLog()
        self.attempt: asyncio.Task[Connection] | None = None
        self.connection: Connection | None = None
        self.began_at = self.used_at = time.monotonic()
        self.users = 0

    @contextmanager
    def in_use(self) -> Generator[None]:
        """While a caller waits for the server or its answer, no other server gets its place."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    @property
    def is_idle(self) -> bool:
        """Whether the server runs and nobody needs it."""
        return self.connection is not None and self.connection.is_ready and not self.users

    def settle(self, attempt: "asyncio.Task[Connection]") -> None:
        """Clears a failed attempt for the next one."""
        if (attempt.cancelled() or attempt.exception()) and self.attempt is attempt:
            self.attempt = None

    @property
    def state(self) -> ServerState:
        """The server's state."""
        if self.connection is not None and self.connection.is_ready:
            return ServerState.READY
        if self.attempt is not None and (self.connection is None or self.connection.is_open):
            return ServerState.CONNECTING
        return ServerState.FAILED if self.breaker.failures else ServerState.IDLE

    def status(self) -> ServerStatus:
        """The same, with reasons and without the server's secrets."""
        tools = self.connection.known_tools if self.connection and self.connection.is_ready else None
        error = None if tools is not None else self.server.hide(self.breaker.reason) or None
        return ServerStatus(self.state, error, tools, self.server.hide(self.log.text))


class Pool:
    """The servers of all agents on this node."""

    def __init__(self, environment: ServerEnvironment, limits: Limits, loops: Loops) -> None:
        self._environment = environment
        self._loops = loops
        self._limits = limits
        self._reading = Reading()
        self._places: dict[ServerKey, _Place] = {}
        self._live: set[Connection] = set()
        self._start_numbers = itertools.count(1)
        self._reserved = 0
        """Slots of servers that are about to start."""
        self._awaiting_room = 0
        self._closing: set[asyncio.Task[None]] = set()
        self._sweeping: Loop | None = None
        self._is_closed = False

    async def tools(self, key: ServerKey, server: McpServer) -> tuple[Tool, ...]:
        """A server's tools; LinkBroken with the reason if it is unreachable."""
        deadline = asyncio.get_running_loop().time() + self._limits.budget_s
        place = self._place(key, server)
        try:
            with place.in_use():
                connection = await self._connected(key, place, self._limits.budget_s)
                async with asyncio.timeout_at(deadline):
                    return await connection.tools()
        except TimeoutError:
            raise LinkBroken("It isn't responding.") from None
        except LinkBroken as exc:
            raise LinkBroken(server.hide(str(exc))) from exc

    async def call(
        self,
        key: ServerKey,
        server: McpServer,
        name: str,
        arguments: Mapping[str, Any],
        *,
        call_key: str = "",
        given: GivenInput | None = None,
        used: UsedServers | None = None,
    ) -> AsyncGenerator[Step]:
        """Calls a tool: any number of Progress and Asked, then one Outcome or InputRequired.

        Closing it cancels the call. The server receives the `call_key`, by which it can recognise a repeated
        call. With `used`, the first result of a restarted program says so.
        """
        used = used or UsedServers()
        place = self._place(key, server)
        try:
            with place.in_use():
                connection = await self._connected(key, place, self._limits.budget_s)
                async with aclosing(connection.call(name, arguments, call_key, given)) as steps:
                    async for step in steps:
                        if isinstance(step, Outcome | InputRequired) and connection.is_open:
                            place.breaker.succeeded()
                        yield _marked(_hiding(server, step), key, server, connection, used)
        except LinkBroken as exc:
            yield Outcome("error", error=f"Couldn't connect to {key.name}: {server.hide(str(exc))}")

    async def test(self, key: ServerKey, server: McpServer) -> ServerStatus:
        """Connects to a server, whatever its back-off, and fetches its tools again."""
        place = self._place(key, server)
        place.breaker.forgive()
        try:
            with place.in_use():
                connection = await self._connected(key, place, self._limits.connect_s)
                await connection.tools(refresh=True)
            place.breaker.succeeded()
        except LinkBroken as exc:
            return replace(place.status(), error=server.hide(str(exc)))
        return place.status()

    def statuses(self, agent_id: AgentId) -> Mapping[str, ServerStatus]:
        """The status of an agent's servers; if each user has their own, of the one last used."""
        places = [(key.name, place) for key, place in self._places.items() if key.agent_id == agent_id]
        return {name: place.status() for name, place in sorted(places, key=lambda it: it[1].used_at)}

    def states(self) -> list[ServerState]:
        """The status of all servers."""
        return [place.status().state for place in self._places.values()]

    def keep_only(self, agent_id: AgentId, names: Collection[str]) -> None:
        """Ends the servers that an agent no longer has."""
        for key in [key for key in self._places if key.agent_id == agent_id and key.name not in names]:
            self._give_up(key, "It was removed from the agent.")

    def users(self) -> set[UserId]:
        """Users who have a server of their own running."""
        return {key.user_id for key in self._places if key.user_id is not None}

    async def end_those_of(self, user_id: UserId) -> None:
        """Ends the servers that are one user's alone, and waits until they have ended."""
        keys = [key for key in self._places if key.user_id == user_id]
        ending = [task for key in keys if (task := self._give_up(key, "Its user was deleted."))]
        if ending:
            await asyncio.wait(ending)

    async def close(self) -> None:
        """Ends all servers."""
        self._is_closed = True
        for key in list(self._places):
            self._give_up(key, "Threadkeep is shutting down.")
        if self._sweeping is not None:
            await end_tasks(self._sweeping.task)
        for connection in self._live:
            self._close(connection, "Threadkeep is shutting down.")
        while self._closing:
            await asyncio.wait(self._closing)

    def _place(self, key: ServerKey, server: McpServer) -> _Place:
        """A server's place; a new one if the server's configuration has changed."""
        place = self._places.get(key)
        if place is not None and place.server != server:
            self._give_up(key, "Its configuration changed.")
            place = None
        if place is None:
            place = self._places[key] = _Place(server)
        return place

    def _give_up(self, key: ServerKey, reason: str) -> "asyncio.Task[None] | None":
        """Drops a server's place; the task is done when the server has ended."""
        place = self._places.pop(key)
        if place.attempt is not None:
            place.attempt.cancel()
        return None if place.connection is None else self._close(place.connection, reason)

    def _close(self, connection: "Connection", reason: str) -> "asyncio.Task[None]":
        connection.end(reason)  # at once: nobody may use it any more
        task = asyncio.create_task(connection.close(reason))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _connected(self, key: ServerKey, place: _Place, wait_s: float) -> "Connection":
        deadline = time.monotonic() + wait_s
        while True:
            now = place.used_at = time.monotonic()
            attempt = place.attempt or self._begin(key, place, now)
            # Counted from the start of the attempt: only the first turns wait for a slow server.
            until = min(deadline, place.began_at + wait_s)
            await asyncio.wait([attempt], timeout=max(0.0, until - now))
            if not attempt.done():
                raise LinkBroken("It is still starting.")
            if attempt.cancelled():
                raise LinkBroken("It was closed.")
            connection = attempt.result()
            if connection.is_open:
                return connection
            # Once it has ended there is room for the next attempt.
            await asyncio.wait([connection.task], timeout=max(0.0, deadline - time.monotonic()))
            if not connection.task.done():
                raise LinkBroken("It is still shutting down.")

    def _begin(self, key: ServerKey, place: _Place, now: float) -> "asyncio.Task[Connection]":
        if self._is_closed:
            raise LinkBroken("Threadkeep is shutting down.")
        if wait_s := place.breaker.wait_s(now):
            raise LinkBroken(f"{place.breaker.reason} Retrying in {math.ceil(wait_s)} s.")
        if self._sweeping is None:
            with about():
                self._sweeping = self._loops.start("idle MCP servers", self._sweep, self._until_next_sweep)
        place.began_at = now
        place.attempt = attempt = asyncio.create_task(self._open(key, place))
        attempt.add_done_callback(place.settle)
        return attempt

    async def _open(self, key: ServerKey, place: _Place) -> "Connection":
        """Starts a server and waits until it can be used."""
        launch = await asyncio.to_thread(_load_launch)
        await self._reserve()
        try:
            connection = await launch(
                key, place.server, self._environment, place.log, self._limits, self._reading
            )
        except (LinkBroken, ThreadkeepError) as exc:
            place.breaker.failed(time.monotonic(), str(exc))
            raise LinkBroken(str(exc)) from exc
        finally:
            self._reserved -= 1
        connection.start_number = next(self._start_numbers)
        place.connection = connection
        self._live.add(connection)
        connection.task.add_done_callback(lambda _: self._ended(place, connection))
        await asyncio.wait([connection.ready])
        if connection.ready.exception():
            await asyncio.wait([connection.task])
        connection.ready.result()
        return connection

    async def _reserve(self) -> None:
        """Takes a slot. If all are taken, ends the server that has been idle the longest, and waits for it.

        No lock: a server may take seconds to end, and others that have room start meanwhile.
        """
        self._awaiting_room += 1
        try:
            while len(self._live) + self._reserved >= self._limits.most_servers:
                ending = [connection.task for connection in self._live if not connection.is_open]
                if len(ending) < self._awaiting_room and (idlest := self._idlest()) is not None:
                    self._close(idlest, "Another server needed its slot.")
                    ending.append(idlest.task)
                if not ending:
                    raise _NoRoom(f"All {self._limits.most_servers} server slots are in use.")
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            self._reserved += 1
        finally:
            self._awaiting_room -= 1

    def _idlest(self) -> "Connection | None":
        idle = [place.connection for place in self._places.values() if place.connection and place.is_idle]
        return min(idle, key=lambda connection: connection.used_at, default=None)

    def _ended(self, place: _Place, connection: "Connection") -> None:
        self._live.discard(connection)
        place.connection = place.attempt = None
        if connection.failure is not None:
            place.breaker.failed(time.monotonic(), connection.failure)
            place.log.note(connection.failure)

    async def _sweep(self) -> None:
        """Ends servers that have been idle for a while, and drops old places."""
        now = time.monotonic()
        for key, place in list(self._places.items()):
            connection = place.connection
            if connection is None:
                if place.attempt is None and now - place.used_at > FORGET_S:
                    del self._places[key]
            elif place.is_idle and now - connection.used_at > self._limits.idle_s:
                self._close(connection, "It was idle.")

    async def _until_next_sweep(self) -> None:
        await asyncio.sleep(min(self._limits.idle_s / 4, 30))


class _NoRoom(LinkBroken):
    """Not the server's fault."""


def _hiding(server: McpServer, step: Step) -> Step:
    """A step without the server's secrets in its error or question."""
    match step:
        case Outcome(error=str(error)):
            return replace(step, error=server.hide(error))
        case Asked():
            return replace(step, message=server.hide(step.message))
        case InputRequired():
            hidden = (replace(it, message=server.hide(it.message)) for it in step.requests)
            return replace(step, requests=tuple(hidden))
        case _:
            return step


def _marked(
    step: Step, key: ServerKey, server: McpServer, connection: "Connection", used: UsedServers
) -> Step:
    """A step, marked if it is the first outcome of a restarted program."""
    if isinstance(step, Outcome) and used.was_restarted(key, server, connection.start_number):
        return replace(step, restarted=True)
    return step


def _load_launch() -> "Launch":
    """Loads the MCP SDK; in a thread, since it takes about a second."""
    from threadkeep.mcp.launch import launch  # noqa: PLC0415 - many never need the SDK

    return launch
