"""What turns cost the servers, and how long their readers wait."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.peers.contender import Conversation, Pace, ServerContender
from bench.peers.effort import Effort
from bench.peers.processes import disk_bytes
from bench.peers.progress import say
from bench.peers.results import Result, percentile
from bench.peers.serving import ONE_PIECE, Server, serve
from bench.peers.streams import Turn

Figures = dict[str, float | None]


class Load(NamedTuple):
    """So many turns at once, each of so many pieces a second."""

    turns: int
    rate: int

    def __str__(self) -> str:
        return f"{self.turns}@{self.rate}"


LOADS = (Load(20, 50), Load(50, 50), Load(50, 20), Load(50, 100))
BUSY = Load(50, 50)
"""The load whose delays, bytes and syncs are reported."""
AT_ONCE = (20, 50)
"""How many turns begin together where the first event is measured."""
CROWD = Load(500, 2)
ALONE = Load(1, 50)


class Run(NamedTuple):
    """Turns that ran together."""

    turns: Sequence[Turn]
    cpu_s: float
    wall_s: float
    """From the first question to the last end."""


def run(server: Server, conversations: Sequence[Conversation], pace: Pace) -> Run:
    """Runs a turn in each conversation."""
    reader = server.reader()
    begun, before = time.monotonic(), server.process.cpu_s()
    try:
        turns = reader.begin(conversations, pace)
        reader.read_all()
    finally:
        reader.close()
    wall_s = time.monotonic() - begun
    server.settle()
    return Run(turns, server.process.cpu_s() - before, wall_s)


def measure_crowds(
    contenders: Mapping[str, ServerContender],
    results: Mapping[str, Result],
    effort: Effort,
    url: str,
    folder: Path,
) -> None:
    """A crowd of turns on a fresh server: their delays, and the memory that an open stream takes."""
    for name, contender in contenders.items():
        say(f"{CROWD} on {contender.title}")
        try:
            with serve(contender, folder / f"{name}-crowd", url) as server:
                for figures in _crowd(server, results[name], effort):
                    results[name].add(0, figures)
        except (RuntimeError, OSError) as error:
            results[name].fail(f"{CROWD.turns} turns", error)


def _crowd(server: Server, result: Result, effort: Effort) -> Iterator[Figures]:
    idle = server.process.memory_kb()
    yield {"idle memory MB": idle / 1024}
    conversations = server.converse(CROWD.turns)
    reader = server.reader()
    try:
        turns = reader.begin(conversations, Pace(effort.crowd_pieces, CROWD.rate))
        reader.read_first_pieces(turns)
        all_open = server.process.memory_kb()
        reader.read_all()
    finally:
        reader.close()
        hang_up(conversations)
    yield {"memory a stream kB": (all_open - idle) / CROWD.turns, **_delays(CROWD, turns)}
    _note_lost(result, f"{CROWD}", turns, effort.crowd_pieces)


def measure_rounds(
    contenders: Mapping[str, ServerContender],
    results: Mapping[str, Result],
    effort: Effort,
    url: str,
    folder: Path,
) -> None:
    """Rounds in which every server has its turn; who goes first changes every round."""
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        for name, contender in contenders.items():
            try:
                servers[name] = stack.enter_context(serve(contender, folder / name, url))
            except (RuntimeError, OSError) as error:
                results[name].fail("starting", error)
        begun = time.monotonic()
        for number in range(effort.rounds):
            taken = time.monotonic() - begun
            if number and taken + taken / number > effort.rounds_s:
                say(f"a round takes {taken / number:.0f} s: no further one")
                break
            for name in rotated(list(servers), number):
                say(f"round {number + 1} of {effort.rounds}: {contenders[name].title}")
                try:
                    for figures in _round(servers[name], results[name], effort):
                        results[name].add(number, figures)
                except (RuntimeError, OSError) as error:
                    results[name].fail(f"round {number + 1}", error)


def rotated(names: list[str], by: int) -> list[str]:
    """The same names, beginning with another one."""
    first = by % len(names) if names else 0
    return names[first:] + names[:first]


def _round(server: Server, result: Result, effort: Effort) -> Iterator[Figures]:
    conversations = server.converse(max(load.turns for load in LOADS), with_turn=True)
    try:
        for count in AT_ONCE:
            done = run(server, conversations[:count], ONE_PIECE)
            answered = [turn for turn in done.turns if turn.sent_at]
            if not answered:
                raise RuntimeError(f"no piece arrived of {count} at once")
            yield {
                f"first event ms {count}": median(turn.first_event_ms for turn in answered),
                f"first piece ms {count}": median(turn.first_piece_ms for turn in answered),
                f"turn CPU ms {count}": done.cpu_s * 1000 / count,
            }
            _note_lost(result, f"{count} at once", done.turns, 1)
        syncs = server.process.syncs()
        done = run(server, conversations[:1], Pace(effort.alone_pieces, ALONE.rate))
        yield {**_delays(ALONE, done.turns), "syncs a turn alone": _since(server, syncs)}
        for load in LOADS:
            server.keep_alive(conversations)
            yield _loaded(server, result, conversations[: load.turns], load, effort.pieces)
    finally:
        hang_up(conversations)


def _loaded(
    server: Server, result: Result, conversations: Sequence[Conversation], load: Load, pieces: int
) -> Figures:
    pace = Pace(pieces, load.rate)
    kept, syncs = disk_bytes(server.place.folder), server.process.syncs()
    done = run(server, conversations, pace)
    shown = sum(len(turn.sent_at) for turn in done.turns) or 1
    figures: Figures = {
        f"piece CPU µs {load}": done.cpu_s * 1e6 / shown,
        f"time against the model's {load}": done.wall_s / (pace.pieces / pace.rate),
        **_delays(load, done.turns),
    }
    _note_lost(result, f"{load}", done.turns, pieces)
    if load == BUSY:
        all_syncs = _since(server, syncs)
        figures["syncs a turn together"] = None if all_syncs is None else all_syncs / load.turns
        figures["disk bytes a turn"] = (disk_bytes(server.place.folder) - kept) / load.turns
    return figures


def _since(server: Server, before: int | None) -> float | None:
    now = server.process.syncs()
    return None if now is None or before is None else now - before


def _delays(load: Load, turns: Sequence[Turn]) -> Figures:
    delays = [delay for turn in turns for delay in turn.delays_ms]
    if not delays:
        raise RuntimeError(f"no piece arrived of {load}")
    return {f"delay P{percent} ms {load}": percentile(delays, percent) for percent in (50, 99)}


def _note_lost(result: Result, load: str, turns: Sequence[Turn], pieces: int) -> None:
    """Says how many turns did not show the whole reply, if any, and why the first did not."""
    if lost := [turn for turn in turns if len(turn.sent_at) != pieces]:
        why = lost[0].failure or f"{len(lost[0].sent_at)} of {pieces} pieces"
        result.fail(f"{load}, {len(lost)} of {len(turns)} turns incomplete", why)


def hang_up(conversations: Sequence[Conversation]) -> None:
    """Closes the connections that conversations keep."""
    for conversation in conversations:
        if conversation.connection:
            conversation.connection.close()
