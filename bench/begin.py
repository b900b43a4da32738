"""What a turn costs besides its pieces: beginning and ending it, through the whole server.

Turns with one piece, each in a conversation of its own, against a bare ASGI app that sends the same frames:
one after the other, and many begun at once. What a piece costs is measured beside it and taken off.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.client import Request
from bench.databases import empty_database
from bench.measure import Effort, compare
from bench.pieces import trees
from bench.servers import Server
from bench.sse import Streams
from bench.table import Aim, Line, Row, Times
from bench.turns import ask, ask_bare, make_conversations, serve_bare, serve_with_speaker

WARM_ROUNDS = 2
RATE = 200
MORE_PIECES = 21
AIM = Aim("≤", 4, "P50")


class Kind(NamedTuple):
    """How turns are begun, and what is asked of each."""

    turns: int
    at_once: int
    pieces: int

    def __str__(self) -> str:
        return "one after the other" if self.at_once == 1 else f"{self.at_once} begun at once"


ALONE, MORE = Kind(10, 1, 1), Kind(4, 1, MORE_PIECES)
AT_ONCE = (Kind(20, 20, 1), Kind(50, 50, 1))
KINDS = (ALONE, MORE, *AT_ONCE)
TURNS_A_ROUND = sum(it.turns for it in KINDS)


class Side:
    """A server, and what each round showed of it."""

    def __init__(self, server: Server, conversations: Iterable[str] | None = None) -> None:
        self._server = server
        self._conversations = None if conversations is None else iter(conversations)
        self.cpu_ms: dict[Kind, list[float]] = defaultdict(list)
        self.first_ms: dict[Kind, list[float]] = defaultdict(list)

    def run(self, kind: Kind) -> None:
        """Runs turns to their end; notes the server's CPU a turn, and when the first events came."""
        questions = list(self._questions(kind))
        before = self._server.cpu_s()
        for first in range(0, kind.turns, kind.at_once):
            streams = Streams(self._server.port)
            turns = streams.open(questions[first : first + kind.at_once])
            streams.read_all()
            self.first_ms[kind] += [it.first_ms for it in turns]
        self.cpu_ms[kind].append((self._server.cpu_s() - before) * 1000 / kind.turns)

    def forget(self) -> None:
        """Drops the rounds that only warmed up."""
        self.cpu_ms.clear()
        self.first_ms.clear()

    def _questions(self, kind: Kind) -> Iterator[Request]:
        if self._conversations is None:
            return iter([ask_bare(kind.pieces, RATE)] * kind.turns)
        some = islice(self._conversations, kind.turns)
        return (ask(it, kind.pieces, RATE) for it in some)

    def begin_and_end_ms(self, floor: "Side") -> list[float]:
        """Per round: a turn with one piece, without the floor's cost and without the piece's own."""
        more, alone, bare = (
            median(it) for it in (self.cpu_ms[MORE], self.cpu_ms[ALONE], floor.cpu_ms[ALONE])
        )
        a_piece = (more - alone) / (MORE_PIECES - 1)
        return [it - bare - a_piece for it in self.cpu_ms[ALONE]]


def measure(effort: Effort, database: str, beside: Path | None) -> list[Row]:
    """All kinds of turns, round by round; with another checkout beside ours, in the same rounds."""
    rounds = WARM_ROUNDS + effort.begin_rounds
    with ExitStack() as stack:
        bare = Side(stack.enter_context(serve_bare()))
        sides: dict[str, Side] = {}
        for name, tree in trees(beside).items():
            url = stack.enter_context(empty_database(database))
            server = stack.enter_context(serve_with_speaker(url, tree=tree))
            conversations = make_conversations(server, rounds * TURNS_A_ROUND)
            sides[name] = Side(server, conversations)
        for number in range(rounds):
            for kind in KINDS:
                for side in (bare, *sides.values())[:: 1 if number % 2 else -1]:
                    side.run(kind)
            if number + 1 == WARM_ROUNDS:
                for side in (bare, *sides.values()):
                    side.forget()
    rows: list[Row] = [line for name, side in sides.items() for line in _lines(name, bare, side)]
    rows += [times for name, side in sides.items() for times in _times(name, bare, side)]
    rows += [Times.of(f"first event, {kind} (bare)", bare.first_ms[kind]) for kind in (ALONE, *AT_ONCE)]
    return rows


def _lines(name: str, bare: Side, side: Side) -> Iterator[Line]:
    for kind in (ALONE, *AT_ONCE):
        comparison = compare(bare.cpu_ms[kind], side.cpu_ms[kind])
        yield Line(f"a turn with one piece, {kind}, server CPU{name}", comparison, unit="ms")


def _times(name: str, bare: Side, side: Side) -> Iterator[Times]:
    yield Times.of(f"a turn's begin and end, server CPU{name}", side.begin_and_end_ms(bare), aim=AIM)
    for kind in (ALONE, *AT_ONCE):
        yield Times.of(f"first event, {kind}{name}", side.first_ms[kind])
