"""LangChain's SQLChatMessageHistory, which keeps each message as a row of JSON.

Best case: one engine, one history object a conversation, kept; question and reply are added together at the
end, as RunnableWithMessageHistory does, in one commit; the synchronous driver in the calling thread; SQLite
with write-ahead logging and an index of a session's messages, which its table lacks. It reads a conversation
only as a whole, and cannot list conversations.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.peers.contender import ANSWER, QUESTION, StoreContender
from bench.peers.sqlite_files import use_wal

INDEX = "CREATE INDEX messages_of_a_session ON message_store (session_id, id)"


class LangChain(StoreContender):
    """A history for every conversation."""

    title = "LangChain SQLChatMessageHistory"
    lock = "langchain"
    packages = ("langchain-community", "langchain-core", "sqlalchemy")
    lists = False

    async def open(self, place: str) -> None:
        from langchain_core.messages import AIMessage, HumanMessage
        from sqlalchemy import create_engine, text

        path = Path(place, "langchain.db")
        use_wal(path)
        self._engine = create_engine(f"sqlite:///{path}")
        self._turn = [HumanMessage(QUESTION), AIMessage(ANSWER)]
        self._histories: dict[str, Any] = {}
        self._history("first")
        with self._engine.begin() as connection:
            connection.execute(text(INDEX))

    def _history(self, conversation_id: str) -> Any:
        from langchain_community.chat_message_histories import SQLChatMessageHistory

        if conversation_id not in self._histories:
            self._histories[conversation_id] = SQLChatMessageHistory(conversation_id, connection=self._engine)
        return self._histories[conversation_id]

    async def fill(self, lengths: Mapping[str, int]) -> None:
        for conversation_id, length in lengths.items():
            history = self._history(conversation_id)
            if length:
                history.add_messages(self._turn * (length // 2))

    async def append(self, conversation_id: str) -> None:
        self._history(conversation_id).add_messages(self._turn)

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        return self._history(conversation_id).messages[-limit:]

    async def close(self) -> None:
        self._engine.dispose()


CONTENDER = LangChain
