"""The contenders' environments: each is made from its lock file when it is first used."""

import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from bench.peers.progress import say

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).parent / "locks"
ENVIRONMENTS = ROOT / "build" / "peers"

_VERSIONS = """import json, sys
from importlib.metadata import version
print(json.dumps({name: version(name) for name in sys.argv[1:]}))"""


def python_of(lock: str | None) -> Path:
    """The interpreter of an environment, which is made or renewed first if it does not fit its lock file."""
    if lock is None:
        return Path(sys.executable)
    wanted = LOCKS / f"{lock}.lock"
    folder = ENVIRONMENTS / lock
    stamp, made_from = folder / "stamp", hashlib.sha256(wanted.read_bytes()).hexdigest()
    python = folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != made_from:
        say(f"making the environment of {lock} (a minute or two, the first time)")
        venv.create(folder, clear=True, with_pip=True)
        _install(python, wanted)
        stamp.write_text(made_from)
    return python


def _install(python: Path, lock: Path) -> None:
    options = ("--quiet", "--no-input", "--disable-pip-version-check", "--require-hashes")
    command = [str(python), "-m", "pip", "install", *options, "-r", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise RuntimeError(f"cannot be installed: {' '.join(errors)[:500] or done.stderr[-500:]}")


def versions(python: Path, packages: Sequence[str]) -> dict[str, str]:
    """Which versions of these an environment has."""
    if not packages:
        return {}
    shown = subprocess.run(
        [str(python), "-c", _VERSIONS, *packages], capture_output=True, text=True, check=True
    )
    return json.loads(shown.stdout)


def environment(folder: Path) -> dict[str, str]:
    """The variables that every contender starts with: nothing of the caller's, and nobody reports home."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "OPENAI_API_KEY": "none",
        "GOOGLE_API_KEY": "none",
        "DO_NOT_TRACK": "1",
        "AGNO_TELEMETRY": "false",
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "OTEL_SDK_DISABLED": "true",
        "NO_PROXY": "127.0.0.1,localhost",
    }
