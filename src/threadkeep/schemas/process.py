"""The process that checks one value against one schema: little memory, little time, and nothing to lose.

Run as `python -m threadkeep.schemas.process CPU_SECONDS`, it reads `[schema, value]` as JSON and writes
what is wrong, or null.
"""

import json
import sys

from threadkeep.confined.limits import limit_process
from threadkeep.ports.schemas import NOT_CHECKED
from threadkeep.schemas.validation import find_problem
from threadkeep.schemas.work import Unlimited

MOST_MEMORY_BYTES = 512 * 1024**2


def main(cpu_s: int) -> None:
    """Writes what is wrong with the value."""
    limit_process(memory_bytes=MOST_MEMORY_BYTES, cpu_s=cpu_s, written_bytes=0)
    sys.stdout.write(json.dumps(_report()))


def _report() -> str | None:
    try:
        schema, value = json.load(sys.stdin.buffer)
        return find_problem(schema, value, Unlimited())
    except (MemoryError, RecursionError):
        return NOT_CHECKED


if __name__ == "__main__":
    main(int(sys.argv[1]))
