"""Runs contenders in alternating blocks, so that all of them see the same noise of the machine."""

import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TypeVar

Name = TypeVar("Name")
Call = Callable[[], Awaitable[object]]

LONGEST_BLOCK_CALLS = 1_000


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure."""

    rounds: int
    block_ms: float
    turns_a_block: int
    """Appended turns are counted, not timed: they make the conversation longer."""
    turns_a_writer: int
    writer_rounds: int
    requests_a_block: int


QUICK = Effort(
    rounds=8, block_ms=15, turns_a_block=2, turns_a_writer=4, writer_rounds=2, requests_a_block=200
)
FULL = Effort(
    rounds=40, block_ms=30, turns_a_block=5, turns_a_writer=8, writer_rounds=6, requests_a_block=400
)


async def race(calls: Mapping[Name, Call], *, rounds: int, times: int) -> dict[Name, list[float]]:
    """Microseconds a call of each contender, one figure a block; who goes first changes every round."""
    figures: dict[Name, list[float]] = {name: [] for name in calls}
    names = list(calls)
    gc.collect()
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            figures[name].append(await block(calls[name], times))
    return figures


async def block(call: Call, times: int) -> float:
    """Microseconds a call, over a run of calls."""
    begun = time.perf_counter_ns()
    for _ in range(times):
        await call()
    return (time.perf_counter_ns() - begun) / 1_000 / times


async def calls_a_block(calls: Mapping[Name, Call], block_ms: float) -> int:
    """How many calls fill a block of the slowest contender; warms all of them up on the way."""
    slowest = 0.0
    for call in calls.values():
        await block(call, 100)
        slowest = max(slowest, await block(call, 20))
    return max(1, min(LONGEST_BLOCK_CALLS, int(block_ms * 1_000 / slowest)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two contenders of one race. Where less is better the ratio is ours to the floor's."""

    floor: float
    ours: float
    ratio: float
    spread: tuple[float, float]
    """From the 10th to the 90th percentile of the rounds' own ratios."""


def compare(floor: Sequence[float], ours: Sequence[float]) -> Comparison:
    """The medians of the blocks and their ratio, with the spread over the rounds."""
    ratios = [mine / theirs for theirs, mine in zip(floor, ours, strict=True)]
    tenths = quantiles(ratios, n=10, method="inclusive") if len(ratios) > 1 else [ratios[0]]
    return Comparison(
        median(floor), median(ours), median(ours) / median(floor), spread=(tenths[0], tenths[-1])
    )
