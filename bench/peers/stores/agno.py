"""Agno's SqliteDb: sessions and runs, a run with its messages as a row of JSON.

Best case: what its agent does at the end of a run (session and run are upserted, a commit each), with the
session object kept, so that nothing is read first; no approvals; SQLite with write-ahead logging; the
synchronous driver in the calling thread. The newest 20 messages are the newest 10 runs; lists come without
runs.
"""

import json
import sqlite3
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.peers.contender import ANSWER, QUESTION, StoreContender
from bench.peers.sqlite_files import use_wal

COPY = """INSERT INTO agno_runs (run_id, session_id, run_type, agent_id, user_id, status, run_index, run_data,
        created_at, updated_at)
    SELECT ?, ?, run_type, agent_id, user_id, status, ?, ?, created_at, updated_at
    FROM agno_runs WHERE session_id = 'template'"""


class Agno(StoreContender):
    """One database."""

    title = "Agno SqliteDb"
    lock = "agno"
    packages = ("agno", "sqlalchemy")

    async def open(self, place: str) -> None:
        from agno.db.base import SessionType
        from agno.db.sqlite import SqliteDb

        self._path = Path(place, "agno.db")
        use_wal(self._path)
        self._db = SqliteDb(db_file=str(self._path))
        self._kind = SessionType.AGENT
        self._sessions: dict[str, Any] = {}
        self._lengths: dict[str, int] = {}

    def _make_session(self, conversation_id: str) -> None:
        from agno.session import AgentSession

        now = int(time.time())
        session = AgentSession(
            session_id=conversation_id, agent_id="chat", user_id="local", created_at=now, updated_at=now
        )
        self._sessions[conversation_id] = session
        self._lengths[conversation_id] = 0
        self._db.upsert_session(session)

    async def fill(self, lengths: Mapping[str, int]) -> None:
        self._make_session("template")
        await self.append("template")
        for conversation_id in lengths:
            self._make_session(conversation_id)
        with closing(sqlite3.connect(self._path)) as connection, connection:
            (data,) = connection.execute("SELECT run_data FROM agno_runs").fetchone()
            for conversation_id, length in lengths.items():
                self._lengths[conversation_id] = length // 2
                connection.executemany(
                    COPY, (_copied(data, conversation_id, index) for index in range(length // 2))
                )

    async def append(self, conversation_id: str) -> None:
        from agno.models.message import Message
        from agno.run.agent import RunInput, RunOutput
        from agno.run.base import RunStatus

        run = RunOutput(
            run_id=str(uuid.uuid4()),
            agent_id="chat",
            session_id=conversation_id,
            user_id="local",
            input=RunInput(input_content=QUESTION),
            content=ANSWER,
            model="scripted",
            messages=[Message(role="user", content=QUESTION), Message(role="assistant", content=ANSWER)],
            status=RunStatus.completed,
        )
        self._db.upsert_session(self._sessions[conversation_id])
        index = self._lengths[conversation_id]
        self._db.upsert_run(run, conversation_id, "local", index)
        self._lengths[conversation_id] = index + 1

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        runs = self._db.get_runs(
            session_id=conversation_id, limit=limit // 2, sort_by="run_index", sort_order="desc"
        )
        return [message for run in runs for message in run.messages]

    async def list_conversations(self, limit: int) -> Sequence[object]:
        return self._db.get_sessions(
            self._kind,
            user_id="local",
            limit=limit,
            sort_by="updated_at",
            sort_order="desc",
            include_runs=False,
        )

    async def close(self) -> None:
        self._db.close()


def _copied(data: str, conversation_id: str, index: int) -> tuple[str, str, int, str]:
    run = json.loads(data)
    run = json.loads(run) if isinstance(run, str) else run
    run_id = str(uuid.uuid4())
    return run_id, conversation_id, index, json.dumps(run | {"run_id": run_id, "session_id": conversation_id})


CONTENDER = Agno
