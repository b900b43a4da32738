"""Real clients in Python whose packages don't fit beside ours: in an environment of their own."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.clients.node import MOST_LINE_BYTES, Driver
from tests.machine import CACHE, PERSON


def install(lock: Path) -> Path:
    """The interpreter of an environment with the packages of a lock file, made once."""
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    ready = CACHE / f"python-{digest}"
    if not ready.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=CACHE))
        try:
            _make(folder, lock)
            folder.rename(ready)
        except OSError:
            if not ready.exists():  # else another process was faster
                raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return ready / "bin" / "python"


def _make(folder: Path, lock: Path) -> None:
    # Its programs would not survive the move, but its packages do.
    venv.create(folder, with_pip=True)
    options = ("--quiet", "--no-input", "--disable-pip-version-check", "--require-hashes")
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", *options, "-r", str(lock)], env=PERSON, check=True)


@asynccontextmanager
async def driving(program: Path, lock: Path) -> AsyncGenerator[Driver]:
    """A program with the packages that a lock file names; it knows nothing of this environment."""
    python = await asyncio.to_thread(install, lock)
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-I",
        str(program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=MOST_LINE_BYTES,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1,localhost"},
    )
    assert process.stdout
    await process.stdout.readline()  # it has loaded its packages, which takes a while on a busy machine
    driver = Driver(process)
    try:
        yield driver
    finally:
        await driver.close()
