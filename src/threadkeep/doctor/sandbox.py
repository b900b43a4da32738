"""Whether MCP servers' programs, and our processes that read files, are confined: one tries to get out."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from threadkeep.bootstrap import build_server_environment
from threadkeep.confined.isolated import isolated_command
from threadkeep.confined.landlock import SINCE_PORTS, SINCE_SIGNALS, landlock_version
from threadkeep.doctor.finding import Finding
from threadkeep.mcp.processes.sandbox import NONE, Kind, Sandbox, sandbox_kinds
from threadkeep.settings import PREFIX, Settings

PROBE_S = 30.0
UPGRADE = (
    "Use Linux 5.13 or later with Landlock, or install bubblewrap (bwrap). Until then, only let people add "
    "programs that you would trust with this account."
)
NOT_SEEN = (
    "Programs in the sandbox don't see links in /tmp and in the home folder. Install Threadkeep with a "
    "Python that isn't reached through one."
)


async def check_sandbox(settings: Settings) -> Finding:
    """Runs a program in the sandbox that tries to read the data, and to write where it may not."""
    if settings.mcp_sandbox == "off":
        message = "Off: programs of MCP servers have all the rights of this account."
        return Finding("sandbox", "warning", message, f"Set {PREFIX}MCP_SANDBOX to auto or require.")
    kinds = await asyncio.to_thread(sandbox_kinds)
    if not kinds:
        verdict = "problem" if settings.mcp_sandbox == "require" else "warning"
        return Finding("sandbox", verdict, NONE, UPGRADE)
    with TemporaryDirectory(prefix="threadkeep-doctor-") as folder:
        sandbox = build_server_environment(settings, settings.workspaces).sandbox
        answer = await _try(sandbox, settings.data.absolute(), Path(folder))
    named = " and ".join(f"Landlock {landlock_version()}" if kind == "landlock" else kind for kind in kinds)
    if answer is None:
        return Finding("sandbox", "problem", f"{named}: a program that tests it didn't run.", NOT_SEEN)
    if answer == "out":
        return Finding(
            "sandbox", "problem", f"{named} doesn't keep programs away from Threadkeep's data.", UPGRADE
        )
    message = f"{named}: programs of MCP servers see neither Threadkeep's data nor the home folder."
    missing = [*_missing(kinds)]
    if not missing:
        return Finding("sandbox", "ok", message)
    return Finding("sandbox", "ok", f"{message} Not on this machine: {'; '.join(missing)}.")


def check_workers() -> Finding:
    """Whether the processes that read files are confined."""
    version = landlock_version()
    if not version:
        message = "This kernel has no Landlock: the processes that read files have this account's rights."
        return Finding("workers", "warning", message, "Use Linux 5.13 or later with Landlock.")
    network = "no network" if version >= SINCE_PORTS else "the network, which Linux 6.7 can close"
    return Finding("workers", "ok", f"The processes that read files see only their file, and have {network}.")


def _missing(kinds: Sequence[Kind]) -> Iterator[str]:
    """What the sandbox doesn't do here, and what it would take."""
    version = landlock_version()
    if "bubblewrap" not in kinds:
        yield "hiding sockets such as an SSH agent's, and other processes (install bubblewrap)"
    if "landlock" not in kinds or version < SINCE_PORTS:
        yield "closing Threadkeep's own ports (Linux 6.7); the token protects them"
    if "landlock" not in kinds or version < SINCE_SIGNALS:
        yield "keeping programs from abstract sockets (Linux 6.12)"


async def _try(sandbox: Sandbox, data: Path, folder: Path) -> Literal["in", "out"] | None:
    """Whether the program got out; None if it didn't run to its end."""
    hidden, own = folder / "hidden", folder / "own"
    for made in (hidden, own):
        made.mkdir()
    (hidden / "file").touch()
    words = replace(sandbox, hidden=(*sandbox.hidden, hidden)).wrapper(writable=[own])
    paths = (hidden / "file", data, own / "file", folder / "outside")
    process = await asyncio.create_subprocess_exec(
        *(*words, *isolated_command("threadkeep.mcp.processes.escape", *map(str, paths))),
        stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, cwd=own,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PROBE_S):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        return None
    if (folder / "outside").exists():
        return "out"
    answers: dict[bytes, Literal["in", "out"]] = {b"in": "in", b"out": "out"}
    return answers.get(output.strip())
