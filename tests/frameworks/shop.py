"""The shop's own functions, which are the same in every framework, and what its users write."""

from typing import Any

REFUND = "What does order 7 cost, is it in stock? Refund it."
WHICH = "Which order was it?"
REFUNDED = (
    "Let me look. I refund it. Done: Order 7 costs 120 euros. Order 7 is in stock. "
    "Noted for order 7. Order 7 is refunded."
)
REMEMBERED = "It was order 7, after 4 results."
FORGOTTEN = "It was order 7, after 0 results."


def price(order_id: int) -> str:
    """Says what an order costs."""
    return f"Order {order_id} costs 120 euros."


def stock(order_id: int) -> str:
    """Says whether an order is in stock."""
    return f"Order {order_id} is in stock."


def note(order_id: int, text: str) -> str:
    """Notes something down for an order."""
    return f"Noted for order {order_id}."


def refund(order_id: int) -> str:
    """Refunds an order."""
    return f"Order {order_id} is refunded."


# Instead of the writes, in tests: functions of a framework get their arguments as a dict.


def noted(arguments: dict[str, Any]) -> str:
    """Instead of `note`."""
    return note(**arguments)


def refunded(arguments: dict[str, Any]) -> str:
    """Instead of `refund`."""
    return refund(**arguments)


FAKES = {"note": noted, "refund": refunded}
