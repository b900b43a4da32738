"""Measures the hot paths and compares them with the record; `python -m tests.costs record` writes it anew."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.costs.measuring import Cost, measure
from tests.costs.paths import hot_paths, server

RECORD = Path(__file__).parent / "recorded.json"
MOST_INSTRUCTIONS = 1.6
MOST_CPU = 2.0
ATTEMPTS = 4


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
    recorded = msgspec.json.decode(RECORD.read_bytes(), type=Record).costs
    costs = asyncio.run(_measure_all(recorded))
    for name, cost in costs.items():
        print(_line(name, cost, recorded.get(name)))
    if costs.keys() == recorded.keys() and not any(_is_dear(costs[it], recorded[it]) for it in recorded):
        return 0
    print("A path costs much more than recorded, or isn't recorded. If you meant this: make costs")
    return 1


async def _measure_all(recorded: Mapping[str, Cost]) -> dict[str, Cost]:
    """Measures each path; again if it isn't recorded or seems dear: a busy machine is no reason to fail."""
    costs: dict[str, Cost] = {}
    async with server() as running:
        for name, prepare in (await hot_paths(running)).items():
            cost = await measure(prepare)
            for _ in range(ATTEMPTS - 1):
                if name in recorded and not _is_dear(cost, recorded[name]):
                    break
                again = await measure(prepare)
                cost = Cost(min(cost.instructions, again.instructions), min(cost.cpu, again.cpu))
            costs[name] = cost
    return costs


def _is_dear(cost: Cost, recorded: Cost) -> bool:
    is_longer = cost.instructions > MOST_INSTRUCTIONS * recorded.instructions
    return is_longer or cost.cpu > MOST_CPU * recorded.cpu


def _line(name: str, cost: Cost, recorded: Cost | None) -> str:
    line = f"{name:40} {cost.instructions:>10,} instructions  {cost.cpu:>8.3f} CPU"
    if recorded is None:
        return f"{line}  not recorded"
    share = f"{cost.instructions / recorded.instructions:.2f} ×, {cost.cpu / recorded.cpu:.2f} ×"
    return f"{line}  {share} as recorded{'  MUCH MORE' if _is_dear(cost, recorded) else ''}"


def _record(costs: dict[str, Cost]) -> Record:
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(
        head, cwd=RECORD.parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    version = sys.version_info
    return Record(commit, f"{version.major}.{version.minor}", costs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
