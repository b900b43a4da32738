"""`recall_result`: reads the result of an earlier tool call again, of which a request has only a part."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import msgspec

from threadkeep.domain.mcp import RESULTS
from threadkeep.domain.text import storable
from threadkeep.domain.tool_call import ToolCall
from threadkeep.ports.payloads import Lost
from threadkeep.ports.store import Store
from threadkeep.ports.tools import Caller, Outcome, Progress, Tool

MOST_ID_CHARACTERS = 200
MOST_QUERY_CHARACTERS = 200
MOST_CHARACTERS = 12_000
MOST_MATCHES = 20
AROUND_CHARACTERS = 200

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
)


class ResultsServer:
    """The results of the conversation in which a turn runs, and of no other."""

    name = RESULTS

    def __init__(self, store: Store) -> None:
        self._store = store

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """Always the same: a list that changed with what was shortened would change every request's start."""
        return (RECALL_RESULT,)

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Outcome]:
        """Reads a result."""
        id_, query, offset = arguments.get("id"), arguments.get("query"), arguments.get("offset", 0)
        if name != RECALL_RESULT.name:
            yield Outcome("error", error=f"There is no tool named {name!r}.")
        elif not isinstance(id_, str) or not id_:
            yield Outcome("error", error="`id` must be the id of a tool call.")
        elif not isinstance(offset, int) or offset < 0:
            yield Outcome("error", error="`offset` must be a number from 0 on.")
        elif query is not None and not isinstance(query, str):
            yield Outcome("error", error="`query` must be a text.")
        else:
            yield await self._recall(caller, id_[:MOST_ID_CHARACTERS], query, offset)

    async def _recall(self, caller: Caller, id_: str, query: str | None, offset: int) -> Outcome:
        call = await self._store.messages.tool_call(caller.conversation.id, storable(id_))
        if call is None:
            return Outcome("error", error=f"There is no tool call {id_!r} in this conversation.")
        text = await self._text(caller, call)
        if text is None:
            return Outcome("error", error="The result is no longer there.")
        # In a thread: a result may have millions of characters.
        found = await asyncio.to_thread(_matches, text, query) if query else _passage(text, offset)
        return Outcome("ok", {"id": id_, "tool": call.tool_name, "characters": len(text), **found})

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
    """A kept result as the text that the model saw: a string itself, anything else as JSON."""
    is_text = content[:1] == b'"'
    return msgspec.json.decode(content, type=str) if is_text else content.decode("utf-8", "replace")


def _passage(text: str, offset: int) -> dict[str, Any]:
    end = offset + MOST_CHARACTERS
    rest = {"nextOffset": end} if end < len(text) else {}
    return {"offset": offset, "text": text[offset:end], **rest}


def _matches(text: str, query: str) -> dict[str, Any]:
    """The first places where the query occurs, whatever its case, each with what is around it."""
    places: list[dict[str, Any]] = []
    last_end = 0
    for match in re.finditer(re.escape(query[:MOST_QUERY_CHARACTERS]), text, re.IGNORECASE):
        if match.start() < last_end:
            continue
        start, last_end = max(match.start() - AROUND_CHARACTERS, 0), match.end() + AROUND_CHARACTERS
        places.append({"offset": start, "text": text[start:last_end]})
        if len(places) == MOST_MATCHES:
            break
    return {"query": query, "matches": places}
