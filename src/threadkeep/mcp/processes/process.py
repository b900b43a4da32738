"""A tool server as a process: starts it, exchanges lines, and ends it with everything it has started."""

import asyncio
import contextlib
import json
import os
import shutil
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path

from threadkeep.confined.isolated import isolated_command
from threadkeep.confined.process import confined_environment
from threadkeep.mcp.processes import guard
from threadkeep.mcp.processes.confine import HELD
from threadkeep.mcp.processes.lines import CHUNK_BYTES, LongLine, ServerLog, read_lines

PATIENCE_S = 1.0
"""How long a server may take to end by itself once its stdin is closed."""

_GUARD_ENDS_S = guard.GRACE_S + guard.KILL_S + 2.0


class NotStarted(Exception):
    """The program could not be started; the message says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: a command without a shell, its whole environment, and its folder."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    wrapper: tuple[str, ...] = ()
    """Confines the command, then becomes it."""


def _environment(program: Program) -> dict[str, str]:
    """What the guard and the sandbox run with; without a sandbox, the program's own."""
    if not program.wrapper:
        return dict(program.env)
    own = confined_environment() | {"PATH": os.environ.get("PATH", os.defpath)}
    return own | {HELD: json.dumps(dict(program.env))}


class _Protocol(SubprocessStreamProtocol):
    """Reports the end of the process at once, even if another process still holds its streams."""

    def __init__(self) -> None:
        super().__init__(CHUNK_BYTES, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class ServerProcess:
    """A running server. Its lifeline is a pipe that only we hold: cut, the guard ends the server."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, protocol: _Protocol, lifeline: int, log: ServerLog
    ) -> None:
        assert protocol.stdin
        assert protocol.stdout
        assert protocol.stderr
        self._transport = transport
        self._protocol = protocol
        self._lifeline = lifeline
        self._stdin = protocol.stdin
        self._stdout = protocol.stdout
        self._logging = asyncio.create_task(log.follow(protocol.stderr))

    @staticmethod
    async def start(program: Program, log: ServerLog) -> "ServerProcess":
        """Starts a program, in its own process group, under a guard."""
        if shutil.which(program.command, path=program.env.get("PATH")) is None:
            raise NotStarted(f"The program `{program.command}` isn't installed on this machine.")
        words = (*program.wrapper, program.command, *program.args)
        end, lifeline = os.pipe()
        try:
            transport, protocol = await asyncio.get_running_loop().subprocess_exec(
                _Protocol,
                *isolated_command("threadkeep.mcp.processes.guard", str(end), *words),
                env=_environment(program),
                cwd=program.cwd,
                pass_fds=(end,),
                start_new_session=True,
            )
        except BaseException as exc:
            os.close(lifeline)
            if isinstance(exc, OSError):
                raise NotStarted(f"Couldn't start `{program.command}`: {exc.strerror}.") from exc
            raise
        finally:
            os.close(end)
        log.started()
        return ServerProcess(transport, protocol, lifeline, log)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, if it has ended: a number above 128 means a signal."""
        return self._transport.get_returncode()

    def lines(self) -> AsyncGenerator[bytes | LongLine]:
        """The server's output, line by line, until it has ended."""
        return read_lines(self._stdout)

    async def send(self, line: bytes) -> None:
        """Sends a line to the server; waits while the server does not read."""
        self._stdin.write(line + b"\n")
        await self._stdin.drain()

    async def close(self) -> None:
        """Ends the server: first by closing its stdin, as MCP requires, then by cutting its lifeline."""
        try:
            self._stdin.close()
            await self._wait_for_end(PATIENCE_S)
        finally:
            os.close(self._lifeline)
        try:
            await self._wait_for_end(_GUARD_ENDS_S)
        finally:
            # If even the guard hangs, this kills it, and the server with it.
            self._transport.close()
            self._logging.cancel()
            await asyncio.wait([self._logging])

    async def _wait_for_end(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._protocol.exited.wait()
