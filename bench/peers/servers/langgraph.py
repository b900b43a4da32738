"""LangGraph's development server: `langgraph dev` with a graph of one node that calls the model.

Best case: no reloading, no browser, no traces, as many jobs at once as there are turns (its default is 10),
`messages-tuple` as the only stream mode, which sends each piece once. It keeps threads in memory and writes
them to files from time to time; the server with a database needs a licence.
"""

import json
import os
from collections.abc import Sequence
from typing import Any

from bench.peers.contender import Api, Conversation, Launch, Place, Said, ServerContender, post

MODEL_URL = "BENCH_MODEL_URL"
JOBS = 600


class LangGraph(ServerContender):
    """Its development server."""

    title = "LangGraph dev"
    lock = "langgraph"
    packages = ("langgraph", "langgraph-api", "langchain-openai", "uvicorn", "uvloop")

    def launch(self, place: Place) -> Launch:
        (place.folder / "graph.py").write_text(f"from {__name__} import make_graph\n\ngraph = make_graph()\n")
        config = {"dependencies": ["."], "graphs": {"chat": "./graph.py:graph"}}
        (place.folder / "langgraph.json").write_text(json.dumps(config))
        options = (
            "--no-browser", "--no-reload", "--port", str(place.port), "--n-jobs-per-worker", str(JOBS),
            "--server-log-level", "warning",
        )  # fmt: skip
        command = [str(place.python.parent / "langgraph"), "dev", *options]
        return Launch(command, {MODEL_URL: f"{place.model_url}/v1", "LOG_LEVEL": "warning"})

    def converse(self, api: Api) -> Conversation:
        return Conversation(api.post("/threads", {})["thread_id"])

    def question(self, conversation: Conversation, text: str) -> bytes:
        asked = {
            "assistant_id": "chat",
            "input": {"messages": [{"role": "user", "content": text}]},
            "stream_mode": ["messages-tuple"],
        }
        return post(f"/threads/{conversation.id}/runs/stream", json.dumps(asked).encode())

    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        messages = api.get(f"/threads/{conversation_id}/state")["values"].get("messages", [])
        return [Said(it["type"] == "human", it["content"]) for it in messages]


def make_graph() -> Any:
    """What `langgraph dev` serves."""
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph

    model = ChatOpenAI(model="scripted", base_url=os.environ[MODEL_URL], streaming=True)

    async def reply(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply").compile()


CONTENDER = LangGraph()
