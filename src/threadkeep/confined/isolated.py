"""Starts a module of ours in a Python that reads nothing of the folder or the environment it starts in.

    python -I [-S] isolated.py FOLDERS MODULE [ARGUMENT …]

Isolated mode (`-I`) ignores PYTHONPATH, the user's packages and the folder of the script. FOLDERS, a JSON
list, names where the modules are. They come last: nothing there replaces a module of Python's own.
Nothing else starts a Python.
"""

import json
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

CODE = Path(__file__).parents[2]
"""The folder of the package `threadkeep`."""

PACKAGES = ("site-packages", "dist-packages")
"""What folders of packages are called."""


def isolated_command(module: str, *arguments: str, with_packages: bool = False) -> tuple[str, ...]:
    """The command that runs a module of ours, and nothing from where it is started.

    Without packages, it has only Python's own modules and ours, and starts faster.
    """
    folders = [str(CODE), *(package_folders() if with_packages else ())]
    flags = ("-I",) if with_packages else ("-I", "-S")
    return (sys.executable, *flags, __file__, json.dumps(folders), module, *arguments)


def package_folders() -> list[str]:
    """Where this process finds packages; isolated mode would leave out the user's own."""
    folders = (Path(it) for it in sys.path if it)
    return [str(it) for it in folders if it.is_absolute() and it.name in PACKAGES]


def main(folders: Sequence[str], module: str, arguments: Sequence[str]) -> None:
    """Runs the module as the program."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
