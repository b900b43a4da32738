"""Threadkeep on a real port within the test's own loop, talking to a scripted model."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from threadkeep import Settings, create_app
from threadkeep.client.blocking import LoopThread
from threadkeep.http.app import Threadkeep
from threadkeep.http.sign_in.local_token import make_token
from threadkeep.storage.store import Store
from threadkeep.testing import listening

JSON = {"Accept": "application/json"}


@dataclass(frozen=True)
class Talk:
    """A running Threadkeep, and the user `local`'s client to it."""

    app: Threadkeep
    store: Store
    url: str
    client: httpx.AsyncClient

    async def conversation(self, **agent: Any) -> str:
        """A new conversation with a new agent."""
        return await self._start({}, agent)

    async def titled_conversation(self, **agent: Any) -> str:
        """One that has a title already: the model is not asked for one, only for the replies."""
        return await self._start({"title": "About that"}, agent)

    async def _start(self, conversation: dict[str, Any], agent: dict[str, Any]) -> str:
        made = await self.client.post("/api/agents", json={"name": "Advisor", **agent})
        path = f"/api/agents/{made.json()['id']}/conversations"
        return (await self.client.post(path, json=conversation)).json()["id"]

    async def ask(self, conversation_id: str, content: str = "Why?") -> dict[str, Any]:
        """Sends a message and waits for the finished reply."""
        path = f"/api/conversations/{conversation_id}/messages?wait=true"
        return (await self.client.post(path, json={"content": content}, headers=JSON)).json()

    async def begin(self, conversation_id: str, content: str = "Why?") -> str:
        """Sends a message and gives the turn's id at once."""
        path = f"/api/conversations/{conversation_id}/messages"
        response = await self.client.post(path, json={"content": content}, headers=JSON)
        assert response.status_code == 202, response.text
        return response.json()["turnId"]

    async def events(self, turn_id: str, after: int | None = None) -> list[dict[str, Any]]:
        """All events of a turn after a number, until it has ended."""
        return [event async for event in self.follow(turn_id, after)]

    async def follow(self, turn_id: str, after: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """The events of a turn as they come."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        async with self.client.stream("GET", f"/api/turns/{turn_id}/events", headers=headers) as response:
            async for event in parse(response):
                yield event

    async def messages(self, conversation_id: str) -> list[dict[str, Any]]:
        """The messages of a conversation, overwritten ones included."""
        path = f"/api/conversations/{conversation_id}/messages?include=overwritten&limit=200"
        return (await self.client.get(path)).json()["items"]


async def parse(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The events of a stream in the `events` dialect, each checked against its SSE id and event lines."""
    head: dict[str, str] = {}
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "data":
            event = msgspec.json.decode(value)
            assert head == {"id": str(event["seq"]), "event": event["type"]}
            yield event
        elif name in {"id", "event"}:
            head[name] = value


@asynccontextmanager
async def talking(settings: Settings) -> AsyncGenerator[Talk]:
    """Threadkeep with these settings, on a free port."""
    app = create_app(settings)
    signed = {} if settings.signs_in else {"Authorization": f"Bearer {make_token(settings.data)}"}
    async with (
        app.lifespan(),
        listening(app, lifespan="off") as url,
        httpx.AsyncClient(base_url=url, headers=signed, timeout=30, verify=False) as client,
    ):
        yield Talk(app, (await app.services()).store, url, client)


@contextmanager
def talking_aside(settings: Settings) -> Generator[Talk]:
    """The same in a thread of its own, for tests that wait for programs without a loop."""
    begun: Future[Talk] = Future()
    over = asyncio.Event()

    async def serve() -> None:
        async with talking(settings) as talk:
            begun.set_result(talk)
            await over.wait()

    with closing(LoopThread()) as thread:
        serving = thread.start(serve())
        serving.add_done_callback(lambda ended: begun.done() or begun.set_exception(_reason(ended)))
        yield begun.result()
        thread.loop.call_soon_threadsafe(over.set)
        serving.result()


def _reason(ended: "Future[None]") -> BaseException:
    return ended.exception() or RuntimeError("The server did not begin.")
