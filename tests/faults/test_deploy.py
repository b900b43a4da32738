"""A deploy while people talk: each node in turn is stopped and started again as its systemd unit says."""

import asyncio
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.conftest import TEMPLATE
from tests.faults.balancing import balancing
from tests.faults.scene import look, stage_of, subject_of
from tests.faults.test_killed_servers import settings_for
from tests.postgres import Postgres
from tests.serving import Server, lasting_port
from threadkeep import Settings
from threadkeep.client import Client
from threadkeep.domain.events import Done, IterationRestart, Notice, ToolResultStored, TurnEvent, TurnResumed
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, ToolServer, UseTool, Wait
from threadkeep.testing.waiting import PATIENCE_S, until

UNIT_FILE = Path(__file__).parents[2] / "deploy" / "threadkeep.service"
UNIT = dict(re.findall(r"^(\w+)=(.*)$", UNIT_FILE.read_text(encoding="utf-8"), re.MULTILINE))
KILL_SIGNAL = signal.Signals[UNIT.get("KillSignal", "SIGTERM")]  # systemd's default
GRACE_S = Settings.load({}).shutdown_grace_s

BEFORE, DURING = 30, 10
"""Turns that run when the first node is stopped, and that begin while each of the two ends."""
COUNT = BEFORE + 2 * DURING
WAITING = 5
"""Every fifth client waits for the whole reply; the others read the events."""
SAID = ("I look and note.", "Once more.", "Done.")


class Load:
    """Turns of three model calls with a tool that writes after each of the first two.

    Each is held at both places until the test lets it go: an even one within its call of the model, an odd
    one within its tool.
    """

    def __init__(self) -> None:
        self.reached: set[tuple[int, str]] = set()
        self.server = ToolServer(self.note, reading=[look], name="desk")
        self.seen: dict[str, list[TurnEvent]] = {}
        self._in_model, self._in_tool = ({1: Gate(), 2: Gate()} for _ in range(2))
        self._talking: list[asyncio.Task[None]] = []

    async def note(self, about: str, stage: int) -> str:
        """Writes something down."""
        if int(about) % 2:
            self.reached.add((stage, about))
            await self._in_tool[stage].pass_through()
        return f"noted: {about}"

    def reply_to(self, request: Recorded) -> Reply:
        """What the model does: the same whenever it is asked the same."""
        stage, about = stage_of(request), subject_of(request)
        said, note = Say(SAID[stage - 1]), UseTool("desk__note", {"about": about, "stage": stage})
        if stage == len(SAID):
            return [said]
        looked = [UseTool("desk__look", {"about": about})] if stage == 1 else []
        if int(about) % 2:
            return [said, *looked, note]
        self.reached.add((stage, about))
        return [said, Wait(self._in_model[stage]), *looked, note]

    def talk(self, client: Client, conversations: list[str]) -> None:
        """People who talk from now on, each in a conversation of their own."""
        for conversation in conversations:
            about = str(len(self._talking))
            is_waiting = len(self._talking) % WAITING == 0
            talk = (self._wait if is_waiting else self._read)(client, conversation, about)
            self._talking.append(asyncio.create_task(talk))

    async def _read(self, client: Client, conversation: str, about: str) -> None:
        self.seen[about] = []
        async for event in client.send(conversation, f"Do it, for {about}"):
            self.seen[about].append(event)

    async def _wait(self, client: Client, conversation: str, about: str) -> None:
        reply = await client.ask(conversation, f"Do it, for {about}")
        assert (reply.status, reply.content) == ("COMPLETED", "\n\n".join(SAID))
        assert reply.turn_id is not None
        self.seen[about] = [event async for event in client.follow(reply.turn_id)]

    async def until_held(self, stage: int) -> None:
        """Until all who talk are held there; nobody has ended before, with an error or without."""
        await until(lambda: self._count_at(stage) == len(self._talking) or self._has_ended)
        await asyncio.gather(*(it for it in self._talking if it.done()))
        assert not self._has_ended, self.seen

    async def until_all_have_ended(self) -> None:
        """Until nobody talks any more."""
        await asyncio.gather(*self._talking)

    def let_go(self, stage: int) -> None:
        """All go on who are held there, or will be."""
        self._in_model[stage].open()
        self._in_tool[stage].open()

    def _count_at(self, stage: int) -> int:
        return sum(at == stage for at, _ in self.reached)

    @property
    def _has_ended(self) -> bool:
        return any(it.done() for it in self._talking)


