"""Agents of the OpenAI Agents SDK behind a durable turn."""

from collections.abc import Callable, Iterator
from typing import Any

import agents as sdk
import httpx2
import pytest
from openai import AsyncOpenAI

from threadkeep.agents.openai_agents import durable
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel, UseTool, crash_everywhere

sdk.set_tracing_disabled(True)

Script = Callable[[list[dict[str, Any]]], Reply]


class Provider:
    """The server of the agents' models, which replies by what it is asked: a repeated call gets the same."""

    def __init__(self) -> None:
        self.script: Script = lambda _: [Say("OK.")]
        self.model = ScriptedModel(otherwise=lambda it: self.script(asked(it)))

    def client(self) -> AsyncOpenAI:
        """A client for agents' loops of several tests."""

        async def send(request: httpx2.Request) -> None:
            request.url = httpx2.URL(self.model.url + request.url.path)

        http = httpx2.AsyncClient(
            limits=httpx2.Limits(max_keepalive_connections=0), event_hooks={"request": [send]}
        )
        return AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:1/v1", http_client=http, max_retries=0)


def asked(request: Recorded) -> list[dict[str, Any]]:
    """What a model was asked: messages, calls and results, as the Responses API has them."""
    return request.body.get("input") or request.body["messages"]


def results(items: list[dict[str, Any]]) -> list[str]:
    """What tools returned."""
    return [
        str(it.get("output", it.get("content"))) for it in items if "output" in it or it.get("role") == "tool"
    ]


provider = Provider()
responses = sdk.OpenAIResponsesModel("scripted", provider.client())
chat = sdk.OpenAIChatCompletionsModel("scripted", provider.client())


@pytest.fixture(autouse=True)
def _serving() -> Iterator[None]:
    with provider.model:
        provider.model.requests.clear()
        yield
        assert not [(it.problems, it.body) for it in provider.model.refused]


@sdk.function_tool
async def find_order(order_id: int) -> str:
    """Finds an order."""
    return f"order {order_id}: 120 €"


def refunds(items: list[dict[str, Any]]) -> Reply:
    if not (found := results(items)):
        return [Say("Let me look. "), UseTool("find_order", {"order_id": 7}, "call_1")]
    return [Say(f"It is {found[0]}.")]


@pytest.mark.parametrize("model", [responses, chat])
async def test_agent_of_the_sdk_survives_every_crash(model: sdk.Model):
    provider.script = refunds
    clerk = sdk.Agent("Clerk", instructions="Be kind.", model=model, tools=[find_order])
    orders = durable(clerk, effects={"find_order": "read"})
    report = await crash_everywhere(orders, "What about order 7?", only=range(3, 100, 5))
    report.check()
    assert report.whole.text == "Let me look. \n\nIt is order 7: 120 €."
    assert report.whole.steps["find_order"].count == 1
