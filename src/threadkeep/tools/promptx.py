"""PromptX: an agent adopts its role, and remembers. Three tools, and two ways to reach them.

`PromptX` is what the tools do. `PromptXServer` offers them to the turns of this process, and
`promptx_stdio.py` to any MCP client, as `threadkeep mcp promptx`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import InvalidRequest, RoleNotFound
from threadkeep.domain.ids import MemoryId, new_uuid
from threadkeep.domain.mcp import PROMPTX
from threadkeep.domain.memory import MOST_CHARACTERS, Memory
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import storable
from threadkeep.domain.times import time_in
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.roles import Role, Roles
from threadkeep.ports.tools import Caller, Progress, Returned, Tool
from threadkeep.storage.memories import SqlMemories
from threadkeep.tools.recollection import Words, find

MOST_MEMORIES = 1000
MOST_RECALLED = 10
MOST_QUERY_CHARACTERS = 1000
TIMEOUT_S = 30.0


def _tool(
    name: str, description: str, effect: ToolEffect, required: Sequence[str], **properties: Mapping[str, Any]
) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(PROMPTX, name, description, schema, TIMEOUT_S, is_own=True, effect=effect)


TOOLS = (
    _tool(
        "promptx_action",
        "Take on a role: gives who you are in it, how you work and what you know. Do this before your first "
        "answer and follow what it says from then on.",
        ToolEffect.READ,
        ["role"],
        role={"type": "string", "description": "The role's id, such as `assistant`."},
    ),
    _tool(
        "promptx_recall",
        "Recall what you have remembered about this user in earlier conversations: preferences, facts, "
        "decisions. Without a query it gives the newest memories.",
        ToolEffect.READ,
        [],
        query={
            "type": "string",
            "description": "What you want to know, in a few words of the language in which it was said.",
            "maxLength": MOST_QUERY_CHARACTERS,
        },
    ),
    _tool(
        "promptx_remember",
        "Remember something about this user for later conversations: a lasting preference, a fact, a "
        "decision. One thing in one sentence; no passwords or other secrets.",
        ToolEffect.IDEMPOTENT,  # a memory replaces one with the same content
        ["content"],
        content={"type": "string", "description": "What to remember.", "maxLength": MOST_CHARACTERS},
        tags={"type": "string", "description": "A few words to file it under, separated by spaces."},
    ),
)


class Notebook(Protocol):
    """What one agent remembers about one user."""

    async def add(self, memory: Memory) -> None:
        """Adds a memory."""
        ...

    async def latest(self) -> Sequence[Memory]:
        """The memories, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class PromptX:
    """What the three tools do, for one agent and one user."""

    read_role: Callable[[str], Awaitable[Role]]
    notebook: Notebook
    words: Words
    clock: Callable[[], int]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Returned:
        """Runs a tool; an error in a call is its result, so that the model can fix it."""
        try:
            match name:
                case "promptx_action":
                    return await self._action(_text(arguments, "role"))
                case "promptx_recall":
                    return await self._recall(_text(arguments, "query", default=""))
                case "promptx_remember":
                    tags = _text(arguments, "tags", default="")
                    return await self._remember(
                        _text(arguments, "content"), tuple(dict.fromkeys(tags.split()))
                    )
                case _:
                    return Returned("error", error=f"Tool {name!r} not found.")
        except (InvalidRequest, RoleNotFound) as exc:
            return Returned("error", error=exc.message)

    async def _action(self, role_id: str) -> Returned:
        role = await self.read_role(role_id)
        missing = f"\n\nMissing in this role: {', '.join(role.missing)}." if role.missing else ""
        return Returned("ok", f"You are now in the role {role.id} ({role.title}).\n\n{role.text}{missing}")

    async def _recall(self, query: str) -> Returned:
        memories = await self.notebook.latest()
        # Tokenising up to a thousand memories would block the event loop.
        found = await asyncio.to_thread(
            find, query[:MOST_QUERY_CHARACTERS], memories, self.words, most=MOST_RECALLED
        )
        hits = tuple(RetrievalHit("memory", it.content, round(score, 3), it.id) for it, score in found)
        return Returned("ok", {"memories": [_shown(memory) for memory, _ in found]}, query=query, hits=hits)

    async def _remember(self, content: str, tags: tuple[str, ...]) -> Returned:
        memory = Memory(MemoryId(new_uuid()), content.strip(), tags, self.clock())
        await self.notebook.add(memory)
        return Returned("ok", {"remembered": _shown(memory)})


class PromptXServer:
    """The tools of PromptX in this process."""

    name = PROMPTX

    def __init__(self, roles: Roles, memories: SqlMemories, words: Words, clock: Callable[[], int]) -> None:
        self._roles = roles
        self._memories = memories
        self._words = words
        self._clock = clock

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """The same for every agent."""
        return TOOLS

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """All three, for everyone."""
        return TOOLS

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Runs a tool for the caller's agent and user."""
        promptx = PromptX(
            lambda role_id: self._roles.read(caller.agent, role_id),
            _StoredNotebook(self._memories, caller),
            self._words,
            self._clock,
        )
        yield await promptx.call(name, arguments)


@dataclass(frozen=True, slots=True)
class _StoredNotebook:
    """A notebook in the store."""

    memories: SqlMemories
    caller: Caller

    async def add(self, memory: Memory) -> None:
        await self.memories.add(self.caller.user.id, self.caller.agent.id, memory, most=MOST_MEMORIES)

    async def latest(self) -> Sequence[Memory]:
        return await self.memories.latest(self.caller.user.id, self.caller.agent.id, limit=MOST_MEMORIES)


def _text(arguments: Mapping[str, Any], name: str, *, default: str | None = None) -> str:
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise InvalidRequest(f"`{name}` must be a string.", param=name)
    return storable(value)


def _shown(memory: Memory) -> dict[str, Any]:
    at = time_in(memory.created_at)
    return {"content": memory.content, "tags": list(memory.tags), "at": f"{at:%Y-%m-%d}"}
