"""Confines the current process, then replaces it with the given program.

    … threadkeep.mcp.confine CONFINEMENT COMMAND [ARGUMENT …]

CONFINEMENT is JSON: `kind` (landlock, bubblewrap or null), the folders and files that are `hidden`, those
that are `readable` and `writable` although inside a hidden one, other folders that may be written (`shared`),
and `limits`. Everything else can be read but not written. The program and all that it starts inherit this.

Landlock can only allow. So everything beside what is hidden is allowed, on the way from the root to it;
files that appear there later are not visible.
"""

import ctypes
import json
import os
import resource
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

NOT_CONFINED = 126
BUBBLEWRAP = "bwrap"
BUBBLEWRAP_S = 10

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_DROP_FROM_BOUND, _NO_NEW_PRIVILEGES = 24, 38
_CAPABILITIES_VERSION = 0x2008_0522
_MOST_CAPABILITIES = 64

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_CHANGE_TREE = 0b1_1111_1111_0000  # remove and make folders, files, links, pipes, sockets and devices
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_SIGNALS_AND_SOCKETS = 3

_LIMITS = {
    "memory": resource.RLIMIT_DATA,
    "files": resource.RLIMIT_NOFILE,
    "file_size": resource.RLIMIT_FSIZE,
    "core": resource.RLIMIT_CORE,
}
_KILLED_FIRST = "500"


class NotConfined(Exception):
    """The machine refused to confine us; nothing may run."""


def main(confinement: Mapping[str, Any], command: Sequence[str]) -> int:
    """Becomes the command; returns only if that fails."""
    try:
        _limit(confinement["limits"])
        if confinement["kind"] == "landlock":
            _landlock(confinement)
        elif confinement["kind"] == "bubblewrap":
            command = [*bubblewrap(confinement), *command]
        os.execvp(command[0], list(command))  # noqa: S606 - there is no shell on purpose
    except (OSError, NotConfined) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        os.write(2, f"{command[0]}: {reason}\n".encode())
    return NOT_CONFINED


def landlock_version() -> int:
    """The kernel's Landlock version; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))


def has_bubblewrap() -> bool:
    """Whether bubblewrap is installed and works: many containers don't allow it."""
    if sys.platform != "linux" or shutil.which(BUBBLEWRAP) is None:
        return False
    nothing: dict[str, list[str]] = {"shared": [], "hidden": [], "readable": [], "writable": []}
    try:
        tried = subprocess.run(  # noqa: S603 - the words are our own
            [*bubblewrap(nothing), "true"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def bubblewrap(confinement: Mapping[str, Any]) -> list[str]:
    """The arguments with which bubblewrap runs a command in this confinement."""
    words = [BUBBLEWRAP, "--die-with-parent", "--unshare-pid", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
    words += ["--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    for path in confinement["shared"]:
        words += ["--bind-try", path, path]  # the operator may create it later
    folders = [path for path in confinement["hidden"] if Path(path).is_dir()]
    for path in confinement["hidden"]:
        words += ["--tmpfs", path] if path in folders else ["--ro-bind", "/dev/null", path]
    for option, paths in (("--ro-bind", confinement["readable"]), ("--bind", confinement["writable"])):
        for path in paths:
            words += [option, path, path]
    for path in folders:
        words += ["--remount-ro", path]
    return [*words, "--chdir", str(Path.cwd()), "--"]


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


def _landlock(confinement: Mapping[str, Any]) -> None:
    version = landlock_version()
    everything = _READ | _WRITE_FILE | _CHANGE_TREE
    everything |= (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    asked = [everything, 0, _SIGNALS_AND_SOCKETS] if version >= 6 else [everything]
    ruleset = _system_call(_CREATE_RULESET, struct.pack(f"={len(asked)}Q", *asked), len(asked) * 8, 0)
    for path in confinement["writable"]:
        _allow(ruleset, path, everything)
    for path in confinement["readable"]:
        _allow(ruleset, path, _READ)
    for folder, access in (("/", _READ), *((it, everything) for it in confinement["shared"])):
        for path in _beside(folder, confinement["hidden"]):
            _allow(ruleset, path, access)
    _allow(ruleset, "/dev", _READ | _WRITE_FILE)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise NotConfined(os.strerror(ctypes.get_errno()))
    _system_call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    _drop_capabilities(libc)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """No program needs what root may do beyond its own files, such as inspecting other processes."""
    for capability in range(_MOST_CAPABILITIES):
        libc.prctl(_DROP_FROM_BOUND, capability, 0, 0, 0)
    if libc.capset(struct.pack("=Ii", _CAPABILITIES_VERSION, 0), bytes(24)):
        raise NotConfined(os.strerror(ctypes.get_errno()))


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


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # deleted meanwhile, or not visible to us
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _OF_FILES
        rule = struct.pack("=Qi", access, descriptor)
        with suppress(NotConfined):  # some kinds of file can't be allowed; they stay denied
            _system_call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def _system_call(*arguments: int | bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(*(ctypes.c_long(it) if isinstance(it, int) else it for it in arguments))
    if result < 0:
        raise NotConfined(f"couldn't create the sandbox: {os.strerror(ctypes.get_errno())}")
    return result


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
