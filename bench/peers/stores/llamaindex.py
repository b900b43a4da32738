"""LlamaIndex's SQLAlchemyChatStore, which keeps each message as a row of JSON.

Best case: one engine on aiosqlite; the question is added first and the reply at the end, as its chat memory
does, in a commit each; SQLite with write-ahead logging; the newest messages by an offset from their number.
Its keys come all at once and in no order, which is no list of conversations.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers.contender import ANSWER, QUESTION, StoreContender
from bench.peers.sqlite_files import use_wal

A_BATCH = 1_000


class LlamaIndex(StoreContender):
    """One chat store."""

    title = "LlamaIndex SQLAlchemyChatStore"
    lock = "llamaindex"
    packages = ("llama-index-core", "sqlalchemy", "aiosqlite")
    lists = False

    async def open(self, place: str) -> None:
        from llama_index.core.llms import ChatMessage
        from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
        from sqlalchemy.ext.asyncio import create_async_engine

        path = Path(place, "llamaindex.db")
        use_wal(path)
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{path}?timeout=60")
        self._store = SQLAlchemyChatStore("messages", async_engine=self._engine)
        self._turn = [ChatMessage(QUESTION, role="user"), ChatMessage(ANSWER, role="assistant")]

    async def fill(self, lengths: Mapping[str, int]) -> None:
        for conversation_id, length in lengths.items():
            for first in range(0, length, A_BATCH):
                turns = min(A_BATCH, length - first) // 2
                await self._store.add_messages(conversation_id, self._turn * turns)

    async def append(self, conversation_id: str) -> None:
        for message in self._turn:
            await self._store.add_message(conversation_id, message)

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        count = await self._store.count_messages(conversation_id)
        return await self._store.get_messages(conversation_id, limit=limit, offset=count - limit)

    async def close(self) -> None:
        await self._engine.dispose()


CONTENDER = LlamaIndex
