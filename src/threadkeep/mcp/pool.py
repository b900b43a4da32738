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
from threadkeep.domain.ids import AgentId, ConversationId, UserId
from threadkeep.domain.mcp import McpServer
from threadkeep.loops import Loop, Loops
from threadkeep.mcp.breaker import Breaker
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.processes.lines import ServerLog
from threadkeep.mcp.processes.programs import ServerEnvironment, ServerKey
from threadkeep.mcp.sessions.incoming import LargeMessageReader
from threadkeep.mcp.used_servers import UsedServers
from threadkeep.ports.mcp import ServerState, ServerStatus
from threadkeep.ports.tools import Asked, GivenInput, InputRequired, Returned, Step, Tool
from threadkeep.program_log import about
from threadkeep.tasks import end_tasks

if TYPE_CHECKING:
    from threadkeep.mcp.sessions.session import ServerSession

Launch = Callable[
    [ServerKey, McpServer, ServerEnvironment, ServerLog, Limits, LargeMessageReader],
    Awaitable["ServerSession"],
]

FORGET_S = 3600.0
"""After this long without use the pool forgets a server, with its log and its failures."""


class _PooledServer:
    """A server that the pool knows. It outlives the process: it keeps the latest failures and the log."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.breaker = Breaker()
        self.log = ServerLog()
        self.attempt: asyncio.Task[ServerSession] | None = None
        self.session: ServerSession | None = None
        self.began_at = self.used_at = time.monotonic()
        self.users = 0

    @contextmanager
    def in_use(self) -> Generator[None]:
        """While a caller waits for the server or its answer, no other server gets its slot."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    @property
    def is_idle(self) -> bool:
        """Whether the server runs and nobody needs it."""
        return self.session is not None and self.session.is_ready and not self.users

    def settle(self, attempt: "asyncio.Task[ServerSession]") -> None:
        """Clears a failed attempt for the next one."""
        if (attempt.cancelled() or attempt.exception()) and self.attempt is attempt:
            self.attempt = None

    @property
    def state(self) -> ServerState:
        """The server's state."""
        if self.session is not None and self.session.is_ready:
            return ServerState.READY
        if self.attempt is not None and (self.session is None or self.session.is_open):
            return ServerState.CONNECTING
        return ServerState.FAILED if self.breaker.failures else ServerState.IDLE

    def status(self) -> ServerStatus:
        """The same, with reasons and without the server's secrets."""
        tools = self.session.known_tools if self.session and self.session.is_ready else None
        error = None if tools is not None else self.server.hide(self.breaker.reason) or None
        return ServerStatus(self.state, error, tools, self.server.hide(self.log.text))


