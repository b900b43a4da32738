"""Tries to get out of the sandbox in which it is started: prints `in` if it can't, else `out`.

    … threadkeep.mcp.processes.escape HIDDEN DATA OWN OUTSIDE

HIDDEN is a file and DATA a folder that it must not read; it may write to OWN. It also writes to OUTSIDE, so
that its caller can check that this reached only the program's own temporary folder.
"""

import os
import sys
from collections.abc import Callable
from typing import Any


def main(hidden: str, data: str, own: str, outside: str) -> None:
    """Tries all of it."""
    _works(open, outside, "w")
    is_in = _works(open, own, "w") and not _works(open, hidden) and not _works(os.listdir, data)
    sys.stdout.write("in" if is_in else "out")


def _works(do: Callable[..., Any], *arguments: str) -> bool:
    try:
        do(*arguments)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
