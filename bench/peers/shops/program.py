"""What the shop does, in whichever framework's environment: so it needs the standard library only."""

import os
import time
from pathlib import Path

CALLS, MODEL_URL = "SHOP_CALLS", "SHOP_MODEL_URL"
SLOW_S = 16.0
"""How long a write takes, so that it can be cut off."""


def price(order_id: int) -> str:
    """Says what an order costs."""
    _write_down("price began")
    return f"Order {order_id} costs 120 euros."


def stock(order_id: int) -> str:
    """Says whether an order is in stock."""
    _write_down("stock began")
    return f"Order {order_id} is in stock."


def note(order_id: int, text: str) -> str:
    """Notes something down for an order."""
    _write_down("note began")
    time.sleep(SLOW_S)
    _write_down("note ended")
    return f"Noted for order {order_id}."


def refund(order_id: int) -> str:
    """Refunds an order."""
    _write_down("refund began")
    time.sleep(SLOW_S)
    _write_down("refund ended")
    return f"Order {order_id} is refunded."


def _write_down(line: str) -> None:
    with Path(os.environ[CALLS]).open("a") as calls:
        calls.write(f"{line}\n")
