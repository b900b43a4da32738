"""A person of the chaos at whichever node answers, and what they keep of what they were shown."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from tests.chaos.seen import Answered, Record, SentMessage
from tests.chaos.world import World
from tests.faults.scene import ANSWERS, Away, Http, Person, check_status

T = TypeVar("T")

OVER = ("COMPLETED", "FAILED", "CANCELLED")
PAUSE_S = 0.2
GIVES_UP_S = 240.0
"""How long somebody tries one thing: much longer than any fault lasts."""


class Loss(Exception):
    """Something that was promised did not happen."""


@dataclass
class Follower(Person):
    """Follows one turn over all nodes; keeps what they answered."""

    user: str = ""
    record: Record | None = None
    on_progress: Callable[[], None] = lambda: None

    async def decide(self, http: Http) -> None:
        """Decides, and notes it."""
        before = set(self.decided)
        await super().decide(http)
        assert self.record is not None
        for request in self.seen:
            if request["type"] == "approval_request" and request["request_id"] in self.decided - before:
                action = ANSWERS[request["kind"]]["action"]
                answered = Answered(self.user, str(self.turn_id), request["request_id"], action, 200)
                self.record.answered.append(answered)

    async def _follow(self, http: Http) -> AsyncIterator[dict[str, Any]]:
        async for event in super()._follow(http):
            self.on_progress()
            yield event


@dataclass
class Somebody:
    """One user, with what they need to do anything: the servers, chance, and a record."""

    name: str
    world: World
    chance: random.Random
    record: Record
    agents: dict[str, str]
    progressed_at: float = field(default_factory=time.monotonic)
    doing: str = ""

    def note_progress(self) -> None:
        """They got on."""
        self.progressed_at = time.monotonic()

    async def tries(self, work: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
        """Does something at one node after the other, until one has done it."""
        last: BaseException | None = None
        try:
            async with asyncio.timeout(GIVES_UP_S):
                while True:
                    node = self.chance.choice(self.world.nodes)
                    try:
                        async with self.world.client(node, self.name) as http:
                            done = await work(http)
                        self.note_progress()
                        return done
                    except (httpx.HTTPError, Away) as exc:
                        last = exc
                        await asyncio.sleep(PAUSE_S)
        except TimeoutError:
            raise Loss(f"{self.name}: {self.doing} was not possible for {GIVES_UP_S} s: {last!r}") from last

    async def asks(self, method: str, path: str, *expected: int, **request: Any) -> dict[str, Any]:
        """Sends a request until it is answered as expected; what the response says."""

        async def ask(http: httpx.AsyncClient) -> dict[str, Any]:
            response = await http.request(method, path, **request)
            if "Retry-After" in response.headers:
                raise Away
            if response.status_code < 500 and response.status_code not in expected:
                raise Loss(f"{self.name}: {method} {path}: {response.status_code} {response.text[:500]}")
            check_status(response, *expected)
            return response.json() if response.content else {}

        return await self.tries(ask)

    async def meets(self, agent: str, about: str) -> Follower:
        """A new conversation."""
        made = await self.asks(
            "POST",
            f"/api/agents/{self.agents[agent]}/conversations",
            201,
            json={"title": about},
            headers={"Idempotency-Key": f"meet-{about}"},
        )
        return Follower(about, made["id"], user=self.name, record=self.record, on_progress=self.note_progress)

    async def sends(self, follower: Follower, text: str, **body: Any) -> dict[str, Any]:
        """Sends a message, with a key, until a node has taken it."""
        sent = SentMessage(f"{follower.about}/{text}", self.name, follower.conversation, text)
        self.record.sent.append(sent)
        response = await self.asks(
            "POST",
            f"/api/conversations/{follower.conversation}/messages",
            202,
            json={"content": text, **body},
            headers={"Accept": "application/json", "Idempotency-Key": sent.mark},
        )
        sent.acknowledged, sent.turn_id = True, response.get("turnId")
        return response

    async def begins(self, follower: Follower, text: str = "", **body: Any) -> None:
        """Begins a turn that they will follow."""
        sent = await self.sends(follower, text or f"Do it, for {follower.about}", **body)
        follower.turn_id = sent["turnId"]

    async def follows(self, follower: Follower) -> dict[str, Any]:
        """Follows a turn to its end, deciding on what it asks; its last event."""
        while not follower.is_done:
            await self.tries(follower.talk)
        self.record.streams[str(follower.turn_id)] = follower.seen
        return follower.seen[-1]

    async def messages(self, follower: Follower) -> list[dict[str, Any]]:
        """The conversation as it is shown now."""
        path = f"/api/conversations/{follower.conversation}/messages?limit=200"
        return (await self.asks("GET", path, 200))["items"]

    async def ended(self, turn_id: str) -> str:
        """How a turn ended, once it has."""

        async def look(http: httpx.AsyncClient) -> str:
            response = await http.get(f"/api/turns/{turn_id}")
            check_status(response, 200)
            status = response.json()["status"]
            if status not in OVER:
                raise Away
            return status

        return await self.tries(look)
