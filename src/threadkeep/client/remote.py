"""A Threadkeep over HTTP, as far as the terminal needs one."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import msgspec

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.ids import new_uuid
from threadkeep.gateways.sse import EventReader
from threadkeep.settings import is_loopback

Json = dict[str, Any]

HEALTH_S = 1.0
SILENCE_S = 60.0  # a stream that lives has a heartbeat every 15 s
MOST_TRIES = 5
PAUSE_S = 1.0
ENDS = {"done", "error"}


class RemoteError(ThreadkeepError):
    """The server refused or does not answer; says why."""


class Remote:
    """A running Threadkeep and who we are to it."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        try:
            self._client = httpx.AsyncClient(
                base_url=url,
                headers={"Authorization": f"Bearer {token}"} if token else {},
                timeout=httpx.Timeout(SILENCE_S, connect=5),
                trust_env=not is_loopback(httpx.URL(url).host),
            )
        except (httpx.InvalidURL, ValueError) as exc:
            raise RemoteError(f"{url!r} is not an address like http://127.0.0.1:8710.") from exc

    async def is_there(self) -> bool:
        """Whether a Threadkeep answers at all."""
        try:
            answer = await self._client.get("/healthz", timeout=HEALTH_S)
            return answer.status_code == 200 and "threadkeep-version" in answer.headers
        except httpx.HTTPError:
            return False

    async def agent(self, name: str | None) -> Json:
        """The agent of this name, one's own before others'; without a name the default one."""
        found: list[Json] = []
        cursor: str | None = None
        while True:
            page = await self._call("GET", "/api/agents", limit=200, **{"cursor": cursor} if cursor else {})
            found += page["items"]
            cursor = page["nextCursor"]
            if cursor is None:
                break
        if name is None:
            return next(agent for agent in found if agent["isDefault"])
        named = [agent for agent in found if agent["name"].casefold() == name.casefold()]
        if not named:
            known = ", ".join(sorted({agent["name"] for agent in found}))
            raise RemoteError(f"There is no agent named {name!r}. There are: {known}.")
        return next((agent for agent in named if "ownerId" in agent), named[0])

    async def main_conversation(self, agent: Json) -> Json:
        """The main conversation with an agent."""
        return await self._call("PUT", f"/api/agents/{agent['id']}/conversation")

    async def new_conversation(self, agent: Json) -> Json:
        """A further one; the main one again where the agent has no others."""
        return await self._call("POST", f"/api/agents/{agent['id']}/conversations")

    async def say(self, conversation: Json, content: str) -> AsyncGenerator[Json]:
        """Sends a message; the events of the turn until it has ended, also where the connection breaks."""
        path = f"/api/conversations/{conversation['id']}/messages"
        asking: Json = {"json": {"content": content}, "headers": {"Idempotency-Key": new_uuid()}}
        method, tries = "POST", 0
        while True:
            tries += 1
            try:
                async with self._client.stream(method, path, **asking) as answer:
                    await _check(answer)
                    if "location" in answer.headers:
                        path = f"{answer.headers['location']}/events"
                    async for event in _events(answer):
                        method, tries = "GET", 0
                        asking = {"headers": {"Last-Event-ID": str(event["seq"])}}
                        yield event
                        if event["type"] in ENDS:
                            return
            except httpx.HTTPError as exc:
                if tries >= MOST_TRIES:
                    raise self._away() from exc
            if tries >= MOST_TRIES:
                raise self._away()
            await asyncio.sleep(PAUSE_S if tries else 0)

    async def abort(self, conversation: Json) -> None:
        """Stops the turn that runs in a conversation."""
        await self._call("POST", f"/api/conversations/{conversation['id']}/abort")

    async def close(self) -> None:
        """Lets go of connections."""
        await self._client.aclose()

    async def _call(self, method: str, path: str, **query: Any) -> Json:
        try:
            answer = await self._client.request(method, path, params=query)
            await _check(answer)
            return answer.json()
        except httpx.HTTPError as exc:
            raise self._away() from exc
        except ValueError as exc:
            raise RemoteError(f"What answers at {self._url} is no Threadkeep.") from exc

    def _away(self) -> RemoteError:
        return RemoteError(f"Threadkeep at {self._url} does not answer.")


async def _check(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    await answer.aread()
    try:
        error = answer.json()["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError) as exc:
        raise RemoteError(f"The server answered with status {answer.status_code}.") from exc
    if code == "UNAUTHENTICATED":
        message += " Give a token with --token; `threadkeep token --user NAME` makes one."
    raise RemoteError(message)


async def _events(answer: httpx.Response) -> AsyncGenerator[Json]:
    reader = EventReader()
    async for piece in answer.aiter_bytes():
        for event in reader.feed(piece):
            yield msgspec.json.decode(event.data)
