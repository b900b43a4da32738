"""An order desk written with LangChain, and the one line with which Threadkeep serves it."""

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool

from threadkeep.agents.langgraph import durable

PRICES = {7: 120, 8: 30}  # in euros


@tool
def find_order(order_id: int) -> str:
    """Looks an order up."""
    price = PRICES.get(order_id)
    return f"Order {order_id} costs {price} euros." if price else f"There is no order {order_id}."


@tool
def refund(order_id: int) -> str:
    """Refunds an order."""
    return f"Order {order_id} is refunded."


agent = create_agent(
    "openai:gpt-5-mini",
    [find_order, refund],
    system_prompt="You are the order desk of a shop. Look an order up before you refund it.",
    middleware=[HumanInTheLoopMiddleware({"refund": True})],
    name="orders",
)

orders = durable(agent, effects={"find_order": "read"}, visibility="public")
