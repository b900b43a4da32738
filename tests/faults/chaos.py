"""A server that is killed, stopped and ended at random while people talk, for as long as one likes.

    python -m tests.faults.chaos MINUTES [SEED]

Each person has turns with tools, a question or an approval, and a message in the queue, over whatever lives
the server has. In the end everything must be as the docs promise. The seed decides what happens to the server
and when; it is printed, so that it can be tried again.
"""

import asyncio
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.faults.scene import (
    Away,
    Person,
    agent_settings,
    check_end,
    check_status,
    converse,
    desk,
    kinds,
    paced_reply_to,
)
from tests.serving import Server
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel, ToolServer

T = TypeVar("T")

PEOPLE = 6
HEARD = "Heard."
ASK_FIRST: dict[str, Any] = {"tools": {"desk.note": {"access": "ask"}}}


def reply_to(request: Recorded) -> Reply:
    """The model answers what was queued in a word."""
    asked = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
    return [Say(HEARD)] if "Queued" in str(asked[-1]) else paced_reply_to(request)


class Chaos:
    """The server, what happens to it, and those who talk to it."""

    def __init__(self, folder: Path, model: ScriptedModel, tools: ToolServer, seed: int) -> None:
        self._folder = folder
        self._model = model
        self._tools = tools
        self._chance = random.Random(seed)
        self._up = asyncio.Event()
        self._server: Server | None = None
        self._url = ""
        self._is_over = False
        self.counts: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        """Lets everything happen for so long; then all come to their ends, and are right."""
        await self._start()
        over_at = time.monotonic() + seconds
        async with asyncio.TaskGroup() as people:
            for number in range(PEOPLE):
                people.create_task(self._live(number))
            while time.monotonic() < over_at:
                await asyncio.sleep(self._chance.uniform(0.5, 8))
                await self._disturb()
            self._is_over = True
        assert self._server
        self._server.stop()

    async def _start(self) -> None:
        settings = {
            "gateway": "openai",
            "gateway_url": self._model.url,
            "gateway_api_key": "sk-scripted",
            "model": "scripted",
            "mcp_allow_private": "true",
            "embedding_url": "off",
        }
        self._server = await asyncio.to_thread(Server, self._folder, **settings)
        self._url = self._server.url
        self._up.set()

    async def _disturb(self) -> None:
        assert self._server
        what = self._chance.choice(["SIGKILL", "SIGKILL", "SIGTERM", "SIGSTOP"])
        self.counts[what] += 1
        print(f"{what}, {dict(self.counts)}", flush=True)
        if what == "SIGSTOP":
            self._server.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(self._chance.uniform(0.1, 8))
            self._server.process.send_signal(signal.SIGCONT)
            return
        self._up.clear()
        self._server.process.send_signal(getattr(signal, what))
        await asyncio.to_thread(self._server.wait)
        await self._start()

    async def _live(self, number: int) -> None:
        """One conversation after the other."""
        agents = [await self._agent(it) for it in ({}, ASK_FIRST)]
        for turn in count():
            if self._is_over:
                return
            # A message to a turn that already waits for its user would end it: only the other agent gets one.
            await self._converse(agents[turn % 2], f"{number}-{turn}", is_queued=turn % 4 == 0)

    async def _agent(self, settings: dict[str, Any]) -> str:
        return await self._try(lambda http: converse(http, agent_settings(self._tools, **settings)))

    async def _converse(self, agent: str, about: str, *, is_queued: bool) -> None:
        person = await self._try(lambda http: Person.meet(http, agent, about))
        await self._try(person.begin)
        if is_queued:
            await self._try(lambda http: queue(http, person))
        while not person.is_done:  # a stream may end with its server, in good order
            await self._try(person.talk)
        await self._check(person, is_queued=is_queued)

    async def _try(self, work: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
        """Does something, over as many lives of the server as it takes."""
        while True:
            await self._up.wait()
            try:
                async with httpx.AsyncClient(base_url=self._url, trust_env=False, timeout=30) as http:
                    return await work(http)
            except (httpx.HTTPError, Away):
                await asyncio.sleep(0.1)

    async def _check(self, person: Person, *, is_queued: bool) -> None:
        if person.seen[-1]["type"] == "error":
            assert person.seen[-1]["code"] == "INTERRUPTED", person.seen
            assert kinds(person.seen)["turn_resumed"], person.seen
            self.counts["given up after four losses"] += 1
            return
        try:
            if is_queued:
                await self._try(lambda http: check_queue(http, person))
            else:
                await self._try(lambda http: check_end(http, person, self._tools, self._model))
        except BaseException as exc:
            exc.add_note("\n".join(map(str, person.seen)))
            raise
        self.counts["turns"] += 1
        self.counts["takeovers"] += kinds(person.seen)["turn_resumed"]
        self.counts["calls made again"] += kinds(person.seen)["iteration_restart"]


async def queue(http: httpx.AsyncClient, person: Person) -> None:
    """Sends a message behind the turn."""
    path = f"/api/conversations/{person.conversation}/messages"
    headers = {"Accept": "application/json", "Idempotency-Key": f"queued-{person.about}"}
    body = {"content": f"Queued behind {person.about}", "whenBusy": "queue"}
    check_status(await http.post(path, json=body, headers=headers), 202)


async def check_queue(http: httpx.AsyncClient, person: Person) -> None:
    """The queued message was sent once, after the turn had completed, and has its reply."""
    found: list[dict[str, Any]] = []
    for _ in range(600):
        response = await http.get(f"/api/conversations/{person.conversation}/messages?limit=200")
        check_status(response, 200)
        found = response.json()["items"]
        assert len(found) <= 4, found
        if len(found) == 4 and found[-1]["status"] == "COMPLETED":
            assert [it["role"] for it in found] == ["user", "assistant"] * 2
            assert found[-1]["content"] == HEARD
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"the queued message of {person.about} was not answered: {found}")


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**9)
    print(f"to try it again: python -m tests.faults.chaos {minutes:g} {seed}", flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedModel(otherwise=reply_to) as model,
        desk(0.1) as tools,
    ):
        chaos = Chaos(Path(folder), model, tools, seed)
        asyncio.run(chaos.run(minutes * 60))
        print(f"all is well: {dict(chaos.counts)}")


if __name__ == "__main__":
    main()