class Pool:
    """The servers of all agents on this node."""

    def __init__(self, environment: ServerEnvironment, limits: Limits, loops: Loops) -> None:
        self._environment = environment
        self._loops = loops
        self._limits = limits
        self._reader = LargeMessageReader()
        self._servers: dict[ServerKey, _PooledServer] = {}
        self._live: set[ServerSession] = set()
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
        pooled = self._find(key, server)
        try:
            with pooled.in_use():
                session = await self._connected(key, pooled, self._limits.budget_s)
                async with asyncio.timeout_at(deadline):
                    return await session.tools()
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
        """Calls a tool: any number of Progress and Asked, then one Returned or InputRequired.

        Closing it cancels the call. The server receives the `call_key`, by which it can recognise a repeated
        call. With `used`, the first result of a restarted program says so.
        """
        used = used or UsedServers()
        pooled = self._find(key, server)
        try:
            with pooled.in_use():
                session = await self._connected(key, pooled, self._limits.budget_s)
                async with aclosing(session.call(name, arguments, call_key, given)) as steps:
                    async for step in steps:
                        if isinstance(step, Returned | InputRequired) and session.is_open:
                            pooled.breaker.succeeded()
                        yield _marked(_hiding(server, step), key, server, session, used)
        except LinkBroken as exc:
            yield Returned("error", error=f"Couldn't connect to {key.name}: {server.hide(str(exc))}")

    async def test(self, key: ServerKey, server: McpServer) -> ServerStatus:
        """Connects to a server, whatever its back-off, and fetches its tools again."""
        pooled = self._find(key, server)
        pooled.breaker.forgive()
        try:
            with pooled.in_use():
                session = await self._connected(key, pooled, self._limits.connect_s)
                await session.tools(refresh=True)
            pooled.breaker.succeeded()
        except LinkBroken as exc:
            return replace(pooled.status(), error=server.hide(str(exc)))
        return pooled.status()

    def statuses(self, agent_id: AgentId) -> Mapping[str, ServerStatus]:
        """The status of an agent's servers; if each user has their own, of the one last used."""
        known = [(key.name, server) for key, server in self._servers.items() if key.agent_id == agent_id]
        return {name: server.status() for name, server in sorted(known, key=lambda it: it[1].used_at)}

    def states(self) -> list[ServerState]:
        """The status of all servers."""
        return [server.status().state for server in self._servers.values()]

    def keep_only(self, agent_id: AgentId, names: Collection[str]) -> None:
        """Ends the servers that an agent no longer has."""
        for key in [key for key in self._servers if key.agent_id == agent_id and key.name not in names]:
            self._give_up(key, "It was removed from the agent.")

    def users(self) -> set[UserId]:
        """Users who have a server of their own running."""
        return {key.user_id for key in self._servers if key.user_id is not None}

    async def end_those_of(self, user_id: UserId) -> None:
        """Ends the servers that are one user's alone, and waits until they have ended."""
        keys = [key for key in self._servers if key.user_id == user_id]
        ending = [task for key in keys if (task := self._give_up(key, "Its user was deleted."))]
        if ending:
            await asyncio.wait(ending)

    def end_those_of_conversation(self, conversation_id: ConversationId) -> None:
        """Ends the servers that are one conversation's alone."""
        for key in [it for it in self._servers if it.conversation_id == conversation_id]:
            self._give_up(key, "Its conversation has ended.")

    async def close(self) -> None:
        """Ends all servers."""
        self._is_closed = True
        for key in list(self._servers):
            self._give_up(key, "Threadkeep is shutting down.")
        if self._sweeping is not None:
            await end_tasks(self._sweeping.task)
        for session in self._live:
            self._close(session, "Threadkeep is shutting down.")
        while self._closing:
            await asyncio.wait(self._closing)

    def _find(self, key: ServerKey, server: McpServer) -> _PooledServer:
        """What the pool knows of a server; forgets it if the configuration has changed."""
        pooled = self._servers.get(key)
        if pooled is not None and pooled.server != server:
            self._give_up(key, "Its configuration changed.")
            pooled = None
        if pooled is None:
            pooled = self._servers[key] = _PooledServer(server)
        return pooled

    def _give_up(self, key: ServerKey, reason: str) -> "asyncio.Task[None] | None":
        """Forgets a server; the task is done when the server has ended."""
        pooled = self._servers.pop(key)
        if pooled.attempt is not None:
            pooled.attempt.cancel()
        return None if pooled.session is None else self._close(pooled.session, reason)

    def _close(self, session: "ServerSession", reason: str) -> "asyncio.Task[None]":
        session.end(reason)  # at once, so that no other call uses it
        task = asyncio.create_task(session.close(reason))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _connected(self, key: ServerKey, pooled: _PooledServer, wait_s: float) -> "ServerSession":
        deadline = time.monotonic() + wait_s
        while True:
            now = pooled.used_at = time.monotonic()
            attempt = pooled.attempt or self._begin(key, pooled, now)
            # Counted from the start of the attempt: only the first turns wait for a slow server.
            until = min(deadline, pooled.began_at + wait_s)
            await asyncio.wait([attempt], timeout=max(0.0, until - now))
            if not attempt.done():
                raise LinkBroken("It is still starting.")
            if attempt.cancelled():
                raise LinkBroken("It was closed.")
            session = attempt.result()
            if session.is_open:
                return session
            # Once it has ended there is room for the next attempt.
            await asyncio.wait([session.task], timeout=max(0.0, deadline - time.monotonic()))
            if not session.task.done():
                raise LinkBroken("It is still shutting down.")

    def _begin(self, key: ServerKey, pooled: _PooledServer, now: float) -> "asyncio.Task[ServerSession]":
        if self._is_closed:
            raise LinkBroken("Threadkeep is shutting down.")
        if wait_s := pooled.breaker.wait_s(now):
            raise LinkBroken(f"{pooled.breaker.reason} Retrying in {math.ceil(wait_s)} s.")
        if self._sweeping is None:
            with about():
                self._sweeping = self._loops.start("idle MCP servers", self._sweep, self._until_next_sweep)
        pooled.began_at = now
        pooled.attempt = attempt = asyncio.create_task(self._open(key, pooled))
        attempt.add_done_callback(pooled.settle)
        return attempt

    async def _open(self, key: ServerKey, pooled: _PooledServer) -> "ServerSession":
        """Starts a server and waits until it can be used."""
        launch = await asyncio.to_thread(_load_launch)
        await self._reserve()
        try:
            session = await launch(
                key, pooled.server, self._environment, pooled.log, self._limits, self._reader
            )
        except (LinkBroken, ThreadkeepError) as exc:
            pooled.breaker.failed(time.monotonic(), str(exc))
            raise LinkBroken(str(exc)) from exc
        finally:
            self._reserved -= 1
        session.start_number = next(self._start_numbers)
        pooled.session = session
        self._live.add(session)
        session.task.add_done_callback(lambda _: self._ended(pooled, session))
        await asyncio.wait([session.ready])
        if session.ready.exception():
            await asyncio.wait([session.task])
        session.ready.result()
        return session

    async def _reserve(self) -> None:
        """Takes a slot. If all are taken, ends the server that has been idle the longest, and waits for it.

        No lock: a server may take seconds to end, and others that have room start meanwhile.
        """
        self._awaiting_room += 1
        try:
            while len(self._live) + self._reserved >= self._limits.most_servers:
                ending = [session.task for session in self._live if not session.is_open]
                if len(ending) < self._awaiting_room and (idlest := self._idlest()) is not None:
                    self._close(idlest, "Another server needed its slot.")
                    ending.append(idlest.task)
                if not ending:
                    raise _NoRoom(f"All {self._limits.most_servers} server slots are in use.")
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            self._reserved += 1
        finally:
            self._awaiting_room -= 1

    def _idlest(self) -> "ServerSession | None":
        idle = [pooled.session for pooled in self._servers.values() if pooled.session and pooled.is_idle]
        return min(idle, key=lambda session: session.used_at, default=None)

    def _ended(self, pooled: _PooledServer, session: "ServerSession") -> None:
        self._live.discard(session)
        pooled.session = pooled.attempt = None
        if session.failure is not None:
            pooled.breaker.failed(time.monotonic(), session.failure)
            pooled.log.note(session.failure)

    async def _sweep(self) -> None:
        """Ends servers that have been idle for a while, and forgets those that nobody has used for long."""
        now = time.monotonic()
        for key, pooled in list(self._servers.items()):
            session = pooled.session
            if session is None:
                if pooled.attempt is None and now - pooled.used_at > FORGET_S:
                    del self._servers[key]
            elif pooled.is_idle and now - session.used_at > self._limits.idle_s:
                self._close(session, "It was idle.")

    async def _until_next_sweep(self) -> None:
        await asyncio.sleep(min(self._limits.idle_s / 4, 30))


class _NoRoom(LinkBroken):
    """Not the server's fault."""


def _hiding(server: McpServer, step: Step) -> Step:
    """A step without the server's secrets in its error or question."""
    match step:
        case Returned(error=str(error)):
            return replace(step, error=server.hide(error))
        case Asked():
            return replace(step, message=server.hide(step.message))
        case InputRequired():
            hidden = (replace(it, message=server.hide(it.message)) for it in step.requests)
            return replace(step, requests=tuple(hidden))
        case _:
            return step


def _marked(
    step: Step, key: ServerKey, server: McpServer, session: "ServerSession", used: UsedServers
) -> Step:
    """A step, marked if it is the first result of a restarted program."""
    if isinstance(step, Returned) and used.was_restarted(key, server, session.start_number):
        return replace(step, restarted=True)
    return step


def _load_launch() -> "Launch":
    """Loads the MCP SDK; in a thread, since it takes about a second."""
    from threadkeep.mcp.sessions.launch import launch  # noqa: PLC0415 - many never need the SDK

    return launch
