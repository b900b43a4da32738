"""Prints the table of docs/retrieval.md: `python -m bench.retrieval`. How fast it is: `python -m bench`."""

import asyncio

from bench.retrieval.quality import report

asyncio.run(report())
