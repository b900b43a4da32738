"""A bank that books at once, for the processes of the agent of examples/orders: quick to load."""

from examples.orders import shop


def refund(order: shop.Order) -> None:
    """Books without the bank's slow answer."""
    with shop.BANK.open("a") as bank:
        bank.write(f"order {order.id}, {order.euros} euros\n")
