"""Prints how fast Threadkeep is against the floor, on both databases."""

import argparse
import asyncio
import os
import platform
import sys

import uvloop

from bench.databases import DATABASES, Copies, open_floor
from bench.measure import FULL, QUICK, Effort
from bench.operations import OPERATIONS, Sides
from bench.ours import Threadkeep
from bench.sample import Sample, check_same_rows, make_sample
from bench.table import HEADINGS, Line, render
from threadkeep.storage.store import open_store


async def measure(copies: Copies, sample: Sample, effort: Effort, only: str | None) -> list[Line]:
    """Every operation through the store, on one database."""
    floor = await open_floor(copies.floor_url, sample.dataset)
    ours = Threadkeep(await open_store(copies.ours_url), sample.dataset)
    lines: list[Line] = []
    for name, operation in OPERATIONS.items():
        if only in (None, name):
            lines += await operation(Sides(floor, ours, sample), effort)
    await ours.close()
    witness = await open_floor(copies.ours_url, sample.dataset)
    await check_same_rows(floor, witness)
    await witness.close()
    await floor.close()
    return lines


async def main(arguments: argparse.Namespace) -> None:
    """Both databases, one after the other."""
    effort = QUICK if arguments.quick else FULL
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, uvloop")
    for name, opened in DATABASES.items():
        if arguments.database in (None, name):
            sample = make_sample(effort)
            async with opened(sample.dataset) as copies:
                lines = await measure(copies, sample, effort, arguments.only)
            print(f"\n{'### ' if arguments.markdown else ''}{copies.title}\n")
            print(render([line.cells() for line in lines], HEADINGS, markdown=arguments.markdown), flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a minute instead of four")
    parser.add_argument("--only", choices=OPERATIONS, help="measure one operation only")
    parser.add_argument("--database", choices=DATABASES, help="on one database only")
    parser.add_argument("--markdown", action="store_true", help="print a table for a document")
    return parser.parse_args(arguments)


uvloop.run(main(parse(sys.argv[1:])))
