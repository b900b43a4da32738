"""What running turns notice of a document of 300 pages that is read beside them."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import httpx
from tests.retrieval.files import make_pdf

from bench.client import Request
from bench.databases import empty_database
from bench.measure import Effort
from bench.servers import Server
from bench.sse import Stream, Streams
from bench.table import Aim, Times
from bench.turns import ask, serve_with_speaker, signed_in
from bench.words import words

PAGES, LINES_A_PAGE, WORDS_A_LINE = 300, 40, 12
TURNS, RATE = 20, 20
LOOK_EVERY_S = 0.1
GLANCE_S = 0.005
AIM, AIM_RATIO = Aim("≤", 20, "P50"), Aim("≤", 2, "P50")


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """The gaps between events of turns: alone, while the text is read, and while its meaning is."""
    return _measure(effort.beside_s)


def _measure(seconds: int) -> Sequence[Times]:
    chance = random.Random(13)
    pages = ["\n".join(words(chance, WORDS_A_LINE) for _ in range(LINES_A_PAGE)) for _ in range(PAGES)]
    pdf = make_pdf(pages)
    with (
        empty_database("sqlite") as url,
        serve_with_speaker(url) as server,
        signed_in(server) as client,
    ):
        agent_id = client.post("/api/agents", json={"name": "Measured"}).json()["id"]
        calm = _run(server, _questions(client, agent_id, seconds))
        alone = _gaps(calm, 0, time.monotonic())
        streams = Streams(server.port)
        turns = streams.open(_questions(client, agent_id, seconds))
        streams.read_heads(turns)
        begun = time.monotonic()
        path = f"/api/agents/{agent_id}/documents"
        upload = partial(client.post, path, files={"files": ("long.pdf", pdf)})
        document = _beside(streams, upload).json()["items"][0]
        while document["status"] == "processing":
            streams.read_for(LOOK_EVERY_S)
            document = _beside(streams, partial(client.get, f"{path}/{document['id']}")).json()
        read = time.monotonic()
        assert document["status"] == "ready", document
        streams.read_all()
    gaps = {
        f"gap between events of {TURNS} turns at {RATE}/s, alone": alone,
        "the same while the text is read": _gaps(turns, begun, read),
        "the same while its meaning is read": _gaps(turns, read, time.monotonic()),
    }
    # On a slow machine the turns end before the document.
    lines = [Times.of(what, values) for what, values in gaps.items() if values]
    ratio = lines[1].p99 / lines[0].p99
    return [
        Times.of(f"{PAGES} pages, until they can be searched by words", [read - begun], "s", AIM),
        *lines,
        Times.of("P99 of the gap while the text is read, against alone", [ratio], "times", AIM_RATIO),
    ]


def _run(server: Server, questions: Iterable[Request]) -> list[Stream]:
    streams = Streams(server.port)
    turns = streams.open(questions)
    streams.read_all()
    return turns


def _beside(streams: Streams, ask: Callable[[], httpx.Response]) -> httpx.Response:
    """Asks for something in another thread: who waits for it here would see gaps that are none."""
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(ask)
        while not answer.done():
            streams.read_for(GLANCE_S)
        return answer.result()


def _questions(client: httpx.Client, agent_id: str, seconds: int) -> Iterator[Request]:
    for _ in range(TURNS):
        conversation = client.post(f"/api/agents/{agent_id}/conversations").json()
        yield ask(conversation["id"], seconds * RATE, RATE)


def _gaps(turns: Iterable[Stream], begun: float, ended: float) -> list[float]:
    """Milliseconds between the events of each turn that came in a stretch of time."""
    return [
        (after - before) * 1000
        for turn in turns
        for before, after in pairwise(turn.came_at)
        if begun <= before and after <= ended
    ]
