"""`search_history`: lets the model search the messages that a summary replaces."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.ids import ConversationId
from threadkeep.domain.mcp import HISTORY
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.domain.text import storable
from threadkeep.domain.times import time_in
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.tools import Caller, Progress, Returned, Tool
from threadkeep.search.query import Query, read_query
from threadkeep.search.reading import first_places, terms_of
from threadkeep.storage.store import Store

MOST_QUERY_CHARACTERS = 500
MOST_FOUND = 20
MOST_SEARCHED = 20_000
MESSAGES_A_PAGE = 500
# Of a longer message only the beginning is searched, as across conversations; of a history, the newest.
MOST_CHARACTERS = 20_000
MOST_CHARACTERS_SEARCHED = 4_000_000
EXCERPT_CHARACTERS = 600
TIMEOUT_S = 30.0

SEARCH_HISTORY = Tool(
    HISTORY,
    "search_history",
    "Search the older messages of this conversation, of which you only have the summary. Use it when you "
    "need the exact words, numbers or details of what was said before.",
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "A few words that the message holds, in the language in which it was said.",
                "maxLength": MOST_QUERY_CHARACTERS,
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": 5},
        },
        "required": ["query"],
    },
    TIMEOUT_S,
    is_own=True,
    effect=ToolEffect.READ,
)


class HistoryServer:
    """The archived messages of the running turn's conversation, and of no other."""

    name = HISTORY

    def __init__(self, store: Store) -> None:
        self._store = store

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """The same for every agent."""
        return (SEARCH_HISTORY,)

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """The tool, if something is archived and the model has its summary."""
        had_archived = caller.conversation.archived_to_seq
        return (SEARCH_HISTORY,) if had_archived and await self._archived_to(caller) else ()

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Searches."""
        query, limit = arguments.get("query"), arguments.get("limit", 5)
        if name != SEARCH_HISTORY.name:
            yield Returned("error", error=f"Tool {name!r} not found.")
        elif not isinstance(query, str) or not read_query(query[:MOST_QUERY_CHARACTERS]):
            yield Returned("error", error="`query` must be a string of words to look for.")
        elif not isinstance(limit, int) or not 1 <= limit <= MOST_FOUND:
            yield Returned("error", error=f"`limit` must be a number from 1 to {MOST_FOUND}.")
        else:
            found = await self._search(caller, read_query(storable(query[:MOST_QUERY_CHARACTERS])), limit)
            yield Returned("ok", {"messages": found}, query=query)

    async def _archived_to(self, caller: Caller) -> int:
        conversation = await self._store.conversations.get(caller.user.id, caller.conversation.id)
        return conversation.archived_to_seq if conversation else 0

    async def _search(self, caller: Caller, query: Query, limit: int) -> list[dict[str, Any]]:
        """The messages that contain the most words; of equals, the newest."""
        best: list[tuple[float, int, Message]] = []
        left = MOST_CHARACTERS_SEARCHED
        async for page in self._pages(caller.conversation.id, await self._archived_to(caller)):
            best += await _scored(page, query)
            best = sorted(best, key=lambda it: it[:2], reverse=True)[:limit]
            left -= sum(len(_text(message)) for message in page)
            if left <= 0:
                break
        return [await _shown(message, query) for _, _, message in best]

    async def _pages(
        self, conversation_id: ConversationId, archived_to: int
    ) -> AsyncGenerator[Sequence[Message]]:
        before = archived_to + 1
        for _ in range(MOST_SEARCHED // MESSAGES_A_PAGE):
            window = MessageWindow(before_seq=before, newest_first=True)
            page = await self._store.messages.page(conversation_id, window, offset=0, limit=MESSAGES_A_PAGE)
            if not page:
                return
            yield page
            before = page[-1].seq


async def _scored(page: Sequence[Message], query: Query) -> list[tuple[float, int, Message]]:
    held = [(query.count_in(await terms_of(_text(message))), message) for message in page]
    return [(count / query.length, message.seq, message) for count, message in held if count]


def _text(message: Message) -> str:
    content = message.content
    return (content if isinstance(content, str) else content.text)[:MOST_CHARACTERS]


async def _shown(message: Message, query: Query) -> dict[str, Any]:
    text = _text(message)
    places = await first_places(text, query, within=1)
    first = places[0][0] if places else 0
    begin = max(0, min(first - EXCERPT_CHARACTERS // 4, len(text) - EXCERPT_CHARACTERS))
    excerpt = text[begin : begin + EXCERPT_CHARACTERS]
    at = time_in(message.created_at)
    return {
        "number": message.seq,
        "role": str(message.role),
        "at": f"{at:%Y-%m-%d %H:%M}",
        "text": f"{'…' * (begin > 0)}{excerpt}{'…' * (begin + len(excerpt) < len(text))}",
    }
