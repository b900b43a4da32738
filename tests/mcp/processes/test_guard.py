"""No process of a server is left, whatever becomes of us."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.running import CHAOS, is_alive, until
from threadkeep.confined.isolated import isolated_command

OWNER = """
import asyncio, sys
from pathlib import Path
from tests.mcp.running import Limits, Pooled, chaos

async def main():
    here = Pooled(Path(sys.argv[1]), Limits(budget_s=60))
    await asyncio.gather(here.call(chaos(), "children"), here.tools(chaos("stubborn"), name="stubborn"))
    print("ready", flush=True)
    await asyncio.Event().wait()

if sys.argv[2] == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_nothing_is_left_of_servers_when_we_are_killed(tmp_path: Path, loop: str):
    command = [sys.executable, "-c", OWNER, str(tmp_path), loop]
    owner = subprocess.Popen(command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE)
    with owner:
        assert owner.stdout
        assert owner.stdout.readline() == b"ready\n"
        pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 4
        assert all(is_alive(pid) for pid in pids)
        owner.kill()
    asyncio.run(until(lambda: not any(is_alive(pid) for pid in pids)))


def test_server_ends_when_its_guard_is_killed(tmp_path: Path):
    """Nobody should do that; but a machine without memory may choose any process."""
    end, lifeline = os.pipe()
    process = subprocess.Popen(
        isolated_command("threadkeep.mcp.processes.guard", str(end), sys.executable, str(CHAOS), "silent"),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(end,),
        env=os.environ | {"CHAOS_PIDS": str(tmp_path / "pids")},
    )
    os.close(end)
    with process:
        noted = tmp_path / "pids"
        asyncio.run(until(lambda: noted.exists() and noted.read_text().endswith("\n")))
        server = int(noted.read_text())
        os.kill(process.pid, signal.SIGKILL)
        asyncio.run(until(lambda: not is_alive(server)))
    os.close(lifeline)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 5"], 5),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-program"], 127),
    ],
)
def test_guard_ends_as_its_server_did(command: list[str], code: int):
    end, lifeline = os.pipe()
    ended = subprocess.run(
        isolated_command("threadkeep.mcp.processes.guard", str(end), *command),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(end,),
        check=False,
    )
    assert ended.returncode == code
    os.close(end)
    os.close(lifeline)
