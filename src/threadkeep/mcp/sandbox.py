"""The sandbox for programs of MCP servers: they see their agent's folder, not Threadkeep's.

Landlock needs only a kernel that has it (Linux 5.13 and later); otherwise, bubblewrap is used.
"""

import functools
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from threadkeep.mcp import confine
from threadkeep.mcp.link import LinkBroken
from threadkeep.retrieval.process import isolated_command

log = logging.getLogger("threadkeep.mcp")

Mode = Literal["auto", "require", "off"]
Kind = Literal["landlock", "bubblewrap"]

MEMORY_BYTES = 2 * 1024**3
LIMITS = {
    "memory": MEMORY_BYTES,
    "processes": 256,
    "files": 4096,
    "file_size": 1024**3,
    "core": 0,
}
"""What each program may use; `processes` includes threads and everything it starts."""

NONE = (
    "This machine has no sandbox for programs: neither Landlock (Linux 5.13 or later) nor a working "
    "bubblewrap."
)

# What people have in their home folder and no tool needs to see.
_CREDENTIALS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".pgpass", ".git-credentials", ".npmrc",
    ".pypirc", ".config/gcloud", ".config/gh", ".local/share/keyrings", ".mozilla", ".bash_history",
    ".zsh_history", ".psql_history", ".python_history",
)  # fmt: skip
# Secrets of the system, and sockets of services that start programs outside the sandbox on request.
_OF_THE_SYSTEM = (
    "/run/secrets", "/run/credentials", "/run/user", "/run/dbus", "/run/docker.sock", "/run/containerd",
    "/run/podman",
)  # fmt: skip


@functools.cache
def sandbox_kind() -> Kind | None:
    """This machine's sandbox; None if it has none."""
    if confine.landlock_version():
        return "landlock"
    if confine.has_bubblewrap():
        return "bubblewrap"
    log.warning("%s They run with all the rights of this account.", NONE)
    return None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How the operator's settings confine programs."""

    mode: Mode = "off"
    hidden: Sequence[Path] = ()
    """Our own folders and files."""
    shared: Sequence[Path] = ()
    """Where programs may write besides their own folders."""

    @property
    def kind(self) -> Kind | None:
        """The sandbox for programs; LinkBroken if one is required and there is none."""
        if self.mode == "off":
            return None
        kind = sandbox_kind()
        if kind is None and self.mode == "require":
            raise LinkBroken(f"{NONE} The operator requires one (THREADKEEP_MCP_SANDBOX).")
        return kind

    def wrapper(self, *, readable: Sequence[Path] = (), writable: Sequence[Path] = ()) -> tuple[str, ...]:
        """The arguments before a command that confine it; it may use these folders inside hidden ones."""
        if self.mode == "off":
            return ()
        confinement = {
            "kind": self.kind,
            "hidden": sorted({str(it) for it in self._hidden()}),
            "shared": [str(it.resolve()) for it in self.shared],
            "readable": [*_real(readable)],
            "writable": [*_real(writable)],
            "limits": LIMITS,
        }
        return isolated_command("threadkeep.mcp.confine", json.dumps(confinement))

    def _hidden(self) -> Iterator[Path]:
        home = Path("~").expanduser()
        for path in (*self.hidden, *(home / it for it in _CREDENTIALS), *map(Path, _OF_THE_SYSTEM)):
            if (real := path.resolve()).exists():
                yield real


def _real(folders: Sequence[Path]) -> Iterator[str]:
    """Real paths of folders. Skips one that is a link: a program may have put it there."""
    for folder in folders:
        if not folder.is_symlink():
            yield str(folder.parent.resolve() / folder.name)


OPEN = Sandbox()
"""No sandbox."""
