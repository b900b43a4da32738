"""CPU against delay: what a piece costs and how long it takes, by how long the log's writer rests."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from bench.client import Request
from bench.databases import empty_database
from bench.measure import Effort
from bench.servers import Server
from bench.sse import Streams, shown
from bench.table import Row, Trade
from bench.turns import ask, ask_bare, make_conversations, serve_bare, serve_with_speaker
from threadkeep.log import writer

TURNS, SECONDS = 50, 4
RATES = (20, 100)


class Rest(NamedTuple):
    """How long the writer rests after a flush: so many flushes for each other turn, up to a time."""

    most_ms: float
    per_other_turn: float = writer.REST_PER_OTHER_TURN


USUAL = Rest(writer.MOST_REST_S * 1000)
RESTS = tuple(Rest(most_ms) for most_ms in (0, 2, 5, 10, 15, 25, 40))


def measure(effort: Effort, rests: Sequence[Rest] = RESTS) -> Iterator[Row]:
    """Every rest on SQLite, at both rates; the middle of turns, while nothing begins or ends."""
    rounds = 2 if effort.piece_rounds > 1 else 1
    with serve_bare() as bare:
        floor = {
            rate: median(
                _run(bare, [ask_bare(rate * SECONDS, rate)] * TURNS, rate)[0] for _ in range(rounds + 1)
            )
            for rate in RATES
        }
    for rest in rests:
        program = ("bench.resting", str(rest.most_ms / 1000), str(rest.per_other_turn))
        with empty_database("sqlite") as url, serve_with_speaker(url, program=program) as server:
            conversations = make_conversations(server, TURNS)
            _run(server, [ask(it, 100 * SECONDS, 100) for it in conversations], 100)  # warms up
            for rate in RATES:
                asked = [ask(it, rate * SECONDS, rate) for it in conversations]
                costs, lags = zip(*(_run(server, asked, rate) for _ in range(rounds)), strict=True)
                hundredths = sorted(lag for some in lags for lag in some)
                yield Trade(
                    most_rest_ms=rest.most_ms,
                    rest_per_other_turn=rest.per_other_turn,
                    rate=rate,
                    cpu_us=median(costs),
                    ratio=median(costs) / floor[rate],
                    p50_ms=hundredths[len(hundredths) // 2],
                    p99_ms=hundredths[len(hundredths) * 99 // 100],
                    is_default=rest == USUAL,
                )


def _run(server: Server, asked: Sequence[Request], rate: int) -> tuple[float, list[float]]:
    """Microseconds of the server's processors a piece, and how long pieces took: of the middle half."""
    everything = TURNS * rate * SECONDS
    streams = Streams(server.port)
    turns = streams.open(asked)
    streams.read_pieces(turns, everything / 4)
    before, cpu = shown(turns), server.cpu_s()
    streams.read_pieces(turns, everything * 3 / 4)
    after, used = shown(turns), server.cpu_s() - cpu
    streams.read_all()
    lags = [
        lag
        for turn, first, last in zip(turns, before, after, strict=True)
        for lag in list(turn.lags_ms)[first:last]
    ]
    return used * 1e6 / (sum(after) - sum(before)), lags
