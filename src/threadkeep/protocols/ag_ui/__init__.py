"""AG-UI 1.0 and 0.0.x: what `HttpAgent` speaks, and what CopilotKit speaks to its runtime.

A turn of ours is one run, or several if it waits for its user: a run ends where the turn pauses, and the next
one brings the answer. A reply of ours is several of their messages (`messages.py`).
"""
