"""Confines the current process, then replaces it with the given program.

    … threadkeep.mcp.processes.confine CONFINEMENT COMMAND [ARGUMENT …]

CONFINEMENT is JSON: the `kinds` of sandbox to use (bubblewrap, landlock), the folders and files that are
`hidden`, folders like /tmp that are `private`, what is `readable` and `writable` although inside a hidden
one, other folders that may be written (`shared`), our own `ports`, and `limits`, null if they are set
already. The deepest of these paths counts. Everything else can be read but not written. The program and all
that it starts inherit this.

Landlock can only allow. So everything beside what is hidden is allowed, on the way from the root to it;
files that appear there later are not visible. bubblewrap needs rights that Landlock takes, so it comes first.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from threadkeep.confined.isolated import isolated_command
from threadkeep.confined.landlock import CHANGE, READ, USE, NotConfined, Rule, drop_capabilities, restrict

NOT_CONFINED = 126
BUBBLEWRAP = "bwrap"
BUBBLEWRAP_S = 10
HELD = "THREADKEEP_PROGRAM_ENVIRONMENT"
"""The program's environment as JSON. It takes effect in the sandbox: its owner chose it, and a PATH or an
LD_PRELOAD would decide what runs before.
"""
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))

_LIMITS = {
    "memory": resource.RLIMIT_DATA,
    "files": resource.RLIMIT_NOFILE,
    "file_size": resource.RLIMIT_FSIZE,
    "core": resource.RLIMIT_CORE,
}
_KILLED_FIRST = "500"
_NOTHING: Mapping[str, Any] = {"shared": [], "hidden": [], "private": [], "readable": [], "writable": []}


def main(confinement: Mapping[str, Any], command: Sequence[str]) -> int:
    """Becomes the command; returns only if that fails."""
    try:
        if confinement["limits"]:
            _limit(confinement["limits"])
        if "bubblewrap" in confinement["kinds"]:
            command = [*bubblewrap(confinement), *_within(confinement), *command]
            os.execvp(command[0], list(command))  # noqa: S606 - there is no shell on purpose
        if "landlock" in confinement["kinds"]:
            restrict(_rules(confinement), closed_ports={*confinement["ports"]})
            drop_capabilities()
        environment = json.loads(os.environ[HELD]) if HELD in os.environ else dict(os.environ)
        os.execvpe(command[0], list(command), environment)  # noqa: S606 - there is no shell on purpose
    except (OSError, NotConfined) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        os.write(2, f"{command[0]}: {reason}\n".encode())
    return NOT_CONFINED


def has_bubblewrap() -> bool:
    """Whether bubblewrap is installed and works: many containers don't allow it."""
    if sys.platform != "linux" or shutil.which(BUBBLEWRAP) is None:
        return False
    try:
        tried = subprocess.run(  # noqa: S603 - the words are our own
            [*bubblewrap(_NOTHING), "true"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=BUBBLEWRAP_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def bubblewrap(confinement: Mapping[str, Any]) -> list[str]:
    """The arguments with which bubblewrap runs a command in this confinement."""
    words = [BUBBLEWRAP, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    folders = [path for path in confinement["hidden"] if Path(path).is_dir()]
    mounts = [
        *((path, ["--tmpfs", path]) for path in (*folders, *confinement["private"])),
        *((path, ["--ro-bind", "/dev/null", path]) for path in confinement["hidden"] if path not in folders),
        *((path, ["--ro-bind-try", path, path]) for path in confinement["readable"]),
        *((path, ["--bind-try", path, path]) for path in (*confinement["shared"], *confinement["writable"])),
    ]
    # Each covers what is mounted above it; the sort keeps the order of equals.
    for _, mount in sorted(mounts, key=lambda it: len(Path(it[0]).parts)):
        words += mount
    for path in folders:
        words += ["--remount-ro", path]
    return [*words, "--chdir", str(Path.cwd()), "--"]


def _within(confinement: Mapping[str, Any]) -> Sequence[str]:
    """What goes on inside bubblewrap, whose devices and temporary folders are the program's own."""
    own = ["/dev", *confinement["private"]]
    kinds = [kind for kind in confinement["kinds"] if kind != "bubblewrap"]
    rest = {**confinement, "kinds": kinds, "private": [], "limits": None}
    return isolated_command(
        "threadkeep.mcp.processes.confine", json.dumps({**rest, "writable": [*confinement["writable"], *own]})
    )


def _limit(limits: Mapping[str, int]) -> None:
    for name, kind in _LIMITS.items():
        _, most = resource.getrlimit(kind)
        value = limits[name] if most == resource.RLIM_INFINITY else min(limits[name], most)
        resource.setrlimit(kind, (value, value))
    # The limit counts everything under our account, so add to what already runs.
    with suppress(ValueError, OSError):
        value = _running() + limits["processes"]
        resource.setrlimit(resource.RLIMIT_NPROC, (value, value))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_KILLED_FIRST)


def _running() -> int:
    """How many threads run under our account."""
    count, ours = 0, os.getuid()
    for process in os.scandir("/proc"):
        with suppress(OSError):
            if process.name.isdecimal() and process.stat().st_uid == ours:
                count += len(list(Path(process.path, "task").iterdir()))
    return count


def _rules(confinement: Mapping[str, Any]) -> Iterator[Rule]:
    """What Landlock allows."""
    hidden = [*confinement["hidden"], *confinement["private"]]
    yield from ((path, READ) for path in _beside("/", [*hidden, "/dev"]))
    yield from ((device, USE) for device in DEVICES)
    for folders, access in (
        (confinement["readable"], READ),
        (confinement["shared"], CHANGE),
        (confinement["writable"], CHANGE),
    ):
        for folder in folders:
            yield from ((path, access) for path in _beside(folder, [it for it in hidden if it != folder]))


def _beside(folder: str, hidden: Sequence[str]) -> Iterator[str]:
    """Everything in a folder that is not hidden, as few paths as possible. Follows no links."""
    within = folder.rstrip("/") + "/"
    if folder in hidden:
        return
    if not any(path.startswith(within) for path in hidden):
        yield folder
        return
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                yield from _beside(within + entry.name, hidden)
            elif not entry.is_symlink() and within + entry.name not in hidden:
                yield within + entry.name


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
