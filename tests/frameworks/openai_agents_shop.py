"""The shop, as users of the OpenAI Agents SDK write it."""

import httpx2 as httpx
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Tool,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from tests.frameworks import shop
from tests.frameworks.scripted import model_url
from threadkeep.agents.openai_agents import ToolEffect, durable

set_tracing_disabled(True)  # traces go to OpenAI

# Each test has an event loop of its own, so that connections can't be kept.
http = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0))
client = AsyncOpenAI(base_url=model_url(), api_key="scripted", http_client=http)


@function_tool
def price(order_id: int) -> str:
    """Says what an order costs."""
    return shop.price(order_id)


@function_tool
def stock(order_id: int) -> str:
    """Says whether an order is in stock."""
    return shop.stock(order_id)


@function_tool
def note(order_id: int, text: str) -> str:
    """Notes something down for an order."""
    return shop.note(order_id, text)


@function_tool(needs_approval=True)
def refund(order_id: int) -> str:
    """Refunds an order."""
    return shop.refund(order_id)


tools: list[Tool] = [price, stock, note, refund]
agent = Agent(
    "shop", instructions="You run a shop.", model=OpenAIResponsesModel("scripted", client), tools=tools
)
chat = Agent(
    "chat", instructions="You run a shop.", model=OpenAIChatCompletionsModel("scripted", client), tools=tools
)
effects: dict[str, ToolEffect] = {"price": "read", "stock": "read"}

served = durable(agent, effects=effects)
served_by_chat_completions = durable(chat, effects=effects)
