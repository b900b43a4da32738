"""Taking data along: what the commands `export`, `import` and `reassign` do."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from threadkeep.bootstrap import open_store
from threadkeep.domain.ids import UserId
from threadkeep.mcp.personal import hand_over
from threadkeep.ports.store import Store
from threadkeep.services import system_clock
from threadkeep.services.reassigning import reassign
from threadkeep.settings import Settings


async def reassign_user(settings: Settings, giver: UserId, receiver: UserId) -> int:
    """Makes everything of one user another's and says what that was."""
    async with _store(settings) as store:
        moved = await reassign(store, giver, receiver, system_clock(), alone=_is_alone(settings))
    left = hand_over(settings.workspaces, giver, receiver)
    print(
        f"{giver} → {receiver}: {_count(moved.conversations, 'conversation')}, "
        f"{_count(moved.agents, 'agent')}, {_count(moved.briefings, 'briefing')}, "
        f"{_count(moved.memories, 'memory', 'memories')}."
    )
    for conversation_id in moved.former_mains:
        print(
            f"Conversation {conversation_id} was a main one; {receiver} has a main one with this agent, "
            "so it is a further one now."
        )
    for folder in left:
        print(f"{folder} stays: {receiver} has a PromptX folder of that agent already.", file=sys.stderr)
    return 0


@asynccontextmanager
async def _store(settings: Settings) -> AsyncGenerator[Store]:
    """The store for writing; a data folder that a server uses is refused."""
    store = await open_store(settings)
    try:
        yield store
    finally:
        await store.close()


def _is_alone(settings: Settings) -> bool:
    """With SQLite the lock on the data folder tells that no server runs."""
    return settings.database.startswith("sqlite")


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
