"""The frameworks' tests with the oldest releases that pyproject.toml allows, in an environment of their own.

    python -m tests.frameworks.oldest [what pytest is given]

Its packages are in oldest.lock, which `make lock` makes from oldest.in.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients.python import install

ROOT = Path(__file__).parents[2]
LOCK = Path(__file__).with_suffix(".lock")
TESTS = (
    "tests/agents/test_langgraph.py",
    "tests/agents/test_openai_agents.py",
    "tests/agents/test_pydantic_ai.py",
    "tests/frameworks",
)
LEFT_OUT = ("--ignore", "tests/frameworks/test_oldest.py")  # it looks at the lock, not at the releases


def main(arguments: Sequence[str]) -> int:
    """Runs these tests; of pytest's options, `-n` and `-k` are useful here."""
    python = install(LOCK)
    with _described() as folder:
        path = os.pathsep.join((str(ROOT / "src"), folder))
        command = [str(python), "-m", "pytest", *arguments, *TESTS, *LEFT_OUT]
        return subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False
        ).returncode


@contextmanager
def _described() -> Generator[str]:
    """A folder in which Python finds what this package is, as if it were installed."""
    here = distribution("threadkeep")
    with TemporaryDirectory(prefix="threadkeep-") as folder:
        described = Path(folder, f"threadkeep-{here.version}.dist-info")
        described.mkdir()
        (described / "METADATA").write_text(here.read_text("METADATA") or "", encoding="utf-8")
        yield folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
