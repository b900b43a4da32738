"""Several nodes in one process, on virtual time.

loop.py       time, and whose callbacks run
database.py   one SQLite in memory for all nodes, behind connectors that fail
bus.py        signals between nodes that get lost, late and out of order
model.py      a model that hangs, breaks off and answers late
world.py      MCP servers and agents in code, whose effects are counted
node.py       a whole node of the product on all that
cluster.py    the nodes, and the faults that befall them
wire.py       how users reach nodes
run.py        a story from its beginning to rest
"""
