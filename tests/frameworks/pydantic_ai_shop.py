"""The shop, as users of pydantic-ai write it."""

import httpx2 as httpx
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.frameworks import shop
from tests.frameworks.scripted import model_url
from threadkeep.agents.pydantic_ai import durable

# Each test has an event loop of its own, so that connections can't be kept.
client = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0))
provider = OpenAIProvider(base_url=model_url(), api_key="scripted", http_client=client)
agent = Agent(OpenAIChatModel("scripted", provider=provider), name="shop", instructions="You run a shop.")


@agent.tool_plain(metadata={"effect": "read"})
def price(order_id: int) -> str:
    """Says what an order costs."""
    return shop.price(order_id)


@agent.tool_plain(metadata={"effect": "read"})
def stock(order_id: int) -> str:
    """Says whether an order is in stock."""
    return shop.stock(order_id)


@agent.tool_plain
def note(order_id: int, text: str) -> str:
    """Notes something down for an order."""
    return shop.note(order_id, text)


@agent.tool_plain(requires_approval=True)
def refund(order_id: int) -> str:
    """Refunds an order."""
    return shop.refund(order_id)


served = durable(agent)
