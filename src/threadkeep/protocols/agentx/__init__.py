"""AgentX 1.9.0: its envelopes over SSE, and its web socket.

In its terms a container is one of our agents, an image is a conversation, and an agent is the running side of
a conversation. `routes.py` has `/ws`; `socket.py` serves one client, whose requests `requests.py` answers
and whose sessions `subscriptions.py` follows.
"""
