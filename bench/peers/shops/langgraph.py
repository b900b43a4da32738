"""`langgraph dev` with the shop of LangChain's `create_agent` and its HumanInTheLoopMiddleware."""

import json
import os
from collections.abc import Sequence
from typing import Any

from bench.peers.contender import Api, Launch, Place
from bench.peers.shops import program
from bench.peers.shops.shop import ShopServer


class LangGraphShop(ShopServer):
    """LangGraph's development server."""

    title = "`langgraph dev`"
    lock = "langgraph"
    packages = ("langgraph-api", "langgraph", "langchain")

    def __init__(self) -> None:
        self._thread = ""

    def launch(self, place: Place) -> Launch:
        (place.folder / "graph.py").write_text(f"from {__name__} import make_graph\n\ngraph = make_graph()\n")
        config = {"dependencies": ["."], "graphs": {"shop": "./graph.py:graph"}}
        (place.folder / "langgraph.json").write_text(json.dumps(config))
        options = ("--no-browser", "--no-reload", "--allow-blocking", "--port", str(place.port))
        command = [str(place.python.parent / "python"), "-m", "langgraph_cli", "dev", *options]
        return Launch(command)

    def ask(self, api: Api, text: str) -> None:
        self._thread = api.post("/threads", {})["thread_id"]
        self._run(api, {"input": {"messages": [{"role": "user", "content": text}]}})

    def waits(self, api: Api) -> bool:
        return any(it.get("interrupts") for it in self._state(api).get("tasks", ()))

    def approve(self, api: Api) -> None:
        self._run(api, {"command": {"resume": {"decisions": [{"type": "approve"}]}}})

    def texts(self, api: Api) -> Sequence[str]:
        messages = self._state(api)["values"].get("messages", [])
        return [str(it["content"]) for it in messages]

    def _run(self, api: Api, body: dict[str, Any]) -> None:
        api.post(f"/threads/{self._thread}/runs", {"assistant_id": "shop", **body})

    def _state(self, api: Api) -> dict[str, Any]:
        return api.get(f"/threads/{self._thread}/state")


def make_graph() -> Any:
    """What `langgraph dev` serves."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_openai import ChatOpenAI

    return create_agent(
        ChatOpenAI(model="scripted", base_url=os.environ[program.MODEL_URL], streaming=True),
        [program.price, program.stock, program.note, program.refund],
        system_prompt="You run a shop.",
        middleware=[HumanInTheLoopMiddleware({"refund": True})],
    )


SHOP = LangGraphShop()
