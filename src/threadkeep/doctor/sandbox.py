"""Whether MCP servers' programs are confined: runs one in the sandbox that tries to get out."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from threadkeep.bootstrap import build_server_environment
from threadkeep.doctor.finding import Finding
from threadkeep.mcp.confine import landlock_version
from threadkeep.mcp.sandbox import NONE, Sandbox, sandbox_kind
from threadkeep.retrieval.process import isolated_command
from threadkeep.settings import PREFIX, Settings

PROBE_S = 30.0
UPGRADE = (
    "Use Linux 5.13 or later with Landlock, or install bubblewrap (bwrap). Until then, only let people add "
    "programs that you would trust with this account."
)


async def check_sandbox(settings: Settings) -> Finding:
    """Runs a program in the sandbox that tries to read the data, and to write where it may not."""
    if settings.mcp_sandbox == "off":
        message = "Off: programs of MCP servers have all the rights of this account."
        return Finding("sandbox", "warning", message, f"Set {PREFIX}MCP_SANDBOX to auto or require.")
    kind = await asyncio.to_thread(sandbox_kind)
    if kind is None:
        verdict = "problem" if settings.mcp_sandbox == "require" else "warning"
        return Finding("sandbox", verdict, NONE, UPGRADE)
    with TemporaryDirectory(prefix="threadkeep-doctor-") as folder:
        sandbox = build_server_environment(settings, settings.workspaces).sandbox
        is_in = await _try(sandbox, settings.data.absolute(), Path(folder))
    named = f"Landlock {landlock_version()}" if kind == "landlock" else "bubblewrap"
    if not is_in:
        return Finding(
            "sandbox", "problem", f"{named} doesn't keep programs away from Threadkeep's data.", UPGRADE
        )
    return Finding("sandbox", "ok", f"{named} keeps programs of MCP servers away from Threadkeep's data.")


async def _try(sandbox: Sandbox, data: Path, folder: Path) -> bool:
    hidden, own = folder / "hidden", folder / "own"
    for made in (hidden, own):
        made.mkdir()
    (hidden / "file").touch()
    words = replace(sandbox, hidden=(*sandbox.hidden, hidden)).wrapper(writable=[own])
    paths = (hidden / "file", data, own / "file", folder / "outside")
    process = await asyncio.create_subprocess_exec(
        *(*words, *isolated_command("threadkeep.mcp.escape", *map(str, paths))),
        stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, cwd=own,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PROBE_S):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        return False
    return output.strip() == b"in"
