"""The last release as its users have it: a wheel, built from its commit and installed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = "0.1.0"
COMMIT = "f48a7d06"  # "Changelog: 0.1.0"
# Node would build the page for minutes: to the release's own script it is built already.
HAS_PAGE = "import page; page.BUILT.mkdir(exist_ok=True); page.STAMP.write_text(page.sources())"


def install_last_release(folder: Path) -> Path:
    """Builds and installs it without its page and what it depends on; the folder of its modules."""
    archived = subprocess.run(
        ["git", "-C", ROOT, "archive", COMMIT],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if archived.returncode:
        pytest.skip(f"this clone has no commit {COMMIT}, of which {VERSION} was made")
    source, wheels, installed = folder / "source", folder / "wheels", folder / "installed"
    source.mkdir()
    subprocess.run(["tar", "-x", "-C", source], input=archived.stdout, check=True)
    subprocess.run([sys.executable, "-c", HAS_PAGE], cwd=source / "scripts", check=True)
    _pip("wheel", "--no-build-isolation", "--wheel-dir", wheels, source)
    (wheel,) = wheels.glob(f"threadkeep-{VERSION}-*.whl")
    _pip("install", "--target", installed, wheel)
    return installed


def _pip(command: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", command, "--quiet", "--no-deps", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
