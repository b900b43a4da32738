"""How much tool servers may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What the pool allows; times in seconds."""

    most_servers: int = 32
    budget_s: float = 10.0
    """How long a turn waits for its servers, all of them together."""
    connect_s: float = 60.0
    """How long a server may take to start while turns go on without it: it may have to be fetched first."""
    ping_s: float = 10.0
    idle_s: float = 600.0
    tools_stay_s: float = 300.0
    """How long a list of tools stays fresh if the server doesn't report changes."""
