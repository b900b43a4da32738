"""What a server holds in memory: when nobody uses it, and for each open stream."""

import time
from collections.abc import Iterator

from bench.client import request
from bench.databases import empty_database
from bench.measure import Effort
from bench.servers import TOKEN
from bench.sse import Streams
from bench.table import Aim, Row, Times
from bench.turns import ask, make_conversations, serve_with_speaker

STREAMS = 400
IDLE_AIM, STREAM_AIM = Aim("≤", 120, "P50"), Aim("≤", 60, "P50")
SETTLE_S = 2
PIECES, BEGUN_A_SECOND = 120, 25


def measure(effort: Effort, database: str) -> Iterator[Row]:
    """A server with a remote model: idle, with so many turns that stream, and with as many more followers."""
    with empty_database(database) as url, serve_with_speaker(url) as server:
        time.sleep(SETTLE_S)
        yield Times.of("idle, after the start", [server.memory_kb() / 1000], "MB", IDLE_AIM)
        conversations = make_conversations(server, STREAMS)
        warming = Streams(server.port)
        warming.open(ask(it, 1, 100) for it in conversations[:50])
        warming.read_all()
        before = server.memory_kb()
        streams = Streams(server.port)
        turns = streams.open_one_by_one((ask(it, PIECES, 1) for it in conversations), BEGUN_A_SECOND)
        streams.read_heads(turns)
        streams.read_for(SETTLE_S)
        open_ = server.memory_kb()
        yield Times.of("each open stream of a running turn", [(open_ - before) / STREAMS], "kB", STREAM_AIM)
        follow = (request("GET", f"{it.turn_path}/events", token=TOKEN) for it in turns)
        followers = streams.open_one_by_one(follow, BEGUN_A_SECOND)
        streams.read_heads(followers)
        streams.read_for(SETTLE_S)
        yield Times.of("each further follower", [(server.memory_kb() - open_) / STREAMS], "kB")
        yield Times.of(f"with {STREAMS} turns that stream", [open_ / 1000], "MB")
