"""Real clients in node, driven by tests: one JSON command per line in, one answer per line out."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.mcp.npm import install
from threadkeep.testing.waiting import PATIENCE_S

MOST_LINE_BYTES = 64 * 1024 * 1024


class Driver:
    """A process that runs commands, several at once if need be."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())
        self._count = 0

    async def do(self, command: str, **options: Any) -> Any:
        """Runs a command to its end; what it returns."""
        self._count += 1
        answer = self._waiting[self._count] = asyncio.get_running_loop().create_future()
        assert self._process.stdin
        line = json.dumps({"command": command, "number": self._count, **options})
        self._process.stdin.write(f"{line}\n".encode())
        async with asyncio.timeout(PATIENCE_S):
            return await answer

    async def close(self) -> None:
        """Ends the process."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout
        async for line in self._process.stdout:
            answer = json.loads(line)
            waiting = self._waiting.pop(answer["number"])
            if waiting.done():
                continue
            if "error" in answer:
                waiting.set_exception(AssertionError(answer["error"]))
            else:
                waiting.set_result(answer["result"])
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(AssertionError("the driver has ended"))


@asynccontextmanager
async def driving(program: Path, packages: Path) -> AsyncGenerator[Driver]:
    """A program in node, with the packages that a lock file names."""
    installed = await asyncio.to_thread(install, packages)
    with TemporaryDirectory(prefix="clients-") as folder:
        # Node looks for packages beside the program.
        (Path(folder) / "node_modules").symlink_to(installed / "node_modules")
        process = await asyncio.create_subprocess_exec(
            str(installed / "bin" / "node"),
            shutil.copy(program, folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MOST_LINE_BYTES,
        )
        driver = Driver(process)
        try:
            yield driver
        finally:
            await driver.close()
