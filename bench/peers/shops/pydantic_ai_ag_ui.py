"""pydantic-ai's AG-UI endpoint with the shop. It keeps nothing: the client has the history, and sends it."""

import http.client
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from bench.peers.contender import UVICORN, Api, Launch, Place
from bench.peers.shops import program
from bench.peers.shops.form import PATIENCE_S
from bench.peers.shops.shop import ShopServer


class AgUiShop(ShopServer):
    """`AGUIAdapter.dispatch_request` in Starlette, and a client that keeps what it is sent."""

    title = "pydantic-ai's AG-UI endpoint"
    lock = "pydantic_ai"
    packages = ("pydantic-ai-slim", "ag-ui-protocol")

    def __init__(self) -> None:
        self._thread = str(uuid.uuid4())
        self._messages: list[dict[str, Any]] = []
        self._interrupts: list[dict[str, Any]] = []

    def launch(self, place: Place) -> Launch:
        return Launch([str(place.python), *UVICORN, "--port", str(place.port), f"{__name__}:create_app"])

    def ask(self, api: Api, text: str) -> None:
        self._messages = [{"id": str(uuid.uuid4()), "role": "user", "content": text}]
        self._run(api, {})

    def waits(self, api: Api) -> bool:
        return bool(self._interrupts)

    def approve(self, api: Api) -> None:
        entries = [
            {"interruptId": it["id"], "status": "resolved", "payload": {"approved": True}}
            for it in self._interrupts
        ]
        self._run(api, {"resume": entries})

    def texts(self, api: Api) -> Sequence[str]:
        return []  # the server has none

    def _run(self, api: Api, extra: dict[str, Any]) -> None:
        self._interrupts = []
        asked = {
            "threadId": self._thread, "runId": str(uuid.uuid4()), "state": {}, "messages": self._messages,
            "tools": [], "context": [], "forwardedProps": {}, **extra,
        }  # fmt: skip
        for event in _events(api.port, asked):
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "TEXT_MESSAGE_START":
                self._messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
            case "TEXT_MESSAGE_CONTENT":
                self._messages[-1]["content"] += event["delta"]
            case "TOOL_CALL_START":
                if self._messages[-1]["role"] != "assistant":
                    self._messages.append({"id": str(uuid.uuid4()), "role": "assistant"})
                call = {"id": event["toolCallId"], "type": "function"}
                call["function"] = {"name": event["toolCallName"], "arguments": ""}
                self._messages[-1].setdefault("toolCalls", []).append(call)
            case "TOOL_CALL_ARGS":
                self._messages[-1]["toolCalls"][-1]["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                names = {"id": event["messageId"], "toolCallId": event["toolCallId"]}
                self._messages.append({**names, "role": "tool", "content": event["content"]})
            case "RUN_FINISHED":
                self._interrupts = (event.get("outcome") or {}).get("interrupts", [])
            case "RUN_ERROR":
                raise RuntimeError(str(event))
            case _:
                pass


def _events(port: int, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        connection.request("POST", "/", json.dumps(asked), headers)
        response = connection.getresponse()
        if response.status >= 300:
            raise RuntimeError(f"{response.status} {response.read()[:300]!r}")
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))
    finally:
        connection.close()


def make_agent(**options: Any) -> Any:
    """The shop."""
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=os.environ[program.MODEL_URL]))
    agent = Agent(
        model, name="shop", instructions="You run a shop.", output_type=[str, DeferredToolRequests], **options
    )
    for tool in (program.price, program.stock, program.note):
        agent.tool_plain(tool)
    agent.tool_plain(requires_approval=True)(program.refund)
    return agent


def create_app() -> Any:
    """For uvicorn."""
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from starlette.applications import Starlette
    from starlette.routing import Route

    agent = make_agent()

    async def run(request: Any) -> Any:
        return await AGUIAdapter.dispatch_request(request, agent=agent)

    return Starlette(routes=[Route("/", run, methods=["POST"])])


SHOP = AgUiShop()
