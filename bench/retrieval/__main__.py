"""Prints the tables of docs/retrieval.md: `python -m bench.retrieval [quality|speed]`."""

import asyncio
import sys

from bench.retrieval.quality import report
from bench.retrieval.speed import measure


def main() -> None:
    """Runs what is asked for, or both."""
    which = sys.argv[1:] or ["quality", "speed"]
    if "quality" in which:
        asyncio.run(report())
    if "speed" in which:
        asyncio.run(measure())


main()
