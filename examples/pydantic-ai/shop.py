"""An order desk written with pydantic-ai, and the one line with which Threadkeep serves it."""

from dataclasses import dataclass

from pydantic_ai import Agent, RunContext

from threadkeep.agents import Turn
from threadkeep.agents.pydantic_ai import durable

PRICES = {7: 120, 8: 30}  # in euros


@dataclass
class Desk:
    """Who asks."""

    user_id: str


agent = Agent(
    "openai-chat:gpt-5-mini",
    name="orders",
    description="Looks up and refunds orders.",
    deps_type=Desk,
    instructions="You are the order desk of a shop. Look an order up before you refund it.",
)


@agent.tool_plain(metadata={"effect": "read"})
def find_order(order_id: int) -> str:
    """Looks an order up."""
    price = PRICES.get(order_id)
    return f"Order {order_id} costs {price} euros." if price else f"There is no order {order_id}."


@agent.tool(requires_approval=True)
def refund(ctx: RunContext[Desk], order_id: int) -> str:
    """Refunds an order."""
    return f"Order {order_id} is refunded to {ctx.deps.user_id}."


def desk(turn: Turn) -> Desk:
    """What the tools need to know of a turn."""
    return Desk(turn.user.id)


orders = durable(agent, deps=desk, visibility="public")
