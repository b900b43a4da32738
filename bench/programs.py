"""What agents in code cost: what they say, their steps, and what others notice of one that blocks.

`bench.measured_agents` are served beside a configured agent, whose model speaks like one of them.
"""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from statistics import median

import msgspec

from bench import steps
from bench.client import Clients, Request, request
from bench.databases import empty_database
from bench.measure import Effort, compare
from bench.pieces import TURNS, Side
from bench.servers import TOKEN, Server
from bench.sse import Streams
from bench.table import Aim, Line, Row, Times
from bench.turns import ask_for, make_conversations, serve_with_speaker, signed_in

AGENTS = ("--agents", "bench.measured_agents:AGENTS")
RATE = 20
SAY_AIM = Aim("≤", 300, "P50")
STEPS_A_SECOND, STEPPING_S = 10, 5
CROWDS = (1, 50, 200)
RECALL_AIM = Aim("≤", 1, "P50")
BLOCK_AIMS = {"sleep": Aim("≤", 20, "P99"), "spin": Aim("≤", 100, "P99")}
LOOKS_S, LOOK_EVERY_S = 1.5, 0.01


async def measure(effort: Effort, database: str) -> AsyncGenerator[Row]:
    """All of it on one server, and then steps by themselves."""
    with empty_database(database) as url, serve_with_speaker(url, *AGENTS) as server:
        for rows in (_pieces, _deliveries, _recalls, _blocks):
            for row in rows(effort, server):
                yield row
    for row in await steps.measure(effort, database):
        yield row


def _pieces(effort: Effort, server: Server) -> Iterator[Row]:
    """What is said, beside what a configured agent's model says."""
    configured = Side(server, make_conversations(server, TURNS))
    says = Side(server, conversations(server, "Speaking", TURNS))
    for side in (configured, says):
        side.run(100)  # warms up
    for number in range(effort.piece_rounds):
        for side in (configured, says)[:: 1 if number % 2 else -1]:
            side.run(RATE)
    for where, floor, ours in (
        ("", configured.whole[RATE], says.whole[RATE]),
        (", without begins and ends", configured.middle[RATE], says.middle[RATE]),
    ):
        yield Line(f"a piece of `say`, {TURNS} turns at {RATE}/s{where}", compare(floor, ours))
    added = [mine - theirs for theirs, mine in zip(configured.whole[RATE], says.whole[RATE], strict=True)]
    yield Times.of("`say` adds to a configured agent's piece", added, "µs", SAY_AIM)


def _deliveries(effort: Effort, server: Server) -> Iterator[Row]:
    """How long results take to arrive in the code, while more and more turns run on the loop."""
    for turns in CROWDS:
        ids = conversations(server, "Stepping", turns)
        wanted = f"{STEPS_A_SECOND * STEPPING_S} steps, {STEPS_A_SECOND} a second"
        asked = [ask_for(it, wanted, waits=True) for it in ids]
        crowd = f"{turns} turn{'s' if turns > 1 else ''} of {STEPS_A_SECOND} steps/s"
        begun = time.monotonic()
        _drive(server, asked)
        took_s = time.monotonic() - begun
        lags = [float(lag) for it in ids for lag in reply(server, it).split()]
        yield Times.of(f"from a step's end to the code, {crowd}", lags)
        if turns == max(CROWDS):
            yield Times.of(f"steps a second, {crowd}, with begins and ends", [len(lags) / took_s], "")


def _drive(server: Server, asked: Sequence[Request]) -> None:
    """Asks all at once, and waits for every answer."""
    clients = Clients(server.port, len(asked))
    clients.drive(iter(asked))
    clients.close()


def _recalls(effort: Effort, server: Server) -> Iterator[Row]:
    """From the answer to a question until the code has it, which recalls a thousand steps before that."""
    took_s = [_recall(server, it) for it in conversations(server, "Recalling", effort.piece_rounds + 2)]
    yield Times.of("1,000 recorded steps run again", took_s, "s", RECALL_AIM)


def _recall(server: Server, conversation: str) -> float:
    with signed_in(server) as http:
        sent = http.post(f"/api/conversations/{conversation}/messages?wait=true", json={"content": "Begin."})
        (waiting,) = sent.raise_for_status().json()["approvals"]
        turn = waiting["turnId"]
        answered_at = time.monotonic()
        path = f"/api/turns/{turn}/approvals/{waiting['requestId']}"
        http.post(path, json={"action": "answer", "content": "Yes."}).raise_for_status()
        while (http.get(f"/api/turns/{turn}").json())["status"] != "COMPLETED":
            time.sleep(0.05)
    return float(reply(server, conversation)) - answered_at


def _blocks(effort: Effort, server: Server) -> Iterator[Row]:
    """The longest `/healthz` while an agent keeps the agents' loop for a second, against a quiet one."""
    quiet = median(_looks(server, LOOKS_S * 2))
    for how, aim in BLOCK_AIMS.items():
        longest: list[float] = []
        for conversation in conversations(server, "Blocking", effort.piece_rounds + 2):
            streams = Streams(server.port)
            streams.open([ask_for(conversation, how)])
            longest.append(max(_looks(server, LOOKS_S)) - quiet)
            streams.read_all()
        verb = {"sleep": "blocks", "spin": "spins"}[how]
        yield Times.of(f"an agent {verb} for 1 s: `/healthz` is later by", longest, "ms", aim)


def _looks(server: Server, seconds: float) -> list[float]:
    """Milliseconds of `/healthz`, again and again."""
    clients, found = Clients(server.port, 1), list[float]()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        (timed,) = clients.drive(iter([request("GET", "/healthz")]))
        found.append(timed.seconds * 1000)
        time.sleep(LOOK_EVERY_S)
    clients.close()
    return found


def conversations(server: Server, name: str, count: int) -> list[str]:
    """New conversations with the agent of this name, by their ids."""
    with signed_in(server) as http:
        agents = http.get("/api/agents").json()["items"]
        (agent,) = [it["id"] for it in agents if it["name"] == name]
        path = f"/api/agents/{agent}/conversations"
        return [http.post(path, json={"title": "Measured"}).json()["id"] for _ in range(count)]


def reply(server: Server, conversation: str) -> str:
    """The text of a conversation's last message."""
    clients = Clients(server.port, 1)
    page = clients.ask(
        request("GET", f"/api/conversations/{conversation}/messages?order=desc&limit=1", token=TOKEN)
    )
    clients.close()
    return msgspec.json.decode(page)["items"][0]["content"]
