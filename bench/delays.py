"""How long a piece takes from the model to the page: of one turn alone, of 50 and of 500 at once."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.databases import empty_database
from bench.measure import Effort
from bench.servers import Server
from bench.sse import Streams
from bench.table import Aim, Row, Times
from bench.turns import ask, make_conversations, serve_with_speaker

RATE, SECONDS = 20, 6
AIMS = {1: Aim("≤", 1.5, "P50"), 50: Aim("≤", 10, "P50"), 500: Aim("≤", 200, "P99")}
BEGUN_A_SECOND = 50


def measure(effort: Effort, database: str, beside: Path | None) -> Iterator[Row]:
    """Every crowd on the same server, the smallest first."""
    with empty_database(database) as url, serve_with_speaker(url) as server:
        conversations = make_conversations(server, max(AIMS))
        for turns, aim in AIMS.items():
            try:
                delays = _delays(server, conversations[:turns])
            except RuntimeError as exc:  # too many for a busy machine; what fewer took is known
                print(f"{turns} turns on {database}: {exc}", flush=True)
                return
            yield Times.of(row_name(turns), delays, aim=aim)


def row_name(turns: int) -> str:
    """What the row of so many turns is called."""
    return f"a piece, {turns} turn{'s' if turns > 1 else ''} at {RATE}/s, model to page"


def _delays(server: Server, conversations: Sequence[str]) -> list[float]:
    """Milliseconds of each piece, from when the last turn has begun until the first one ends."""
    pieces = RATE * (SECONDS + 1 + len(conversations) // BEGUN_A_SECOND)
    streams = Streams(server.port)
    turns = streams.open_one_by_one((ask(it, pieces, RATE) for it in conversations), BEGUN_A_SECOND)
    streams.read_all()
    if failed := sum(not it.came_at for it in turns):
        raise RuntimeError(f"{failed} turns showed nothing")
    begun, ended = max(it.came_at[0] for it in turns), min(it.sent_at[-1] for it in turns)
    if begun >= ended:
        raise RuntimeError("the first ended before the last began: the machine is too busy")
    return [
        (came - sent) * 1000
        for turn in turns
        for sent, came in zip(turn.sent_at, turn.came_at, strict=True)
        if begun <= sent <= ended
    ]
