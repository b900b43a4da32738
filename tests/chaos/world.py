"""The servers of the chaos: nodes, their database with a replica, what lies between them, model and tools."""

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import psycopg

from tests.faults.relaying import Relay
from tests.faults.scene import desk, paced_reply_to
from tests.pooling import PgBouncer
from tests.postgres import PostgresServer, free_port
from tests.serving import SOURCE, Server
from threadkeep import User, UserRole
from threadkeep.domain.ids import UserId
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel
from threadkeep.testing.script import Pause

Engine = Literal["sqlite", "postgres"]

SECRET = "a-secret-for-the-chaos-that-is-long-enough"
HEARD = "Heard."
MODEL = "scripted/scripted"
# A crash of PostgreSQL loses nothing that a commit has reported, nor does a failover; the machine stays up.
# A replica that lost the primary looks for it often: until then, commits wait for it.
POSTGRES_OPTIONS = (
    "-c fsync=off -c full_page_writes=off -c synchronous_commit=remote_apply "
    "-c wal_retrieve_retry_interval=200"
)
MOST_LINES = 20_000
SOURCES = os.pathsep.join((str(SOURCE), str(Path(__file__).parents[2])))
TOML = """
[gateways.scripted]
kind = "openai"
url = "{url}"
api_key = "sk-scripted"
[[gateways.scripted.models]]
name = "scripted"
context_tokens = 100000
max_output_tokens = 1000
price = {{input = "1.00", output = "2.00"}}
"""


LEFT = """SELECT 'reservation', CAST(turn_id AS text) FROM tk_reservations
    UNION ALL SELECT status, CAST(id AS text) FROM tk_turns WHERE status IN ('RUNNING', 'WAITING')"""


class Cluster:
    """A PostgreSQL with a replica that has everything a commit has reported."""

    def __init__(self) -> None:
        self.primary = PostgresServer(options=POSTGRES_OPTIONS).start()
        self.url = self.primary.create_database("chaos")
        self.replica: PostgresServer | None = None

    def follow(self) -> None:
        """Gives the primary a replica, and has commits wait for it."""
        self.replica = self.primary.make_replica()
        self._on_primary("ALTER SYSTEM SET synchronous_standby_names = '*'")

    def fail_over(self) -> float:
        """The primary dies, and the replica takes over; how long nothing could be written."""
        assert self.replica
        begun = time.monotonic()
        self.primary.stop("immediate")
        dead, self.primary, self.replica = self.primary, self.replica, None
        self.primary.promote()
        self._on_primary("ALTER SYSTEM RESET synchronous_standby_names")
        took = time.monotonic() - begun
        dead.close()
        return took

    def crash(self) -> None:
        """The primary dies and is started again."""
        self.primary.restart("immediate")

    def restart(self) -> None:
        """As for an update."""
        self.primary.restart("fast")

    def close(self) -> None:
        """Ends both."""
        for server in (self.replica, self.primary):
            if server:
                server.close()

    def _on_primary(self, command: str) -> None:
        with psycopg.connect(self.primary.url("postgres"), autocommit=True) as connection:
            connection.execute(command.encode())
            connection.execute("SELECT pg_reload_conf()")


class Node:
    """A place where a node runs: its address and settings stay, its process is replaced."""

    def __init__(self, number: int, folder: Path, settings: dict[str, str]) -> None:
        self.number = number
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self._arguments = ("--port", str(port), "--agents", "tests.chaos.agent:bookkeeper")
        self._folder = folder
        self._settings = settings
        self.server: Server | None = None
        self.said: list[str] = []
        """What its processes have logged."""

    async def start(self) -> None:
        """Starts the process, again and again while the database is away."""
        while True:
            try:
                self.server = await asyncio.to_thread(
                    Server, self._folder, *self._arguments, source=SOURCES, **self._settings
                )
            except AssertionError as exc:
                if "Traceback" in str(exc):
                    raise
                await asyncio.sleep(0.5)
            else:
                self.said = [*self.said[-MOST_LINES:], f"started at {time.strftime('%X')}\n"]
                return

    async def end(self, how: signal.Signals) -> None:
        """Ends the process, by force if it doesn't."""
        if self.server:
            server, self.server = self.server, None
            server.process.send_signal(how)
            await asyncio.to_thread(server.wait)
            self.said += server.lines

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        if self.server:
            self.server.process.send_signal(number)


