"""An order desk written with the OpenAI Agents SDK, and the one line with which Threadkeep serves it."""

from agents import Agent, function_tool

from threadkeep.agents.openai_agents import durable

PRICES = {7: 120, 8: 30}  # in euros


@function_tool
def find_order(order_id: int) -> str:
    """Looks an order up."""
    price = PRICES.get(order_id)
    return f"Order {order_id} costs {price} euros." if price else f"There is no order {order_id}."


@function_tool(needs_approval=True)
def refund(order_id: int) -> str:
    """Refunds an order."""
    return f"Order {order_id} is refunded."


billing = Agent(
    "Billing",
    handoff_description="Refunds orders.",
    instructions="Refund what the user asks for, and say so in one sentence.",
    model="gpt-5-mini",
    tools=[refund],
)
desk = Agent(
    "Orders",
    instructions="You are the order desk of a shop. Look an order up, then hand over who wants money back.",
    model="gpt-5-mini",
    tools=[find_order],
    handoffs=[billing],
)

orders = durable(desk, effects={"find_order": "read"}, visibility="public")
