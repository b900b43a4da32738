"""Measures the hot paths and compares them with the record; `python -m tests.costs record` writes it anew."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.costs.encoders import ENCODERS
from tests.costs.measuring import Cost, measure
from tests.costs.paths import hot_paths, server

RECORD = Path(__file__).parent / "recorded.json"
MOST_INSTRUCTIONS = 1.6
MOST_OF_ENCODER = 1.1
"""What only computes takes the same number of instructions in each run, with the same Python."""
MOST_CPU = 2.0
ATTEMPTS = 4
PYTHON = "{}.{}".format(*sys.version_info)


class Record(msgspec.Struct, frozen=True):
    """What the paths cost at a commit."""

    commit: str
    python: str
    costs: dict[str, Cost]


def main(arguments: list[str]) -> int:
    """Measures; 1 if a path costs much more than recorded."""
    if arguments == ["record"]:
        costs = asyncio.run(_measure_all({}))
        RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(_record(costs)), indent=2) + b"\n")
        return 0
    recorded = msgspec.json.decode(RECORD.read_bytes(), type=Record)
    limits = {name: _limit(name, cost, recorded.python) for name, cost in recorded.costs.items()}
    costs = asyncio.run(_measure_all(limits))
    for name, cost in costs.items():
        print(_line(name, cost, recorded.costs.get(name), limits.get(name)))
    if costs.keys() == limits.keys() and not any(_is_dear(costs[it], limits[it]) for it in limits):
        return 0
    print("A path costs much more than recorded, or isn't recorded. If you meant this: make costs")
    return 1


def _limit(name: str, recorded: Cost, python: str) -> Cost:
    """The most that a path may cost."""
    is_exact = name in ENCODERS and python == PYTHON
    most = MOST_OF_ENCODER if is_exact else MOST_INSTRUCTIONS
    return Cost(int(most * recorded.instructions), MOST_CPU * recorded.cpu)


async def _measure_all(limits: Mapping[str, Cost]) -> dict[str, Cost]:
    """Measures each path; again if it isn't recorded or seems dear: a busy machine is no reason to fail."""
    costs: dict[str, Cost] = {}
    async with server() as running:
        for name, prepare in {**await hot_paths(running), **ENCODERS}.items():
            cost = await measure(prepare)
            for _ in range(ATTEMPTS - 1):
                if name in limits and not _is_dear(cost, limits[name]):
                    break
                again = await measure(prepare)
                cost = Cost(min(cost.instructions, again.instructions), min(cost.cpu, again.cpu))
            costs[name] = cost
    return costs


def _is_dear(cost: Cost, limit: Cost) -> bool:
    return cost.instructions > limit.instructions or cost.cpu > limit.cpu


def _line(name: str, cost: Cost, recorded: Cost | None, limit: Cost | None) -> str:
    line = f"{name:40} {cost.instructions:>10,} instructions  {cost.cpu:>8.3f} CPU"
    if recorded is None or limit is None:
        return f"{line}  not recorded"
    share = f"{cost.instructions / recorded.instructions:.2f} ×, {cost.cpu / recorded.cpu:.2f} ×"
    return f"{line}  {share} as recorded{'  MUCH MORE' if _is_dear(cost, limit) else ''}"


def _record(costs: dict[str, Cost]) -> Record:
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(
        head, cwd=RECORD.parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    return Record(commit, PYTHON, costs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
