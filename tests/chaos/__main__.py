"""Runs the chaos: `python -m tests.chaos ENGINE MINUTES [SEED] [--keep]`; `--keep` records its figures."""

import asyncio
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import cast

from tests.chaos.run import Chaos
from tests.chaos.seen import Record
from tests.chaos.world import Engine

SAID_EVERY_S = 15.0
RECORDS = Path(__file__).parents[1] / "proof" / "records"


async def follow(chaos: Chaos, seconds: float) -> Record:
    """The run, with a word on it now and then."""
    running = asyncio.create_task(chaos.run(seconds))
    while not running.done():
        await asyncio.wait([running], timeout=SAID_EVERY_S)
        print(chaos.describe(), flush=True)
    return await running


def main() -> int:
    engine, minutes, *more = [it for it in sys.argv[1:] if it != "--keep"]
    seed = int(more[0]) if more else random.randrange(10**6)
    print(f"to try it again: python -m tests.chaos {engine} {minutes} {seed}", flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        record = asyncio.run(follow(Chaos(cast("Engine", engine), seed, Path(folder)), float(minutes) * 60))
    figures = json.dumps(record.figures(float(minutes)), indent=2, ensure_ascii=False)
    print(figures)
    if "--keep" in sys.argv:
        RECORDS.mkdir(parents=True, exist_ok=True)
        (RECORDS / f"chaos-{engine}-{seed}.json").write_text(f"{figures}\n", encoding="utf-8")
    return 1 if record.losses else 0


if __name__ == "__main__":
    sys.exit(main())
