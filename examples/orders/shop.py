"""An agent in code that looks up an order, asks, and refunds it."""

import time
from dataclasses import dataclass
from pathlib import Path

from threadkeep.agents import AgentError, OutcomeUnknown, Turn, agent, step_key

BANK = Path("bank.txt")  # what the bank has booked, a line each


@dataclass
class Order:
    """An order of the shop."""

    id: int
    euros: int


ORDERS = {7: Order(7, 120), 8: Order(8, 30)}


def find_order(text: str) -> Order | None:
    """The order that a message names."""
    numbers = [int(word) for word in text.replace(".", " ").split() if word.isdecimal()]
    return ORDERS.get(numbers[0]) if numbers else None


def refund(order: Order) -> None:
    """Tells the bank to pay, and waits for its slow answer."""
    with BANK.open("a") as bank:
        bank.write(f"{step_key()}: order {order.id}, {order.euros} euros\n")
    time.sleep(2)


def is_booked(order: Order) -> bool:
    """Asks the bank."""
    return BANK.exists() and f"order {order.id}," in BANK.read_text()


@agent(name="Orders", description="Looks up and refunds orders.", visibility="public")
async def orders(turn: Turn) -> str | None:
    """Runs one turn."""
    order = await turn.step(find_order, turn.text, effect="read")
    if order is None:
        raise AgentError("I don't know that order.")
    await turn.say(f"Order {order.id} costs {order.euros} euros. ")
    if await turn.ask("Refund it?", choices=["yes", "no"]) != "yes":
        return "Then it stays as it is."
    try:
        await turn.step(refund, order)  # a "write": never handed over twice
    except OutcomeUnknown:
        await turn.say("The bank's answer was lost, so I look it up. ")
        if not await turn.step(is_booked, order, effect="read"):
            return "Nothing was booked."
    await turn.say("It is refunded. ")
    await turn.model(f"Write one kind sentence about a refund of {order.euros} euros.")
    return None
