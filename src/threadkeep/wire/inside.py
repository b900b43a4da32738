"""Where a request comes from: ASGI extensions that only our own code sets. No other server has them."""

INSIDE = "threadkeep.inside"
"""It comes from within this process."""

CONNECTION = "threadkeep.connection"
"""It comes over a connection of our own server, whose two ends are what the system reports."""

LARGE_MESSAGES = "threadkeep.large_messages"
"""A function of our own server that lets a web socket receive messages up to a given size."""

SMALL_MESSAGE_BYTES = 64 * 1024
"""The largest message that our own server accepts before that: of a client that has not signed in."""
