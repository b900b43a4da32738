"""Agents that other servers run: programs of ours that ask them, over the same `turn` as agents in code.

program.py     runs a turn: one run of the other server is one step; its interrupts are questions
thread.py      the conversation as the other server knows it
connection.py  one request, bounded and pinned to the address that was checked
frames.py      the events of AG-UI as they arrive
reading.py     what a run's events mean, and in which order they may come
transcript.py  the messages that a run leaves behind
json_patch.py  changes of the state
errors.py      how a run fails
"""
