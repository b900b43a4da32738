"""Confines this process, then runs a module in it: a hostile file that takes it over gains nothing.

    … threadkeep.confined.confine PLACES MODULE [ARGUMENT …]

PLACES is JSON: what the module `reads` and `writes`, and the `open` files that it has been given. Besides
these, it can read Python, our code and the system's libraries. It has no network (TCP, from Linux 6.7 on).
A kernel without Landlock (before Linux 5.13) runs it unconfined; `threadkeep doctor` reports that.
"""

import json
import os
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from threadkeep.confined.isolated import PACKAGES
from threadkeep.confined.landlock import (
    CHANGE,
    DAC_CAPABILITIES,
    LIST,
    READ,
    USE,
    Rule,
    drop_capabilities,
    landlock_version,
    restrict,
)

_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/etc/ld.so.cache",
    "/etc/mime.types", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_KILLED_FIRST = "1000"


def main(places: Mapping[str, Any], module: str, arguments: Sequence[str]) -> None:
    """Runs the module as the program, confined."""
    with suppress(OSError):  # if memory runs out, the kernel kills us before the server
        Path("/proc/self/oom_score_adj").write_text(_KILLED_FIRST)
    if landlock_version():
        restrict(_rules(places), closes_tcp=True)
        drop_capabilities(kept=DAC_CAPABILITIES)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _rules(places: Mapping[str, Any]) -> Iterator[Rule]:
    yield from ((path, READ) for path in (*_SYSTEM, *_code(), *map(os.path.realpath, places["reads"])))
    yield from ((folder, LIST) for folder in map(os.path.realpath, sys.path))  # to find modules there
    yield from ((path, CHANGE) for path in map(os.path.realpath, places["writes"]))
    yield from ((file, READ) for file in places["open"])
    yield from ((device, USE) for device in _DEVICES)


def _code() -> Iterator[str]:
    """Where Python, its packages and our own code are."""
    yield from map(os.path.realpath, (sys.prefix, sys.base_prefix, *_library_folders()))
    for folder in map(os.path.realpath, sys.path):
        if os.path.basename(folder) in PACKAGES:  # noqa: PTH119 - `realpath` gives texts
            yield folder
            continue
        with suppress(OSError):  # a folder of code may have our data in it, whose name begins with a dot
            yield from (entry.path for entry in os.scandir(folder) if not entry.name.startswith("."))


def _library_folders() -> Sequence[str]:
    return [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
