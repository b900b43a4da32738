"""Nodes of this version and of the next side by side, as "Rolling upgrade" in docs/operating.md has them."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.conftest import TEMPLATE
from tests.faults.scene import (
    Person,
    agent_settings,
    check_end,
    converse,
    desk,
    kinds,
    reply_to,
    stage_of,
    subject_of,
)
from tests.faults.test_killed_servers import settings_for
from tests.postgres import Postgres
from tests.serving import SOURCE, Server
from tests.talking import JSON
from threadkeep.runtime.heartbeat import BEAT_S
from threadkeep.storage.turns import LOG_VERSION, PLAIN_LOG_VERSION
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, ToolServer, Wait
from threadkeep.testing.waiting import until

# What the next version changes: it writes an entry into each journal that this one cannot read.
NEXT = (
    ("version.py", '__version__ = version("threadkeep")', '__version__ = "next"'),
    ("storage/turns.py", f"\nLOG_VERSION = {LOG_VERSION}\n", f"\nLOG_VERSION = {LOG_VERSION + 1}\n"),
    (
        "storage/turns.py",
        f"\nPLAIN_LOG_VERSION = {PLAIN_LOG_VERSION}\n",
        f"\nPLAIN_LOG_VERSION = {LOG_VERSION + 1}\n",
    ),
    (
        "engine/journal.py",
        "\n\nJournalEntry = ",
        '\n\nclass BegunByNext(Struct, frozen=True, tag="begun_by_next"):\n    pass\n\n\n'
        "JournalEntry = BegunByNext | ",
    ),
    ("engine/journal.py", "JOURNAL_ENTRIES = (", "JOURNAL_ENTRIES = (BegunByNext, "),
    ("log/writer.py", "    JOURNAL_ENTRIES,\n", "    JOURNAL_ENTRIES,\n    BegunByNext,\n"),
    ("log/writer.py", "return (TurnStart.of(turn), ", "return (TurnStart.of(turn), BegunByNext(), "),
)


@pytest.fixture(scope="module")
def next_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the next version."""
    source = tmp_path_factory.mktemp("next")
    package = source / "threadkeep"
    shutil.copytree(SOURCE / "threadkeep", package, ignore=shutil.ignore_patterns("page"))
    for name, before, after in NEXT:
        text = (package / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, (name, before)
        (package / name).write_text(text.replace(before, after), encoding="utf-8")
    return source


@dataclass
class Node:
    """A node of either version, and a client of its user."""

    server: Server
    http: httpx.AsyncClient

    async def status(self, person: Person) -> str:
        """How somebody's turn stands."""
        return (await self.http.get(f"/api/turns/{person.turn_id}")).json()["status"]

    async def stop(self) -> None:
        """Ends it as a deploy does."""
        assert await asyncio.to_thread(self.server.stop, signal.SIGTERM) == 0


class Nodes:
    """Starts nodes of both versions on one database."""

    def __init__(self, folder: Path, settings: dict[str, str], next_version: Path) -> None:
        self._folder = folder
        self._settings = settings
        self._next = next_version
        self._stack = AsyncExitStack()

    async def start_old(self) -> Node:
        """One of this version."""
        return await self._start(SOURCE)

    async def start_new(self) -> Node:
        """One of the next version."""
        node = await self._start(self._next)
        assert (await node.http.get("/readyz")).headers["threadkeep-version"] == "next"
        return node

    async def close(self) -> None:
        """Ends those that run, in whatever state."""
        await self._stack.aclose()

    async def _start(self, source: Path) -> Node:
        server = await asyncio.to_thread(Server, self._folder, source=source, **self._settings)
        self._stack.enter_context(server)
        return Node(server, await self._stack.enter_async_context(server.async_client()))


@pytest.fixture
async def nodes(
    tmp_path: Path, model: ScriptedModel, postgres: Postgres, next_version: Path
) -> AsyncIterator[Nodes]:
    url = postgres.create_database(template=TEMPLATE)
    nodes = Nodes(tmp_path, settings_for(model, url), next_version)
    yield nodes
    await nodes.close()


@pytest.fixture
def tools() -> Iterator[ToolServer]:
    with desk() as tools:
        yield tools


class Held:
    """A model that talks without an end to those who are to be met in the middle of their turn."""

    def __init__(self) -> None:
        self.is_over = False
        self.gates: dict[str, Gate] = {}

    def reply_to(self, request: Recorded) -> Reply:
        """As always, unless the turn is to be held: then its first call does not end."""
        gate = self.gates.get(subject_of(request))
        if gate is None or self.is_over or stage_of(request) > 1:
            return reply_to(request)
        return [Say("I look "), Wait(gate)]


@pytest.fixture
def held(model: ScriptedModel) -> Iterator[Held]:
    held = Held()
    model.otherwise = held.reply_to
    yield held
    for gate in held.gates.values():
        gate.open()


async def begin_held(node: Node, agent: str, held: Held, about: str) -> Person:
    """Somebody whose turn runs at a node and is in a call of its model."""
    gate = held.gates[about] = Gate()
    person = await Person.meet(node.http, agent, about)
    await person.begin(node.http)
    await gate.reached()
    return person


async def begin_asking(node: Node, agent: str, about: str) -> Person:
    """Somebody whose turn was begun at a node and waits for their decision."""
    person = await Person.meet(node.http, agent, about, is_decided_elsewhere=True)
    await person.begin(node.http)
    await until(lambda: is_waiting(node, person))
    person.is_decided_elsewhere = False
    return person


async def is_waiting(node: Node, person: Person) -> bool:
    return await node.status(person) == "WAITING"


async def test_decision_at_a_node_of_either_version_continues_the_turn_of_the_other(
    nodes: Nodes, model: ScriptedModel, held: Held, tools: ToolServer
):
    old, new = await asyncio.gather(nodes.start_old(), nodes.start_new())
    agent = await converse(old.http, agent_settings(tools))
    for begun, decided_at in ((old, new), (new, old)):
        person = await begin_asking(begun, agent, f"it-{begun.server.port}")
        await person.talk(decided_at.http)
        await check_end(begun.http, person, tools, model)
    await check_stopping(old, await begin_asking(new, agent, "stopped"))
    await check_going_on(old, new, await begin_asking(new, agent, "left"))


async def check_stopping(old: Node, person: Person) -> None:
    """At an old node the turn of a new one can be stopped while it waits."""
    aborted = await old.http.post(f"/api/conversations/{person.conversation}/abort")
    assert aborted.json()["status"] == "GENERATION_ABORTED"
    assert await old.status(person) == "CANCELLED"


async def check_going_on(old: Node, new: Node, person: Person) -> None:
    """An old node refuses a message sent instead of a decision, and the turn stays as it is."""
    path, body = f"/api/conversations/{person.conversation}/messages?wait=true", {"content": "Never mind."}
    sent = await old.http.post(path, json=body, headers=JSON)
    assert (sent.status_code, sent.json()["error"]["code"]) == (409, "TURN_IN_PROGRESS")
    assert await old.status(person) == "WAITING"
    sent = await new.http.post(path, json=body, headers=JSON)
    assert (sent.status_code, sent.json()["status"]) == (200, "COMPLETED")
    assert await old.status(person) == "CANCELLED"


async def test_turns_go_on_while_nodes_are_replaced_one_by_one_and_when_one_goes_back(
    nodes: Nodes, model: ScriptedModel, held: Held, tools: ToolServer
):
    old, new = await asyncio.gather(nodes.start_old(), nodes.start_new())
    agent = await converse(old.http, agent_settings(tools))
    of_old, of_new = [await begin_held(it, agent, held, f"it-{it.server.port}") for it in (old, new)]
    following = asyncio.create_task(of_new.talk(old.http))
    # Back: the new node ends. The old one looks for abandoned turns meanwhile, and leaves this one alone.
    await new.stop()
    await asyncio.sleep(2 * BEAT_S)
    assert (await old.status(of_new), kinds(of_new.seen)["turn_resumed"]) == ("RUNNING", 0)
    # Forward: it is there again, and then the old one ends.
    held.is_over = True
    new = await nodes.start_new()
    await following
    await check_end(old.http, of_new, tools, model)
    await old.stop()
    await of_old.talk(new.http)
    await check_end(new.http, of_old, tools, model)
    for person in (of_old, of_new):
        assert {it["attempt"] for it in person.seen if it["type"] == "turn_resumed"} == {0}
