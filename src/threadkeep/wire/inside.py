"""How a request that was made in this very process is marked: an extension that no server of HTTP sets."""

INSIDE = "threadkeep.inside"
