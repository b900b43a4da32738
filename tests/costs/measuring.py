"""Measures a path so that neither the machine's speed nor its load counts.

`instructions` are the bytecodes that the event loop's thread executes: nearly the same in every run, whatever
else the machine does. `cpu` is the CPU time of the whole process, native code and other threads included,
as a multiple of what a fixed piece of work takes in the same moment.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from msgspec import Struct

from tests.costs.paths import Prepare

COUNTED = 3
TIMED = 5


class Cost(Struct, frozen=True):
    """What one pass along a path costs."""

    instructions: int
    cpu: float


async def measure(prepare: Prepare) -> Cost:
    """The least of several passes: whatever disturbs one makes it dearer, never cheaper."""
    await (await prepare())()  # what happens only once
    instructions = [await _count(prepare) for _ in range(COUNTED)]
    gc.collect()
    gc.disable()
    try:
        cpu = [await _time(prepare) for _ in range(TIMED)]
    finally:
        gc.enable()
    return Cost(min(instructions), round(min(spent for spent, _ in cpu) / min(unit for _, unit in cpu), 3))


async def _count(prepare: Prepare) -> int:
    run = await prepare()
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        nonlocal count
        if event == "opcode":
            count += 1
        elif event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

    sys.settrace(trace)
    try:
        await run()
    finally:
        sys.settrace(None)
    return count


async def _time(prepare: Prepare) -> tuple[float, float]:
    """The CPU time of a pass, and that of the fixed work just before and after it."""
    run = await prepare()
    before = _fixed_work()
    begun = time.process_time()
    await run()
    spent = time.process_time() - begun
    return spent, min(before, _fixed_work())


_SAMPLE = {"id": "0190", "items": [{"name": f"name {at}", "size": at, "share": at / 7} for at in range(50)]}


def _fixed_work() -> float:
    """The CPU time of work of the same kinds: calls, dictionaries, text, JSON."""
    begun = time.process_time()
    for _ in range(30):
        decoded = json.loads(json.dumps(_SAMPLE))
        text = "".join(f"{item['name']}: {item['size'] + 1}\n" for item in decoded["items"])
        assert len(sorted(text.split("\n"))) == len(decoded["items"]) + 1
    return time.process_time() - begun
