"""ADK's DatabaseSessionService: sessions and events, an event as a row of JSON.

Best case: the session object is kept, so that nothing is read first (its Runner reads all events at every
turn); the question is appended first and the reply at the end, in a commit each; SQLite with write-ahead
logging through aiosqlite, writers wait up to a minute for each other. It lists all sessions of a user at
once.
"""

import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bench.peers.contender import ANSWER, QUESTION, StoreContender
from bench.peers.sqlite_files import use_wal

USER = {"app_name": "chat", "user_id": "local"}
COPY = """INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
    VALUES (?, 'chat', 'local', ?, ?, ?, ?)"""


class Adk(StoreContender):
    """One session service."""

    title = "ADK DatabaseSessionService"
    lock = "adk"
    packages = ("google-adk", "sqlalchemy", "aiosqlite")

    async def open(self, place: str) -> None:
        from google.adk.sessions import DatabaseSessionService

        self._path = Path(place, "adk.db")
        use_wal(self._path)
        self._service = DatabaseSessionService(f"sqlite+aiosqlite:///{self._path}?timeout=60")
        self._sessions: dict[str, Any] = {}

    async def fill(self, lengths: Mapping[str, int]) -> None:
        for conversation_id in ("template", *lengths):
            self._sessions[conversation_id] = await self._service.create_session(
                **USER, session_id=conversation_id
            )
        await self.append("template")
        with closing(sqlite3.connect(self._path)) as connection, connection:
            template = connection.execute("SELECT event_data FROM events ORDER BY timestamp").fetchall()
            began = datetime(2026, 1, 1)
            for conversation_id, length in lengths.items():
                connection.executemany(
                    COPY,
                    (
                        (
                            str(uuid.uuid4()),
                            conversation_id,
                            f"e-{number // 2}",
                            f"{began + timedelta(milliseconds=number):%Y-%m-%d %H:%M:%S.%f}",
                            *template[number % 2],
                        )
                        for number in range(length)
                    ),
                )

    async def append(self, conversation_id: str) -> None:
        from google.adk.events import Event
        from google.genai import types

        session, invocation = self._sessions[conversation_id], str(uuid.uuid4())
        for author, role, text in (("user", "user", QUESTION), ("chat", "model", ANSWER)):
            content = types.Content(role=role, parts=[types.Part(text=text)])
            await self._service.append_event(
                session, Event(author=author, invocation_id=invocation, content=content)
            )

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        from google.adk.sessions.base_session_service import GetSessionConfig

        session = await self._service.get_session(
            **USER, session_id=conversation_id, config=GetSessionConfig(num_recent_events=limit)
        )
        return session.events

    async def list_conversations(self, limit: int) -> Sequence[object]:
        listed = (await self._service.list_sessions(**USER)).sessions
        return sorted(listed, key=lambda it: it.last_update_time, reverse=True)[:limit]

    async def close(self) -> None:
        await self._service.close()


CONTENDER = Adk
