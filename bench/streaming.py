"""Whole turns as a page sees them, against a bare ASGI app that sends the same frames at the same pace.

The model is a server of its own that speaks a provider's wire; each of its pieces says when it was sent.
"""

import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from statistics import median

from bench.bare_stream import PIECES_VARIABLE, RATE_VARIABLE
from bench.client import Request, request
from bench.measure import Effort, compare
from bench.sample import READER, Sample
from bench.servers import Server, serve, serve_threadkeep
from bench.sse import Stream, Streams
from bench.table import Aim, Delays, Line

RATE = 20
TURNS, FOLLOWERS = 50, 3
CROWD = 500
WIRES = ("anthropic", "openai")
BODY = b'{"content":"Is the penalty too high?"}'


def through_turns(url: str, sample: Sample, effort: Effort) -> tuple[list[Line], list[Delays]]:
    """What a turn costs its server, and how long its events take."""
    lines: list[Line] = []
    delays: list[Delays] = []
    pace = {PIECES_VARIABLE: str(effort.pieces), RATE_VARIABLE: str(RATE)}
    with _scripted_model(effort.pieces) as model, serve("bench.bare_stream:create_app", pace) as bare:
        for wire in WIRES:
            gateway = {
                "THREADKEEP_GATEWAY": wire,
                "THREADKEEP_GATEWAY_URL": model,
                "THREADKEEP_GATEWAY_API_KEY": "none",
                "THREADKEEP_MODEL": "scripted",
            }
            with serve_threadkeep(url, **gateway) as ours:
                lines += _costs(wire, bare, ours, sample, effort)
                if wire == WIRES[0]:
                    delays += _delays(ours, sample)
    return lines, delays


@contextmanager
def _scripted_model(pieces: int) -> Generator[str]:
    """The address of a model that gives every reply in so many pieces."""
    options = ("--time", "--pieces", str(pieces), "--rate", str(RATE))
    command = [sys.executable, "-m", "tests.scripted_model", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def _questions(sample: Sample, count: int) -> list[Request]:
    """The first messages of so many turns, each in a conversation of its own."""
    own = (it for it in sample.dataset.conversations if it.user_id == READER and it.id != sample.read)
    return [request("POST", f"/api/conversations/{it.id}/messages", body=BODY) for it in islice(own, count)]


def _costs(wire: str, bare: Server, ours: Server, sample: Sample, effort: Effort) -> Iterator[Line]:
    questions = _questions(sample, TURNS)
    floor: list[float] = []
    alone: list[float] = []
    each_more: list[float] = []
    for _ in range(1 + effort.turn_rounds):
        floor.append(_cost(bare, questions, effort))
        alone.append(_cost(ours, questions, effort))
        followed = _cost(ours, questions, effort, followers=FOLLOWERS)
        each_more.append((followed - alone[-1]) / FOLLOWERS)
    # The first round warms up.
    name = f"{TURNS} turns at {RATE} events/s ({wire})"
    yield Line(f"{name}, server CPU an event", compare(floor[1:], alone[1:]), Aim("≤", 3))
    yield Line(f"{name}, each further follower", compare(floor[1:], each_more[1:]), Aim("≤", 1.5))


def _cost(server: Server, questions: Sequence[Request], effort: Effort, *, followers: int = 0) -> float:
    """Microseconds of the server's processors a piece of the model."""
    before = server.cpu_s()
    streams = Streams(server.port)
    turns = streams.open(questions)
    if followers:
        streams.read_heads(turns)
        streams.open(request("GET", f"{turn.turn_path}/events") for turn in turns * followers)
    streams.read_all()
    return (server.cpu_s() - before) * 1e6 / len(questions) / effort.pieces


def _delays(ours: Server, sample: Sample) -> Iterator[Delays]:
    streams = Streams(ours.port)
    one_by_one = streams.open(_questions(sample, 1))
    for question in _questions(sample, 30)[1:]:
        streams.read_for(0.1)
        one_by_one += streams.open([question])
    streams.read_all()
    yield Delays("first event after the request", [it.first_ms for it in one_by_one], 25)
    yield Delays("a piece, from the model to the page", _lags(one_by_one), 60)
    crowd = streams.open(_questions(sample, CROWD))
    streams.read_all()
    yield Delays(f"the same, {CROWD} turns at once", _lags(crowd))
    # While all of them run: from the last one's first piece to the first one's last.
    begun, ended = max(it.came_at[0] for it in crowd), min(it.sent_at[-1] for it in crowd)
    print(f"window {ended - begun:.1f}s, ramp first {begun - crowd[0].asked_at:.1f}")
    shown = [sum(begun <= at <= ended for at in it.came_at) / (ended - begun) / RATE for it in crowd]
    print(
        f"progress min {min(shown):.3f} median {median(shown):.3f}; frames per turn {median(it.frames for it in crowd)}"
    )
    yield Delays("first event, 500 at once", [it.first_ms for it in crowd])
    yield Delays(
        "longest silence", [max(b - a for a, b in zip(it.came_at, it.came_at[1:])) * 1000 for it in crowd]
    )


def _lags(streams: Sequence[Stream]) -> list[float]:
    return [lag for stream in streams for lag in stream.lags_ms]
