"""The to-do application of `examples/todo` in a process of its own, as its `run` starts it."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.serving import END_S, environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "todo"


@contextmanager
def running_todo(folder: Path, **settings: str) -> Generator[str]:
    """The application on a free port, with its files in `folder`; its address."""
    # A busy machine is no reason to fail.
    env = environment({"mcp_connect_budget_s": "60", **settings})
    env["PYTHONPATH"] = os.pathsep.join((env["PYTHONPATH"], str(EXAMPLE)))
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "todo", "--port", "0", "--data", str(folder / "data")],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert process.stderr
    try:
        for line in process.stderr:
            if found := re.search(r"running on (http://\S+)", line):
                yield found[1]
                break
        else:
            raise AssertionError("the application did not start")
    finally:
        process.terminate()
        process.communicate(timeout=END_S)
