"""Measures how fast Threadkeep is against the floor, and prints each table when it is there."""

import argparse
import sys
import time
from pathlib import Path

import uvloop

from bench.databases import DATABASES
from bench.groups import ASKABLE, GROUPS, LONG, Asked
from bench.measure import FULL, QUICK
from bench.operations import OPERATIONS
from bench.rest import RESTS, Rest
from bench.results import Run, Table, save
from bench.table import render_rows


async def main(given: argparse.Namespace) -> None:
    """One group after the other."""
    names = [name for name in GROUPS if name not in LONG]
    if given.only:
        names = [name for name in GROUPS if name in given.only]
    operations = [name for name in given.only or () if name in OPERATIONS]
    if operations and "store" not in names:
        names.append("store")
    asked = Asked(
        effort=QUICK if given.quick else FULL,
        databases=given.database or list(DATABASES),
        operations=operations or list(OPERATIONS),
        beside=given.beside,
        rests=given.rest or RESTS,
    )
    failed: list[str] = []
    for name in names:
        begun, run = time.monotonic(), Run.now(is_quick=given.quick)
        try:
            async for it in GROUPS[name](asked):
                table = Table(it.name, it.title, it.rows, run)
                heading = f"{name}: {it.title}" if it.title else name
                print(f"\n{heading} ({run})\n\n{render_rows(it.rows, markdown=False)}", flush=True)
                if given.save:
                    save(name, table)
        except (RuntimeError, OSError) as exc:  # a server that failed; the other groups have their own
            failed.append(name)
            print(f"\n{name} could not be measured: {exc}", flush=True)
        print(f"\n{time.monotonic() - begun:.0f} s", flush=True)
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument(
        "--only",
        action="append",
        choices=ASKABLE,
        help="this group, or this operation of the store; repeatable",
    )
    parser.add_argument("--database", action="append", choices=DATABASES, help="on this one; repeatable")
    parser.add_argument(
        "--beside", type=Path, help="with `begin` and `pieces`: another checkout, measured in the same rounds"
    )
    parser.add_argument(
        "--rest", action="append", type=_rest, metavar="MS[,FLUSHES]",
        help="with `rest`: how long the log's writer rests at most, and for each other turn; repeatable",
    )  # fmt: skip
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/performance.md")
    given = parser.parse_args(arguments)
    if given.save and any(name in OPERATIONS for name in given.only or ()):
        parser.error("--save keeps whole groups: use `--only store`")
    return given


def _rest(text: str) -> Rest:
    return Rest(*map(float, text.split(",")))


if __name__ == "__main__":
    uvloop.run(main(parse(sys.argv[1:])))
