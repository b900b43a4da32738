"""The floor of the HTTP group: no framework, the same SQL, rows as dicts through the quickest encoder."""

import os
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import msgspec

from bench.contender import Floor
from bench.data import Dataset
from bench.databases import open_floor
from bench.floor_sql import AGENT, CONVERSATION, CONVERSATIONS, MESSAGES, names
from bench.sample import READER
from threadkeep.domain.ids import AgentId, ConversationId

DATABASE_VARIABLE = "BENCH_DATABASE_URL"
CONNECTIONS = 8

Message = MutableMapping[str, Any]

_CONVERSATION_NAMES, _MESSAGE_NAMES = names(CONVERSATIONS), names(MESSAGES)
_encode = msgspec.json.Encoder().encode


class Bare:
    """Answers three paths, as an ASGI application."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Floor] = []

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            nothing = Dataset(AgentId(""), ())
            self._idle = [await open_floor(self._url, nothing) for _ in range(CONNECTIONS)]
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        floor = self._idle.pop()
        try:
            body = _encode(await _answer(floor, scope["path"].split("/"), scope["query_string"]))
        finally:
            self._idle.append(floor)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _answer(floor: Floor, path: Sequence[str], query: bytes) -> object:
    match path:
        case ["", "api", "agents", agent_id, "conversation"]:
            await floor.fetch(AGENT, agent_id)
            (row,) = await floor.main(READER, AgentId(agent_id))
            return _named(_CONVERSATION_NAMES, row)
        case ["", "api", "conversations"]:
            limit = _limit(query)
            rows = await floor.conversations(READER, limit + 1)
            return _page(_CONVERSATION_NAMES, rows, limit)
        case ["", "api", "conversations", conversation_id, "messages"]:
            limit = _limit(query)
            await floor.fetch(CONVERSATION, conversation_id, READER)
            return _page(
                _MESSAGE_NAMES, await floor.latest(ConversationId(conversation_id), limit + 1), limit
            )
        case _:
            raise LookupError(path)


def _limit(query: bytes) -> int:
    return int(query.partition(b"limit=")[2].partition(b"&")[0])


def _page(columns: Sequence[str], rows: Sequence[Any], limit: int) -> object:
    return {"items": [_named(columns, row) for row in rows[:limit]], "nextCursor": None}


def _named(columns: Sequence[str], row: Any) -> dict[str, Any]:
    return dict(zip(columns, row, strict=True))


def create_app() -> Bare:
    """The application on the database that the environment names."""
    return Bare(os.environ[DATABASE_VARIABLE])