@pytest.fixture
def load(model: ScriptedModel) -> Iterator[Load]:
    load = Load()
    model.otherwise = load.reply_to
    with load.server:
        yield load
        for stage in (1, 2):
            load.let_go(stage)


class Nodes:
    """Two nodes, each on a port that it keeps."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        assert UNIT["ExecStart"].split()[1:] == ["serve"]  # as `Server` starts it
        self._folder = folder
        # A busy machine connects to servers of tools more slowly than people's.
        patience = {"mcp_connect_budget_s": str(PATIENCE_S)}
        self._settings = {**settings, **patience, "shutdown_grace_s": str(GRACE_S)}
        self._running: list[Server] = []

    def start(self) -> None:
        """Starts both."""
        for _ in range(2):
            self._running.append(Server(self._folder, *lasting_port(), **self._settings))

    def close(self) -> None:
        """Ends those that run, in whatever state."""
        for node in self._running:
            node.__exit__()

    @property
    def ports(self) -> list[int]:
        return [node.port for node in self._running]

    async def stop(self, number: int) -> None:
        """Has systemd stop a node: from when this returns, the node begins nothing new."""
        self._running[number].process.send_signal(KILL_SIGNAL)
        await until(lambda: self._status(number, 503))

    async def restart(self, number: int) -> None:
        """Starts a node again when it has ended, in the time that systemd gives it."""
        node = self._running[number]
        await asyncio.to_thread(node.process.wait, int(UNIT["TimeoutStopSec"]))
        assert await asyncio.to_thread(node.wait) == 0
        port = str(node.port)
        self._running[number] = await asyncio.to_thread(
            Server, self._folder, "--port", port, **self._settings
        )
        await until(lambda: self._status(number, 200))

    async def _status(self, number: int, expected: int) -> bool:
        async with self._running[number].async_client() as http:
            return (await http.get("/readyz")).status_code == expected


@pytest.fixture
async def nodes(tmp_path: Path, model: ScriptedModel, postgres: Postgres) -> AsyncIterator[Nodes]:
    url = postgres.create_database(template=TEMPLATE)
    nodes = Nodes(tmp_path, settings_for(model, url))
    try:
        await asyncio.to_thread(nodes.start)
        yield nodes
    finally:
        nodes.close()


async def converse(client: Client, load: Load) -> list[str]:
    """A conversation for each turn."""
    servers = {"desk": {**load.server.settings, "trustAnnotations": True}}
    agent = (await client.create_agent("Clerk", settings={"mcpServers": servers})).id
    return [(await client.create_conversation(agent, title="Deploy")).id for _ in range(COUNT)]


async def test_deploy_under_load_breaks_no_turn_and_no_client_sees_an_error(
    nodes: Nodes, model: ScriptedModel, load: Load
):
    async with balancing(nodes.ports) as url, Client(url) as client:
        conversations = await converse(client, load)
        load.talk(client, conversations[:BEFORE])
        for number, stage in enumerate((1, 2)):
            await load.until_held(stage)
            await nodes.stop(number)
            begun = BEFORE + number * DURING
            load.talk(client, conversations[begun : begun + DURING])
            load.let_go(stage)
            await nodes.restart(number)
        await load.until_all_have_ended()
    assert len(load.seen) == COUNT
    for about, events in load.seen.items():
        check_events(events)
        check_tools(load.server, about)
    # Both nodes had handed off what ran on them when the deploy began; nobody counts that as a loss.
    attempts = {about: attempts_of(events) for about, events in load.seen.items()}
    assert all(attempts[str(number)] for number in range(BEFORE))
    assert {*chain.from_iterable(attempts.values())} == {0}
    assert not model.refused, [it.problems for it in model.refused]


def attempts_of(events: list[TurnEvent]) -> list[int]:
    """What is said of each node that has gone on with a turn."""
    return [event.body.attempt for event in events if isinstance(event.body, TurnResumed)]


def check_events(events: list[TurnEvent]) -> None:
    """A reader has seen everything once, and the turn is whole."""
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    end = events[-1].body
    assert isinstance(end, Done), end
    assert end.status == "COMPLETED"
    assert not any(isinstance(event.body, IterationRestart) for event in events), "asked the model twice"
    results = [event.body.status for event in events if isinstance(event.body, ToolResultStored)]
    assert results == ["ok", "ok", "ok"], [event.body for event in events if isinstance(event.body, Notice)]


def check_tools(server: ToolServer, about: str) -> None:
    """Each call was made once."""
    uses = [it.arguments for it in server.uses if it.arguments["about"] == about]
    assert Counter(it.get("stage") for it in uses) == {None: 1, 1: 1, 2: 1}
