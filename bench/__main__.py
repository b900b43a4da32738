"""Prints how fast Threadkeep is against the floor, on both databases."""

import argparse
import os
import platform
import sys
from pathlib import Path

import uvloop

from bench.begin import measure as measure_begin
from bench.databases import DATABASES, LARGE_DATABASES, Copies, open_floor
from bench.http import through_http
from bench.knowledge import KNOWLEDGE
from bench.measure import FULL, QUICK, Effort
from bench.operations import OPERATIONS, Sides
from bench.ours import Threadkeep
from bench.reading import measure as measure_reading
from bench.sample import Sample, check_same_rows, make_sample
from bench.streaming import context_delays, piece_delays, turn_costs, turn_delays
from bench.table import DELAY_HEADINGS, HEADINGS, TIME_HEADINGS, Delays, Line, render
from threadkeep.storage.store import open_store

GROUPS = (*OPERATIONS, "http", "turns")
READING, BEGIN = "reading", "begin"
READING_HEADINGS = ("operation", "httpx2", *HEADINGS[2:])
MEASURABLE = (*GROUPS, READING, BEGIN, *KNOWLEDGE)
GROUPS_ON = {"slow-disk": ("writers",)}


async def through_store(copies: Copies, sample: Sample, effort: Effort, groups: list[str]) -> list[Line]:
    """The operations of the store on one database; at the end both sides must have left the same rows."""
    floor = await open_floor(copies.floor_url, sample.dataset)
    ours = Threadkeep(await open_store(copies.ours_url), sample.dataset)
    sides = Sides(floor, ours, sample, copies.writers_aim)
    lines = [line for name in groups if name in OPERATIONS for line in await OPERATIONS[name](sides, effort)]
    await ours.close()
    witness = await open_floor(copies.ours_url, sample.dataset)
    await check_same_rows(floor, witness)
    await witness.close()
    await floor.close()
    return lines


async def main(arguments: argparse.Namespace) -> None:
    """Every database, one after the other."""
    effort: Effort = QUICK if arguments.quick else FULL
    python = f"Python {platform.python_version()}, uvloop"
    # Ratios of time grow with the load: a thread that is to be woken waits for a core. Ratios of CPU do not.
    print(f"{platform.system()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before, {python}")
    for name, opened in DATABASES.items():
        groups = [it for it in GROUPS_ON.get(name, GROUPS) if arguments.only in (None, it)]
        if not groups or arguments.database not in (None, name):
            continue
        sample = make_sample(effort)
        async with opened(sample.dataset) as copies:
            lines = await through_store(copies, sample, effort, groups)
            if "http" in groups:
                lines += through_http(copies, sample, effort)
            delays: list[Delays] = []
            if "turns" in groups:
                lines += turn_costs(copies.ours_url, sample, effort)
                delays += piece_delays(copies.ours_url, sample, effort)
                delays += turn_delays(copies.ours_url, sample, effort)
                delays.append(await context_delays(copies.ours_url, sample))
        print(f"\n{'### ' if arguments.markdown else ''}{copies.title}\n")
        print(render([line.cells() for line in lines], HEADINGS, markdown=arguments.markdown), flush=True)
        if delays:
            table = render([it.cells() for it in delays], DELAY_HEADINGS, markdown=arguments.markdown)
            print(f"\n{table}", flush=True)
    if arguments.only in (None, READING):
        lines = await measure_reading(effort)
        table = render([it.cells() for it in lines], READING_HEADINGS, markdown=arguments.markdown)
        print(f"\n{'### ' if arguments.markdown else ''}{READING}\n\n{table}", flush=True)
    for name in LARGE_DATABASES if arguments.only in (None, BEGIN) else ():
        if arguments.database not in (None, name):
            continue
        lines, times = measure_begin(effort, name, arguments.beside)
        print(f"\n{'### ' if arguments.markdown else ''}{BEGIN}, {name}\n")
        print(render([it.cells() for it in lines], HEADINGS, markdown=arguments.markdown))
        print(render([it.cells() for it in times], TIME_HEADINGS, markdown=arguments.markdown), flush=True)
    databases = [arguments.database] if arguments.database else list(DATABASES)
    for name, measure in KNOWLEDGE.items():
        if arguments.only in (None, name):
            times = await measure(effort, databases)
            table = render([it.cells() for it in times], TIME_HEADINGS, markdown=arguments.markdown)
            print(f"\n{'### ' if arguments.markdown else ''}{name}\n\n{table}", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes instead of many")
    parser.add_argument("--only", choices=MEASURABLE, help="measure one group of operations only")
    parser.add_argument("--database", choices=DATABASES, help="on one database only")
    parser.add_argument("--markdown", action="store_true", help="print tables for a document")
    parser.add_argument(
        "--beside", type=Path, help="with `begin`: another checkout, measured in the same rounds"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    uvloop.run(main(parse(sys.argv[1:])))
