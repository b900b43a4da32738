"""The sandbox for programs of MCP servers: they see their agent's folder, not Threadkeep's or the user's.

bubblewrap gives a program its own devices and hides folders and sockets; Landlock, in the kernel since Linux
5.13, limits what it writes and which ports it reaches. Where a machine has both, both are used.
"""

import functools
import json
import logging
import os
import pwd
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from threadkeep.confined.isolated import CODE, isolated_command
from threadkeep.confined.landlock import landlock_version
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.processes import confine
from threadkeep.mcp.processes.own_ports import own_ports

log = logging.getLogger("threadkeep.mcp")

Mode = Literal["auto", "require", "off"]
Kind = Literal["bubblewrap", "landlock"]

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

PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108 - hidden, because others keep files and sockets there
# Secrets of the system, and sockets of services that start programs outside the sandbox on request.
_OF_THE_SYSTEM = (
    "/run/secrets", "/run/credentials", "/run/user", "/run/dbus", "/run/docker.sock", "/run/containerd",
    "/run/podman", "/run/screen", "/run/postgresql",
)  # fmt: skip
# Where people have their interpreters and tools, relative to the home folder.
_TOOLS = (
    ".asdf", ".bun", ".cargo/bin", ".deno/bin", ".fnm", ".linuxbrew", ".local/bin", ".local/lib",
    ".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/uv", ".nodenv", ".npm-global", ".nvm", ".pyenv", ".rbenv", ".rustup/toolchains", ".volta",
    "anaconda3", "go/bin", "mambaforge", "miniconda3", "miniforge3",
)  # fmt: skip
# Where the whole machine would be closed to programs that call any other.
_OPEN_PORTS = (80, 443)


@functools.cache
def sandbox_kinds() -> tuple[Kind, ...]:
    """What this machine has, in the order in which it is applied."""
    kinds: list[Kind] = []
    if confine.has_bubblewrap():
        kinds.append("bubblewrap")
    if landlock_version():
        kinds.append("landlock")
    if not kinds:
        log.warning("%s They run with all the rights of this account.", NONE)
    return tuple(kinds)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How the operator's settings confine programs."""

    mode: Mode = "off"
    hidden: Sequence[Path] = ()
    """Our own folders and files."""
    shared: Sequence[Path] = ()
    """Where programs may write besides their own folders."""
    shown: Sequence[Path] = ()
    """What programs may read although it is hidden, such as a folder in the home folder."""
    closes_ports: bool = False
    """Whether our own ports are closed to programs."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """How programs are confined; LinkBroken if they must be and can't."""
        if self.mode == "off":
            return ()
        kinds = sandbox_kinds()
        if not kinds and self.mode == "require":
            raise LinkBroken(f"{NONE} The operator requires one (THREADKEEP_MCP_SANDBOX).")
        return kinds

    def wrapper(
        self,
        command: str = "",
        path: str | None = None,
        *,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
    ) -> tuple[str, ...]:
        """The arguments before a command that confine it; it may use these folders inside hidden ones.

        `path` is where the command and what it calls are looked for.
        """
        if self.mode == "off":
            return ()
        confinement = {
            "kinds": self.kinds,
            "hidden": sorted(map(str, self._hidden())),
            "private": [it for it in PRIVATE if Path(it).is_dir()],
            "shared": [str(it.resolve()) for it in self.shared],
            "readable": [*_real(readable), *sorted(map(str, self._shown(command, path)))],
            "writable": [*_real(writable)],
            "ports": sorted({*own_ports()} - {*_OPEN_PORTS}) if self.closes_ports else [],
            "limits": LIMITS,
        }
        return isolated_command("threadkeep.mcp.processes.confine", json.dumps(confinement))

    def hides(self, file: Path, command: str = "", path: str | None = None) -> bool:
        """Whether a command can't see something that is there, unless it is in its own folder."""
        if not self.kinds or not file.exists():
            return False
        real = file.resolve()
        open_to_them = {it.resolve() for it in (*self.shared, *self._shown(command, path))}
        hidden = {*self._hidden(), *map(Path, PRIVATE)}
        nearest = next((it for it in (real, *real.parents) if it in open_to_them or it in hidden), None)
        return nearest in hidden and nearest not in open_to_them

    def _hidden(self) -> Iterator[Path]:
        for path in (*self.hidden, *_homes(), *map(Path, _OF_THE_SYSTEM)):
            if (real := path.resolve()).exists() and real != Path("/"):
                yield real

    def _shown(self, command: str, path: str | None) -> set[Path]:
        """What is visible although hidden folders contain it: what the operator names, tools, our code."""
        code = (CODE / "threadkeep", Path(sys.prefix), Path(sys.base_prefix))
        tools = (home / tool for home in _homes() for tool in _TOOLS)
        shown = {
            folder.resolve()
            for folder in (*self.shown, *code, *tools, *_tools_in(command, path))
            if folder.exists()
        }
        around = {*self._hidden(), *map(Path, PRIVATE)}
        return {it for it in shown if not around.isdisjoint((it, *it.parents))}


def _homes() -> set[Path]:
    """The home folder, by the environment and by the system's list of accounts."""
    homes = {Path.home()}
    with suppress(KeyError):  # an account that only a container knows
        homes.add(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return {it.resolve() for it in homes if it.is_absolute() and it.is_dir()} - {Path("/")}


def _tools_in(command: str, path: str | None) -> Iterator[Path]:
    """The folders in which programs are looked for, and what belongs to them."""
    for folder in map(Path, (path or "").split(os.pathsep)):
        if not folder.is_absolute() or folder.resolve() in _homes():
            continue
        yield folder
        if (folder.parent / "pyvenv.cfg").exists():
            yield folder.parent
        if folder.parent.name == "node_modules":
            yield folder.parent
    if (found := shutil.which(command, path=path) if command else None) is not None:
        yield Path(found).resolve()


def _real(folders: Sequence[Path]) -> Iterator[str]:
    """Real paths of folders. Skips one that is a link: a program may have put it there."""
    for folder in folders:
        if not folder.is_symlink():
            yield str(folder.parent.resolve() / folder.name)


OPEN = Sandbox()
"""No sandbox."""
