"""What a piece of a model's reply costs the server, read, stored and sent, against the bare app.

50 turns of 200 pieces: with their begins and ends, and in their middle, while nothing begins or ends.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.client import Request, request
from bench.databases import empty_database
from bench.measure import Effort, compare
from bench.servers import TOKEN, TREE, Server
from bench.sse import Stream, Streams, shown
from bench.table import Aim, Line, Row
from bench.turns import ask, ask_bare, make_conversations, serve_bare, serve_with_speaker

TURNS, PIECES = 50, 200
AIMS = {20: Aim("≤", 3.5), 100: Aim("≤", 2.5)}
FOLLOWERS, FOLLOWER_AIM = 3, Aim("≤", 1.5)
FOLLOWED_RATE = 20


class Side:
    """A server, and what each round showed of it: microseconds of its processors a piece."""

    def __init__(self, server: Server, conversations: Sequence[str] = ()) -> None:
        self._server = server
        self._conversations = conversations
        self.whole: dict[int, list[float]] = defaultdict(list)
        self.middle: dict[int, list[float]] = defaultdict(list)
        self.each_follower: list[float] = []

    def run(self, rate: int) -> None:
        """Turns at this rate, as fast as the model speaks."""
        before = self._server.cpu_s()
        streams = Streams(self._server.port)
        turns = streams.open(self._questions(rate))
        self.middle[rate].append(self._middle(streams, turns))
        streams.read_all()
        self.whole[rate].append(self._cost(before))

    def run_followed(self) -> None:
        """The same with followers, of which each adds to the cost of the round before."""
        before = self._server.cpu_s()
        streams = Streams(self._server.port)
        turns = streams.open(self._questions(FOLLOWED_RATE))
        streams.read_heads(turns)
        streams.open(_follow(turn) for turn in turns * FOLLOWERS)
        streams.read_all()
        alone = self.whole[FOLLOWED_RATE][-1]
        self.each_follower.append((self._cost(before) - alone) / FOLLOWERS)

    def _questions(self, rate: int) -> list[Request]:
        if not self._conversations:
            return [ask_bare(PIECES, rate)] * TURNS
        return [ask(it, PIECES, rate) for it in self._conversations]

    def _middle(self, streams: Streams, turns: Sequence[Stream]) -> float:
        """While the second and the third quarter of the pieces are shown."""
        everything = TURNS * PIECES
        streams.read_pieces(turns, everything / 4)
        before, first = self._server.cpu_s(), sum(shown(turns))
        streams.read_pieces(turns, everything * 3 / 4)
        return (self._server.cpu_s() - before) * 1e6 / (sum(shown(turns)) - first)

    def _cost(self, before: float) -> float:
        return (self._server.cpu_s() - before) * 1e6 / TURNS / PIECES


def _follow(turn: Stream) -> Request:
    return request("GET", f"{turn.turn_path}/events", token=TOKEN)


def measure(effort: Effort, database: str, beside: Path | None) -> list[Row]:
    """Both rates, round by round; with another checkout beside ours, in the same rounds."""
    with ExitStack() as stack:
        bare = Side(stack.enter_context(serve_bare()))
        sides: dict[str, Side] = {}
        for name, tree in trees(beside).items():
            url = stack.enter_context(empty_database(database))
            server = stack.enter_context(serve_with_speaker(url, tree=tree))
            sides[name] = Side(server, make_conversations(server, TURNS))
        everybody = (bare, *sides.values())
        for side in everybody:
            side.run(max(AIMS))  # warms up
            side.whole.clear()
            side.middle.clear()
        for number in range(effort.piece_rounds):
            for rate in AIMS:
                for side in everybody[:: 1 if number % 2 else -1]:
                    side.run(rate)
                    if rate == FOLLOWED_RATE and side is not bare:
                        side.run_followed()
    rows: list[Row] = []
    for name, side in sides.items():
        for rate, aim in AIMS.items():
            what = f"a piece, {TURNS} turns at {rate}/s"
            rows.append(Line(f"{what}{name}", compare(bare.whole[rate], side.whole[rate]), aim))
            comparison = compare(bare.middle[rate], side.middle[rate])
            rows.append(Line(f"{what}, without begins and ends{name}", comparison))
        each = compare(bare.whole[FOLLOWED_RATE], side.each_follower)
        rows.append(
            Line(f"each further follower, {TURNS} turns at {FOLLOWED_RATE}/s{name}", each, FOLLOWER_AIM)
        )
    return rows


def trees(beside: Path | None) -> dict[str, Path]:
    """The checkouts that are measured, by what their rows' names end with."""
    return {"": TREE} | ({} if beside is None else {f" ({beside.name})": beside})
