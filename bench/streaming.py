"""Whole turns as a page sees them, against a bare ASGI app that sends the same frames at the same pace.

The model is a server of its own that speaks a provider's wire; each of its pieces says when it was sent.
"""

import itertools
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from statistics import median
from typing import NamedTuple

from bench.client import Request, request
from bench.measure import Effort, compare
from bench.sample import READER, Sample
from bench.servers import Server, serve_threadkeep
from bench.sse import Stream, Streams
from bench.table import Aim, Delays, Line
from bench.turns import ask_bare, serve_bare
from threadkeep.context.request import ContextRules, Sources, build_request
from threadkeep.ports.messages import MessageWindow
from threadkeep.storage.store import open_store

TURNS, FOLLOWERS = 50, 3
CROWD, CROWD_RATE = 500, 20
RATES = (20, 100)
PIECE_MS = 4
CONTEXT_MESSAGES = 20
BODY = b'{"content":"Is the penalty too high?"}'


class Pace(NamedTuple):
    """How a model speaks, and over which wire."""

    wire: str
    rate: int
    """Pieces a second."""


PACES = (Pace("anthropic", 20), Pace("openai", 20), Pace("anthropic", 100), Pace("anthropic", 200))


def turn_costs(url: str, sample: Sample, effort: Effort) -> Iterator[Line]:
    """What a piece of the model costs the server, read, stored and sent, and what a further reader does."""
    questions = _questions(sample, TURNS)
    for pace in PACES:
        pieces = pace.rate * effort.reply_s
        floor: list[float] = []
        alone: list[float] = []
        each_more: list[float] = []
        with (
            serve_bare() as bare,
            serve_with_model(url, pace, pieces) as ours,
        ):
            for _ in range(1 + effort.turn_rounds):
                floor.append(_cost(bare, [ask_bare(pieces, pace.rate)] * TURNS, pieces))
                alone.append(_cost(ours, questions, pieces))
                followed = _cost(ours, questions, pieces, followers=FOLLOWERS)
                each_more.append((followed - alone[-1]) / FOLLOWERS)
        # The first round warms up.
        name = f"{TURNS} turns at {pace.rate} pieces/s ({pace.wire})"
        yield Line(f"{name}, server CPU a piece", compare(floor[1:], alone[1:]), Aim("≤", 3))
        yield Line(f"{name}, each further follower", compare(floor[1:], each_more[1:]), Aim("≤", 1.5))


def piece_delays(url: str, sample: Sample, effort: Effort) -> Iterator[Delays]:
    """How long a piece takes from the model to the page, of one turn alone and of many at once."""
    for rate in RATES:
        with serve_with_model(url, Pace("anthropic", rate), rate * effort.reply_s) as ours:
            for count in (1, TURNS):
                streams = Streams(ours.port)
                turns = streams.open(_questions(sample, count))
                streams.read_all()
                name = f"a piece, {count} turn{'s' if count > 1 else ''} at {rate} pieces/s"
                yield Delays(name, _lags(turns), PIECE_MS if count == 1 else None, "P50")


def turn_delays(url: str, sample: Sample, effort: Effort) -> Iterator[Delays]:
    """How long events take, of turns that begin one by one and of many at once."""
    with serve_with_model(url, Pace("anthropic", CROWD_RATE), effort.crowd_pieces) as ours:
        streams = Streams(ours.port)
        few: list[Stream] = []
        for question in _questions(sample, effort.calm_turns):
            few += streams.open([question])
            streams.read_for(0.1)
        streams.read_all()
        yield Delays("first event after the request", [it.first_ms for it in few], 25)
        yield Delays(f"a piece, {effort.calm_turns} turns that begin one by one", _lags(few), 60)
        many = streams.open(_questions(sample, CROWD))
        streams.read_all()
    yield Delays(f"a piece, {CROWD} turns at {CROWD_RATE} pieces/s", _lags(many))
    yield Delays(
        f"longest silence of each of {CROWD} turns",
        [max(after - before for before, after in itertools.pairwise(it.came_at)) * 1000 for it in many],
    )
    print(f"\n{_shares(many)}")


def _shares(turns: Sequence[Stream]) -> str:
    """What each turn got while all of them ran: from the last one's first piece to the first one's last."""
    begun, ended = max(it.came_at[0] for it in turns), min(it.sent_at[-1] for it in turns)
    if begun >= ended:
        return f"{len(turns)} turns: the first had ended before the last had begun; the machine is too busy."
    sent, shown = (
        [sum(begun <= at <= ended for at in times) / (ended - begun) for times in kind]
        for kind in ([it.sent_at for it in turns], [it.came_at for it in turns])
    )
    return (
        f"{len(turns)} turns at once for {ended - begun:.1f} s: the model sent {median(sent):.1f} pieces"
        f" a second to each; shown were {min(shown):.1f} at least, {median(shown):.1f} in the median."
    )


async def context_delays(url: str, sample: Sample) -> Delays:
    """Reading the latest of 10,000 messages and making the model's request of them."""
    store = await open_store(url)
    window = MessageWindow(newest_first=True)
    rules = ContextRules(zone=UTC, context_tokens=200_000, context_messages=CONTEXT_MESSAGES)
    milliseconds: list[float] = []
    for _ in range(300):
        begun = time.perf_counter()
        latest = await store.messages.page(sample.longest, window, offset=0, limit=CONTEXT_MESSAGES)
        built = build_request(Sources(path=latest[::-1], question_id=latest[0].id), rules)
        milliseconds.append((time.perf_counter() - begun) * 1000)
        assert len(latest) == CONTEXT_MESSAGES and built.request.messages
    await store.close()
    return Delays(f"context of {CONTEXT_MESSAGES} out of 10,000 messages", milliseconds[20:], 3)


@contextmanager
def serve_with_model(url: str, pace: Pace, pieces: int) -> Generator[Server]:
    """Threadkeep with a model that gives every reply in so many pieces."""
    options = ("--time", "--pieces", str(pieces), "--rate", str(pace.rate))
    command = [sys.executable, "-m", "threadkeep.testing", *options]
    model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert model.stdout
        gateway = {
            "THREADKEEP_GATEWAY": pace.wire,
            "THREADKEEP_GATEWAY_URL": model.stdout.readline().strip(),
            "THREADKEEP_GATEWAY_API_KEY": "none",
            "THREADKEEP_MODEL": "scripted",
        }
        with serve_threadkeep(url, **gateway) as server:
            yield server
    finally:
        model.terminate()
        model.wait()


def _questions(sample: Sample, count: int) -> list[Request]:
    """The first messages of so many turns, each in a conversation of its own."""
    own = (it for it in sample.dataset.conversations if it.user_id == READER and it.id != sample.read)
    return [
        request("POST", f"/api/conversations/{it.id}/messages", body=BODY)
        for it in itertools.islice(own, count)
    ]


def _cost(server: Server, questions: Sequence[Request], pieces: int, *, followers: int = 0) -> float:
    """Microseconds of the server's processors a piece of the model, the turns' begins and ends included."""
    before = server.cpu_s()
    streams = Streams(server.port)
    turns = streams.open(questions)
    if followers:
        streams.read_heads(turns)
        streams.open(request("GET", f"{turn.turn_path}/events") for turn in turns * followers)
    streams.read_all()
    return (server.cpu_s() - before) * 1e6 / len(questions) / pieces


def _lags(streams: Sequence[Stream]) -> list[float]:
    return [lag for stream in streams for lag in stream.lags_ms]
