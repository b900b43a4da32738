"""Drives chats of the real package `ai` in node."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from tests.clients import node
from tests.clients.node import Driver

PACKAGES = Path(__file__).parent / "node"
PROGRAM = Path(__file__).with_suffix(".mjs")

Json = dict[str, Any]


def driving() -> AbstractAsyncContextManager[Driver]:
    """A node with the packages; a command returns what the chat shows afterwards."""
    return node.driving(PROGRAM, PACKAGES)


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
