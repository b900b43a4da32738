"""`recall_result`: reads the result of an earlier tool call again if a request has only part of it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from threadkeep.domain.agent import Agent
from threadkeep.domain.mcp import RESULTS
from threadkeep.domain.message import Message
from threadkeep.domain.payload import Lost
from threadkeep.domain.text import storable
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.tools import Caller, Progress, Returned, Tool
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import SqlTurnLog

WrittenSoFar = Callable[[SqlTurnLog, Message], Awaitable[Message]]
"""Reads a reply in progress, as far as its turn's log goes."""

MOST_ID_CHARACTERS = 200
MOST_QUERY_CHARACTERS = 200
MOST_CHARACTERS = 12_000
MOST_MATCHES = 20
AROUND_CHARACTERS = 200

_PART_CHARACTERS = 64 * 1024

RECALL_RESULT = Tool(
    RESULTS,
    "recall_result",
    "Read the result of an earlier tool call in this conversation again, when you see only a part of it. "
    "Without a query it returns the text from an offset on; with one, the places where the query occurs.",
    {
        "type": "object",
        "properties": {
            "id": {
                "type": "string",
                "description": "The id of the call, as the shortened result names it.",
                "maxLength": MOST_ID_CHARACTERS,
            },
            "query": {
                "type": "string",
                "description": "Words to look for, exactly as they occur in the result.",
                "maxLength": MOST_QUERY_CHARACTERS,
            },
            "offset": {
                "type": "integer",
                "description": "Where to begin, in characters.",
                "minimum": 0,
                "default": 0,
            },
        },
        "required": ["id"],
    },
    timeout_s=30.0,
    is_own=True,
    effect=ToolEffect.READ,
)


class ResultsServer:
    """The results of the running turn's conversation, and of no other."""

    name = RESULTS

    def __init__(self, store: Store, written_so_far: WrittenSoFar) -> None:
        self._store = store
        self._written_so_far = written_so_far

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """The same for every agent."""
        return (RECALL_RESULT,)

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """Always the same: a list that depended on what was shortened would change every request's start."""
        return (RECALL_RESULT,)

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Reads a result."""
        id_, query, offset = arguments.get("id"), arguments.get("query"), arguments.get("offset", 0)
        if name != RECALL_RESULT.name:
            yield Returned("error", error=f"Tool {name!r} not found.")
        elif not isinstance(id_, str) or not id_:
            yield Returned("error", error="`id` must be a tool call id.")
        elif not isinstance(offset, int) or offset < 0:
            yield Returned("error", error="`offset` must be 0 or greater.")
        elif query is not None and not isinstance(query, str):
            yield Returned("error", error="`query` must be a string.")
        else:
            yield await self._recall(caller, id_[:MOST_ID_CHARACTERS], query, offset)

    async def _recall(self, caller: Caller, id_: str, query: str | None, offset: int) -> Returned:
        call = await self._find(caller, storable(id_))
        if call is None:
            return Returned("error", error=f"Tool call {id_!r} not found in this conversation.")
        text = await self._text(caller, call)
        if text is None:
            return Returned("error", error="The result is no longer available.")
        # In a thread: a result may have millions of characters.
        found = await asyncio.to_thread(find_places, text, query) if query else passage(text, offset)
        return Returned("ok", {"id": id_, "tool": call.tool_name, "characters": len(text), **found})

    async def _find(self, caller: Caller, id_: str) -> ToolCall | None:
        """A call of the running turn, or the conversation's newest before it."""
        reply_id = caller.conversation.tip_id
        if reply_id and (reply := await self._store.messages.get(caller.conversation.id, reply_id)):
            calls = (await self._written_so_far(self._store.log, reply)).tool_calls
            ended = (call for call in calls if call.status is not ToolCallStatus.RUNNING)
            if found := next((call for call in ended if call.tool_call_id == id_), None):
                return found
        return await self._store.messages.tool_call(caller.conversation.id, id_)

    async def _text(self, caller: Caller, call: ToolCall) -> str | None:
        if call.error is not None:
            return call.error
        ref = call.refs.get("result")
        if ref is None:
            return _as_text(call.result)
        content = (await self._store.payloads.load(caller.conversation.id, [ref]))[ref]
        return None if isinstance(content, Lost) else await asyncio.to_thread(_decoded, content)


def _as_text(result: Any) -> str:
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()


def _decoded(content: bytes) -> str:
    """A stored result as the text that the model saw: a string itself, anything else as JSON."""
    is_text = content[:1] == b'"'
    return msgspec.json.decode(content, type=str) if is_text else content.decode("utf-8", "replace")


def passage(text: str, offset: int) -> dict[str, Any]:
    """A text from an offset, as much as is returned at once."""
    end = offset + MOST_CHARACTERS
    rest = {"nextOffset": end} if end < len(text) else {}
    return {"offset": offset, "text": text[offset:end], **rest}


def find_places(text: str, query: str) -> dict[str, Any]:
    """The first places where the query occurs, ignoring case, each with its surroundings."""
    places: list[dict[str, Any]] = []
    last_end = 0
    for found in _occurrences(text, query[:MOST_QUERY_CHARACTERS]):
        if found < last_end:
            continue
        start, last_end = max(found - AROUND_CHARACTERS, 0), found + len(query) + AROUND_CHARACTERS
        places.append({"offset": start, "text": text[start:last_end]})
        if len(places) == MOST_MATCHES:
            break
    return {"query": query, "matches": places}


def _occurrences(text: str, query: str) -> Iterator[int]:
    """Where a query occurs, ignoring case. Searches in parts: each search holds the GIL."""
    sought = _without_case(query)
    for begin in range(0, len(text), _PART_CHARACTERS):
        part = _without_case(text[begin : begin + _PART_CHARACTERS + len(sought) - 1])
        found = part.find(sought)
        while found != -1:
            yield begin + found
            found = part.find(sought, found + len(sought))


def _without_case(text: str) -> str:
    """The text in lower case, each character in its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := it.lower()) == 1 else it for it in text)
