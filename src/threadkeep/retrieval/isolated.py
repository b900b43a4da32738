"""Starts a module of ours in a Python that reads nothing of the folder or the environment it starts in.

    python -I [-S] isolated.py FOLDERS MODULE [ARGUMENT …]

Isolated mode (`-I`) ignores PYTHONPATH, the user's packages and the folder of the script. FOLDERS, a JSON
list, names where the modules are. They come last: nothing there replaces a module of Python's own.
`process.py` writes this command; nothing else starts a Python.
"""

import json
import runpy
import sys
from collections.abc import Sequence


def main(folders: Sequence[str], module: str, arguments: Sequence[str]) -> None:
    """Runs the module as the program."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
