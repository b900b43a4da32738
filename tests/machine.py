"""Nothing of the person who runs the tests reaches a test, nor a program that one starts.

Neither settings nor keys in their environment, nor a settings file or a data folder where they stand or at
their home, nor a Threadkeep that they run. Nor whether this is CI, where programs color what they print.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PERSON: Mapping[str, str] = dict(os.environ)
"""The person's own environment, for what fetches packages: with their mirrors, proxies and caches."""
CACHE = Path(PERSON.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "threadkeep-tests"
"""What was fetched is kept for the next run."""
NO_SERVER = {"THREADKEEP_PORT": "0"}
"""Nobody can listen there: a command finds no server, and a server takes a free port."""

_OF_A_PERSON = ("THREADKEEP_", "ANTHROPIC_", "OPENAI_", "PROMPTX_", "XDG_")
OF_CI = {"CI", "FORCE_COLOR", "CLICOLOR_FORCE"}
_FOR_TESTS = {
    "THREADKEEP_FUZZ_EXAMPLES", "THREADKEEP_POINT", "THREADKEEP_SEED", "THREADKEEP_TEST_POSTGRES_URL",
}  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Where the tests run: in each worker, not in the process that starts these."""
    if hasattr(config, "workerinput") or config.getoption("dist", "no") == "no":
        theirs = [it for it in os.environ if it.startswith(_OF_A_PERSON) and it not in _FOR_TESTS]
        for name in {*theirs, *OF_CI.intersection(os.environ)}:
            del os.environ[name]
        home = tempfile.mkdtemp(prefix="threadkeep-home-")
        config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
        os.environ |= {"HOME": home, "XDG_CACHE_HOME": str(CACHE.parent), **NO_SERVER}


@pytest.fixture(scope="session", autouse=True)
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tests stand in an empty folder."""
    before, folder = Path.cwd(), tmp_path_factory.mktemp("working")
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture(autouse=True)
def nothing_left(working_folder: Path) -> Iterator[None]:
    """The next test finds neither the data folder nor the settings of one that named no folder of its own."""
    yield
    shutil.rmtree(working_folder / ".threadkeep", ignore_errors=True)
    (working_folder / "threadkeep.toml").unlink(missing_ok=True)
