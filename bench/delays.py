"""How long a piece takes from the model to the page: of one turn alone, of 50 and of 500 at once."""

from collections.abc import Iterator
from pathlib import Path

from bench.databases import empty_database
from bench.measure import Effort
from bench.sse import Stream, Streams
from bench.table import Aim, Row, Times
from bench.turns import ask, make_conversations, serve_with_speaker

RATE, PIECES = 20, 160
BEGUN_TOGETHER, BETWEEN_S = 25, 0.1
"""People do not all begin in the same millisecond; `begin` measures what happens if they do."""
AIMS = {1: Aim("≤", 1.5, "P50"), 50: Aim("≤", 10, "P50"), 500: Aim("≤", 200, "P99")}


def measure(effort: Effort, database: str, beside: Path | None) -> Iterator[Row]:
    """Every crowd on the same server, the smallest first."""
    with empty_database(database) as url, serve_with_speaker(url) as server:
        conversations = make_conversations(server, max(AIMS))
        for turns, aim in AIMS.items():
            streams = Streams(server.port)
            opened: list[Stream] = []
            for first in range(0, turns, BEGUN_TOGETHER):
                some = conversations[first : min(first + BEGUN_TOGETHER, turns)]
                opened += streams.open(ask(it, PIECES, RATE) for it in some)
                streams.read_for(BETWEEN_S)
            streams.read_all()
            yield Times.of(row_name(turns), _lags_ms(opened), aim=aim)


def row_name(turns: int) -> str:
    """What the row of so many turns is called."""
    return f"a piece, {turns} turn{'s' if turns > 1 else ''} at {RATE}/s, model to page"


def _lags_ms(streams: list[Stream]) -> list[float]:
    """Of all pieces of all streams, without those of the time in which other turns begin."""
    return [lag for stream in streams for lag in list(stream.lags_ms)[PIECES // 3 :]]
