"""openai-agents' SQLAlchemySession, on SQLite through aiosqlite.

Best case: one engine for all sessions, one session object a conversation, kept; the question is added first
and the reply at the end, as its Runner does; SQLite with write-ahead logging. It cannot list conversations.
"""

from pathlib import Path
from typing import Any

from bench.peers.sqlite_files import use_wal
from bench.peers.stores.openai_agents import OpenAIAgents


class OpenAIAgentsSqlAlchemy(OpenAIAgents):
    """The same through SQLAlchemy."""

    title = "openai-agents SQLAlchemySession"
    packages = ("openai-agents", "sqlalchemy", "aiosqlite")

    async def open(self, place: str) -> None:
        from sqlalchemy.ext.asyncio import create_async_engine

        await super().open(place)
        use_wal(Path(place, "sessions.db"))
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{self._path}?timeout=60")

    def _make(self, conversation_id: str) -> Any:
        from agents.extensions.memory import SQLAlchemySession

        return SQLAlchemySession(conversation_id, engine=self._engine, create_tables=True)

    async def close(self) -> None:
        await self._engine.dispose()


CONTENDER = OpenAIAgentsSqlAlchemy
