"""LangGraph's AsyncSqliteSaver: checkpoints of a graph whose state is the list of messages.

Best case: a graph of one node that returns the reply, run with `durability="exit"`, which writes one
checkpoint a turn instead of one a step; a checkpoint holds all messages. Its saver uses write-ahead logging
by itself. It lists checkpoints, but no conversations.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bench.peers.contender import ANSWER, QUESTION, StoreContender


class LangGraph(StoreContender):
    """One graph with a saver."""

    title = "LangGraph AsyncSqliteSaver"
    lock = "langgraph"
    packages = ("langgraph", "langgraph-checkpoint-sqlite", "aiosqlite")
    lists = False

    async def open(self, place: str) -> None:
        from langchain_core.messages import AIMessage
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        from langgraph.graph import START, MessagesState, StateGraph

        async def reply(_: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(ANSWER)]}

        self._stack = AsyncExitStack()
        saver = await self._stack.enter_async_context(
            AsyncSqliteSaver.from_conn_string(str(Path(place, "langgraph.db")))
        )
        graph = StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply")
        self._graph = graph.compile(checkpointer=saver)

    async def fill(self, lengths: Mapping[str, int]) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        for conversation_id, length in lengths.items():
            if length:
                messages = [
                    make for _ in range(length // 2) for make in (HumanMessage(QUESTION), AIMessage(ANSWER))
                ]
                await self._graph.aupdate_state(_config(conversation_id), {"messages": messages}, "reply")

    async def append(self, conversation_id: str) -> None:
        asked = {"messages": [{"role": "user", "content": QUESTION}]}
        async for _ in self._graph.astream(
            asked, _config(conversation_id), stream_mode="updates", durability="exit"
        ):
            pass

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        state = await self._graph.aget_state(_config(conversation_id))
        return state.values["messages"][-limit:]

    async def close(self) -> None:
        await self._stack.aclose()


def _config(conversation_id: str) -> Any:
    return {"configurable": {"thread_id": conversation_id}}


CONTENDER = LangGraph
