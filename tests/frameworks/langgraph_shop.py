"""The shop, as users of LangChain write it."""

import httpx
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.frameworks import shop
from tests.frameworks.scripted import model_url
from threadkeep.agents.langgraph import durable


@tool
def price(order_id: int) -> str:
    """Says what an order costs."""
    return shop.price(order_id)


@tool
def stock(order_id: int) -> str:
    """Says whether an order is in stock."""
    return shop.stock(order_id)


@tool
def note(order_id: int, text: str) -> str:
    """Notes something down for an order."""
    return shop.note(order_id, text)


@tool
def refund(order_id: int) -> str:
    """Refunds an order."""
    return shop.refund(order_id)


model = ChatOpenAI(
    model="scripted",
    base_url=model_url(),
    api_key=SecretStr("scripted"),
    stream_usage=True,
    # Each test has an event loop of its own, so that connections can't be kept.
    http_async_client=httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0)),
)
agent = create_agent(
    model,
    [price, stock, note, refund],
    system_prompt="You run a shop.",
    middleware=[HumanInTheLoopMiddleware({"refund": True})],
    name="shop",
)

served = durable(agent, effects={"price": "read", "stock": "read"})
