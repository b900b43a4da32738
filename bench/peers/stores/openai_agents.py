"""openai-agents' SQLiteSession, which keeps each item as a row of JSON.

Best case: one session object a conversation, kept; the question is added first and the reply at the end, as
its Runner does, in a commit each. It uses write-ahead logging by itself. It cannot list conversations.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.peers.contender import ANSWER, QUESTION, StoreContender

ASKED = {"role": "user", "content": QUESTION}
REPLIED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
}


class OpenAIAgents(StoreContender):
    """A session for every conversation."""

    title = "openai-agents SQLiteSession"
    lock = "openai_agents"
    packages = ("openai-agents",)
    lists = False

    async def open(self, place: str) -> None:
        self._path = Path(place, "sessions.db")
        self._sessions: dict[str, Any] = {}

    def _session(self, conversation_id: str) -> Any:
        if conversation_id not in self._sessions:
            self._sessions[conversation_id] = self._make(conversation_id)
        return self._sessions[conversation_id]

    def _make(self, conversation_id: str) -> Any:
        from agents import SQLiteSession

        return SQLiteSession(conversation_id, self._path)

    async def fill(self, lengths: Mapping[str, int]) -> None:
        for conversation_id, length in lengths.items():
            session = self._session(conversation_id)
            if length:
                await session.add_items([ASKED, REPLIED] * (length // 2))

    async def append(self, conversation_id: str) -> None:
        session = self._session(conversation_id)
        await session.add_items([ASKED])
        await session.add_items([REPLIED])

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        return await self._session(conversation_id).get_items(limit)

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()


CONTENDER = OpenAIAgents
