"""Drives chats of the real package `ai` in node."""

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

PACKAGES = Path(__file__).parent / "node"
PROGRAM = Path(__file__).with_suffix(".mjs")
MOST_LINE_BYTES = 64 * 1024 * 1024

Json = dict[str, Any]


class Driver:
    """A node process; a command returns what the chat shows afterwards."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())
        self._count = 0

    async def do(self, command: str, **options: Any) -> Any:
        """Runs a command to its end."""
        self._count += 1
        number = self._count
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin
        line = json.dumps({"command": command, "number": number, **options})
        self._process.stdin.write(f"{line}\n".encode())
        async with asyncio.timeout(PATIENCE_S):
            return await answer

    async def close(self) -> None:
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
                waiting.set_exception(AssertionError("node has ended"))


class Chat:
    """One chat of one version."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self._name = name

    async def do(self, command: str, **options: Any) -> Json:
        """Runs a command; what the chat shows after it."""
        return await self._driver.do(command, name=self._name, **options)

    async def say(self, text: str, **options: Any) -> Json:
        """Sends a message and reads the answer to its end."""
        return await self.do("send", text=text, **options)

    def begin(self, text: str, **options: Any) -> "asyncio.Task[Json]":
        """Sends a message."""
        return asyncio.create_task(self.say(text, **options))

    async def until(self, text: str, **options: Any) -> Json:
        """Waits until the last message says something."""
        return await self.do("until", text=text, **options)


@asynccontextmanager
async def driving() -> AsyncGenerator[Driver]:
    """A node with the packages, as the lock file says."""
    packages = await asyncio.to_thread(install, PACKAGES)
    with TemporaryDirectory(prefix="ai-sdk-") as folder:
        # Node looks for packages beside the program.
        (Path(folder) / "node_modules").symlink_to(packages / "node_modules")
        process = await asyncio.create_subprocess_exec(
            str(packages / "bin" / "node"),
            shutil.copy(PROGRAM, folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MOST_LINE_BYTES,
        )
        driver = Driver(process)
        try:
            yield driver
        finally:
            await driver.close()
