"""A turn's reply, read by every protocol: from its log or, without one, from its message."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import httpx
import msgspec

from tests.conftest import Api
from tests.http.calls import Json, items
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.user import User
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.agentx.cursor import Cursor
from threadkeep.protocols.agentx.frames import Envelope
from threadkeep.protocols.agentx.subscriptions import PollPace, SessionReader, Sessions
from threadkeep.protocols.dialects import DIALECTS
from threadkeep.protocols.mcp.turns import follow

ALICE = User(UserId("alice"))
ReadReply = Callable[[Api, httpx.AsyncClient, Json], Awaitable[bytes]]
"""Reads a conversation whose reply has very many parts, or sends to it; returns what came."""


def request(method: str, path: str, body: Json | None = None, *, status: int = 200) -> ReadReply:
    async def send(api: Api, client: httpx.AsyncClient, place: Json) -> bytes:
        content = msgspec.json.encode(body).decode() if body else ""
        for name, value in place.items():
            content = content.replace(f"{{{name}}}", value)
        response = await client.request(method, path.format(**place), content=content or None)
        assert response.status_code == status, response.text[:500]
        return response.content

    return send


async def session_of_agentx(api: Api, client: httpx.AsyncClient, place: Json) -> bytes:
    """A web socket continues to follow after the turn's first envelope."""
    sent: list[bytes] = []
    is_over = asyncio.Event()

    async def take(cursor: Cursor, envelope: Envelope) -> None:
        sent.append(envelope.json())
        if len(sent) % 100 == 0:  # as its queue, which has this room
            await asyncio.sleep(0)
        if b'"conversation_end"' in sent[-1]:
            is_over.set()

    async def fail(*_: object) -> None:
        raise AssertionError

    services = await api.app.services()
    conversation = await services.conversations.get(ALICE, place["id"])
    reader = SessionReader(send=take, fail=fail, move=fail, end=fail)
    sessions = Sessions(services.store, services.turns, PollPace())
    following = await sessions.follow(conversation, Cursor(TurnId(place["turn"]), 1, 0), reader)
    async with asyncio.timeout(60):
        await is_over.wait()
    await following.close()
    return b"".join(sent)


async def turn_of_mcp(api: Api, client: httpx.AsyncClient, place: Json) -> bytes:
    services = await api.app.services()
    told: list[str] = []

    async def report(seq: int, news: str) -> None:
        told.append(news)

    context = cast("RequestContext", SimpleNamespace(services=services, user=ALICE))
    await follow(context, await services.turns.get(ALICE, place["turn"]), report)
    return "".join(told).encode()


async def old_answer(api: Api, client: httpx.AsyncClient, place: Json) -> bytes:
    """What a client has received before its answer is looked for from the beginning."""
    services = await api.app.services()
    seen = await services.outside._seen_before(  # pyright: ignore[reportPrivateUsage]
        TurnId(place["turn"]), {"none"}
    )
    return str(seen).encode()


_ADDED: Json = {"items": [{"role": "user", "content": "Question"}, {"role": "user", "content": "new"}]}
_RUN: Json = {"threadId": "{id}", "runId": "r", "tools": [], "context": []}
_SAID = [
    {"id": "{asked}", "role": "user", "content": "Question"},
    {"id": "{reply}", "role": "assistant", "content": "done"},
    {"id": "new", "role": "user", "content": "And now?"},
]
_USED = [{**it, "parts": [{"type": "text", "text": it["content"]}]} for it in _SAID]
READS_OF_A_REPLY: dict[str, ReadReply] = {
    **{name: request("GET", f"/api/turns/{{turn}}/events?dialect={name}") for name in DIALECTS},
    "response": request("GET", "/v1/responses/{response}"),
    "streamed response": request("GET", "/v1/responses/{response}?stream=true"),
    "items": request("GET", "/v1/conversations/{id}/items"),
    "replay of a share": request("GET", "/api/shares/{token}/replays/2"),
    "MCP": turn_of_mcp,
    "history of the AI SDK": request("GET", "/api/ai-sdk/chat/{id}"),
    "connecting by AG-UI": request("POST", "/api/ag-ui/agent/default/connect", _RUN | {"messages": []}),
}
SENDS: dict[str, ReadReply] = {
    "sending by the AI SDK": request(
        "POST", "/api/ai-sdk/chat", {"id": "{id}", "messages": _USED}, status=409
    ),
    "sending by AG-UI": request(
        "POST", "/api/ag-ui/agent/default/run", _RUN | {"messages": _SAID}, status=409
    ),
    "added items": request("POST", "/v1/conversations/{id}/items", _ADDED),
}
FOLLOWS: dict[str, ReadReply] = {
    "input of a response": request("GET", "/v1/responses/{response}/input_items"),
    "items, oldest first": request("GET", "/v1/conversations/{id}/items?order=asc&limit=100"),
    "the rest for AgentX": request("GET", "/api/turns/{turn}/events?dialect=agentx&after={turn}:1:1"),
    "session of AgentX": session_of_agentx,
    "old answer": old_answer,
}


async def place_of(client: httpx.AsyncClient, conversation: Json) -> Json:
    """The ids of a conversation's only turn, and a share of it."""
    path = f"/api/conversations/{conversation['id']}"
    asked, reply = await items(client, f"{path}/messages")
    shared = await client.post(f"{path}/shares", json={"tools": True})
    return {
        "id": conversation["id"],
        "asked": asked["id"],
        "reply": reply["id"],
        "turn": reply["turnId"],
        "response": f"resp_{reply['turnId'].replace('-', '')}",
        "token": shared.json()["token"],
    }
