"""Where a request comes from: ASGI extensions that only our own code sets. No other server has them."""

INSIDE = "threadkeep.inside"
"""It comes from within this process."""

CONNECTION = "threadkeep.connection"
"""It comes over a connection of our own server, whose two ends are what the system reports."""
