"""What a piece costs when two workers share a port, against one; on PostgreSQL, which several can use."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.databases import empty_database
from bench.measure import Effort, compare
from bench.pieces import TURNS, Side
from bench.table import Aim, Line, Row
from bench.turns import make_conversations, serve_with_speaker

WORKERS = (1, 2)
RATE = 20
AIM = Aim("≤", 1.15)


def measure(effort: Effort) -> Iterator[Row]:
    """Two servers in turns; the floor is the one with a single worker."""
    with ExitStack() as stack:
        sides: list[Side] = []
        for count in WORKERS:
            url = stack.enter_context(empty_database("postgres"))
            server = stack.enter_context(serve_with_speaker(url, "--processes", str(count)))
            sides.append(Side(server, make_conversations(server, TURNS)))
        for side in sides:
            side.run(100)  # warms up
        for number in range(effort.piece_rounds):
            for side in sides[:: 1 if number % 2 else -1]:
                side.run(RATE)
    one, two = (side.whole[RATE] for side in sides)
    yield Line(f"a piece, {TURNS} turns at {RATE}/s: 2 workers against 1", compare(one, two), AIM)
    one, two = (side.middle[RATE] for side in sides)
    yield Line("the same without begins and ends", compare(one, two))
