"""Tries to get out of the sandbox in which it is started: prints `in` if it can't, else `out`.

    … threadkeep.mcp.escape HIDDEN DATA OWN OUTSIDE

HIDDEN is a file and DATA a folder that it must not read; it may write to OWN, and not to OUTSIDE.
"""

import os
import sys
from collections.abc import Callable
from typing import Any


def main(hidden: str, data: str, own: str, outside: str) -> None:
    """Tries all of it."""
    sees = _works(open, hidden) or _works(os.listdir, data)
    is_in = _works(open, own, "w") and not sees and not _works(open, outside, "w")
    sys.stdout.write("in" if is_in else "out")


def _works(do: Callable[..., Any], *arguments: str) -> bool:
    try:
        do(*arguments)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
