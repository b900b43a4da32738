"""Shows that nothing is lost: a simulation of several nodes, and one checker for it and for real engines.

    story.py        what happens: users' acts and faults, drawn from a seed, or written by hand
    users.py        users, who talk to nodes over a `Wire` and note all that they see
    seen.py         what they saw, and what the world counted: the checker's input beside the database
    checker/        what must hold, one rule per function; each says what broke, in a sentence
    simulation/     several whole nodes in one process, on virtual time
    shrinking.py    makes a failing story short
    mutants.py      faults of the product that the checker must find, by name
    directed.py     stories that reach one interleaving each

`python -m tests.proof simulate --seeds 100` runs seeds, `… simulate --seed N` tells the story of one,
`… mutants` breaks the product on purpose.

How the simulation works. A `VirtualLoop` is the process's only event loop; its time jumps to the next timer
when nothing is ready, and what is given to threads runs at once, inline. A node is the product as
`bootstrap` builds it, with an HTTP app in front, and with these adapters in place of the outside: a
database connector over one SQLite database in memory that all nodes share, a bus, a model, MCP servers.
Everything that a node does runs in a `contextvars` context that names it: so the loop can drop what belongs
to a node that was killed, and keep back what belongs to one that stalls, wherever it stands. Statements run
through the product's own storage; each plan is one transaction, as with PostgreSQL at its strictest
isolation, after and before a latency, in which connections break: before the commit, or after it, so that
the caller can't know.

A story is a list of acts of users and a list of faults. Faults come at a time, or at a *commit*, which has
the name of the storage method that makes it: "kill the node right after its second `SqlTurnLog.pause`". All
chance comes from the seed, from one generator for each source, so that a story with one fault less remains
nearly the same story, and a failing one can be made shorter. The same seed gives the same trace, to the
byte.

After the story all faults end, and everything must come to rest: then the checker looks at what users saw and
at what the database holds. It knows nothing of nodes, loops or simulations.
"""