class World:
    """Everything that can fail."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine: Engine = engine
        self.folder = folder
        self.model = ScriptedModel(otherwise=self._reply_to)
        self.tools = desk(0.1)
        self.nodes: Sequence[Node] = ()
        self.cluster: Cluster | None = None
        self.pooler: PgBouncer | None = None
        self.relays: list[Relay] = []
        """Between the nodes and the database."""
        self.model_relay: Relay
        self.tool_relay: Relay
        self.tool_url = ""
        self._model_url = ""
        self.model_pause_s = 0.0
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "World":
        for it in (self.model, self.tools):
            self._stack.enter_context(it)
        self.model_relay, self._model_url = await self._relayed(self.model.url)
        self.tool_relay, self.tool_url = await self._relayed(self.tools.url)
        (self.folder / "threadkeep.toml").write_text(TOML.format(url=self._model_url))
        if self.engine == "sqlite":
            self.nodes = [Node(0, self.folder, self._settings())]
            await self.nodes[0].start()
        else:
            await self._start_on_postgres()
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            node.signal(signal.SIGCONT)
            await node.end(signal.SIGKILL)
        for relay in (*self.relays, self.model_relay, self.tool_relay):
            await relay.close()
        await self._stack.aclose()

    def lead_to_primary(self) -> None:
        """All go to the server that takes writes."""
        assert self.cluster
        for relay in self.relays:
            relay.lead_to(self.cluster.primary.port)

    def client(self, node: Node, user: str, *, admin: bool = False) -> httpx.AsyncClient:
        """Somebody at a node."""
        token = issue_token(SECRET, User(UserId(user), UserRole.ADMIN if admin else UserRole.USER), 86_400)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=node.url, headers=headers, trust_env=False, timeout=30)

    async def _start_on_postgres(self) -> None:
        self.cluster = await asyncio.to_thread(Cluster)
        self._stack.callback(self.cluster.close)
        await asyncio.to_thread(self.cluster.follow)
        relayed = [await self._relayed(self.cluster.url) for _ in range(3)]
        self.relays, urls = [relay for relay, _ in relayed], [url for _, url in relayed]
        self.pooler = self._stack.enter_context(PgBouncer(urls[0], pool_size=8))
        settings = [
            self._settings(database_url=self.pooler.url, bus_url="poll:"),
            *(self._settings(database_url=url) for url in urls[1:]),
        ]
        self.nodes = [Node(number, self.folder, it) for number, it in enumerate(settings)]
        await self.nodes[0].start()
        await asyncio.gather(*(node.start() for node in self.nodes[1:]))

    def left(self) -> Sequence[tuple[Any, ...]]:
        """What was set aside for turns, and the turns that haven't ended."""
        if self.cluster:
            with psycopg.connect(self.cluster.primary.url("chaos")) as connection:
                return connection.execute(LEFT).fetchall()
        with closing(sqlite3.connect(self.folder / "data" / "threadkeep.db")) as connection:
            return connection.execute(LEFT).fetchall()

    async def _relayed(self, url: str) -> tuple[Relay, str]:
        parts = urlsplit(url)
        relay = Relay("127.0.0.1", parts.port or 0)
        server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
        self._stack.callback(server.close)
        login, at, _ = parts.netloc.rpartition("@")
        port = server.sockets[0].getsockname()[1]
        return relay, parts._replace(netloc=f"{login}{at}127.0.0.1:{port}").geturl()

    def _settings(self, **settings: str) -> dict[str, str]:
        return {
            "jwt_secret": SECRET,
            "secret_key": "a-key-for-the-chaos-that-is-long-enough",
            "gateway": "openai",
            "gateway_url": self._model_url,  # for what no agent's model does
            "gateway_api_key": "sk-scripted",
            "model": "scripted",
            "mcp_allow_private": "true",
            "mcp_connect_budget_s": "60",
            "embedding_url": "off",
            "user_budget_day": "100",
            "user_writes_per_minute": "0",
            "database_pool_size": "4",
            "agents_pause_after_s": "0.05",
            **settings,
        }

    def _reply_to(self, request: Recorded) -> Reply:
        """Replies in full to what "Do it" asks, in a word to everything else."""
        asked = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
        is_whole = "Do it, for" in str(asked[-1]) and sum("Do it, for" in str(it) for it in asked) == 1
        said: Reply = paced_reply_to(request) if is_whole else [Say(HEARD)]
        return [Pause(self.model_pause_s), *said] if self.model_pause_s else said


Json = dict[str, Any]
