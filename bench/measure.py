"""Runs contenders in alternating blocks, so that all of them see the same noise of the machine."""

import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import TypeVar

Name = TypeVar("Name")
Call = Callable[[], Awaitable[object]]

LONGEST_BLOCK_CALLS = 1_000


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure."""

    append_rounds: int
    turns_a_block: int
    """Appended turns are counted, not timed: they make the conversation longer."""
    read_rounds: int
    read_block_ms: float
    """Short blocks and many rounds: whatever else the machine does then disturbs few of them."""
    writer_rounds: int
    turns_a_writer: int
    http_rounds: int
    requests_a_block: int
    piece_rounds: int
    step_rounds: int
    said: int
    """How many messages there are to be searched."""
    chunks: int
    """How many chunks of documents there are to be searched."""
    begin_rounds: int
    starts: int
    beside_s: int
    """How long turns run while a document is read."""


QUICK = Effort(
    append_rounds=8,
    turns_a_block=2,
    read_rounds=30,
    read_block_ms=5,
    writer_rounds=3,
    turns_a_writer=4,
    http_rounds=4,
    requests_a_block=100,
    piece_rounds=1,
    step_rounds=12,
    said=50_000,
    chunks=10_000,
    begin_rounds=6,
    starts=4,
    beside_s=15,
)
FULL = Effort(
    append_rounds=40,
    turns_a_block=5,
    read_rounds=150,
    read_block_ms=8,
    writer_rounds=7,
    turns_a_writer=8,
    http_rounds=15,
    requests_a_block=300,
    piece_rounds=3,
    step_rounds=38,
    said=1_000_000,
    chunks=100_000,
    begin_rounds=15,
    starts=10,
    beside_s=60,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A run of calls: microseconds a call by the clock, and of this process's processor time."""

    wall: float
    cpu: float


async def race(calls: Mapping[Name, Call], *, rounds: int, times: int) -> dict[Name, list[Block]]:
    """The blocks of each contender; who goes first changes every round."""
    blocks: dict[Name, list[Block]] = {name: [] for name in calls}
    names = list(calls)
    gc.collect()
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            blocks[name].append(await block(calls[name], times))
    return blocks


async def block(call: Call, times: int) -> Block:
    """Runs a call so many times."""
    cpu, begun = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(times):
        await call()
    wall = time.perf_counter_ns() - begun
    return Block(wall / 1_000 / times, (time.process_time_ns() - cpu) / 1_000 / times)


async def calls_a_block(calls: Mapping[Name, Call], block_ms: float) -> int:
    """How many calls fill a block of the slowest contender; warms all of them up on the way."""
    slowest = 0.0
    for call in calls.values():
        await block(call, 100)
        slowest = max(slowest, (await block(call, 20)).wall)
    return max(1, min(LONGEST_BLOCK_CALLS, int(block_ms * 1_000 / slowest)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two contenders of one race, by the medians of their blocks."""

    floor: float
    ours: float
    ratio: float
    spread: tuple[float, float]
    """From the 10th to the 90th percentile of the rounds' own ratios."""
    cpu_ratio: float | None = None


def compare(floor: Sequence[float], ours: Sequence[float]) -> Comparison:
    """Two rows of figures from the same rounds."""
    ratios = [mine / theirs for theirs, mine in zip(floor, ours, strict=True)]
    tenths = quantiles(ratios, n=10, method="inclusive") if len(ratios) > 1 else ratios
    return Comparison(median(floor), median(ours), median(ratios), (tenths[0], tenths[-1]))


def compare_blocks(floor: Sequence[Block], ours: Sequence[Block]) -> Comparison:
    """Compares the time that was taken, and the processor time beside it."""
    cpu = compare([it.cpu for it in floor], [it.cpu for it in ours])
    return replace(compare([it.wall for it in floor], [it.wall for it in ours]), cpu_ratio=cpu.ratio)
