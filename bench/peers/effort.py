"""How long to measure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """What a run takes its time for."""

    rounds: int
    """Of the servers, at most."""
    rounds_s: float
    """No further round begins that would end later."""
    pieces: int
    """Of a reply, as long as it is measured what a piece costs."""
    alone_pieces: int
    """Of the reply that is the only one."""
    crowd_pieces: int
    store_rounds: int
    store_budget_s: float
    """For all rounds of one operation of one store; whoever is slower than that has fewer rounds."""
    turns_a_writer: int


FULL = Effort(
    rounds=3,
    rounds_s=720,
    pieces=200,
    alone_pieces=100,
    crowd_pieces=10,
    store_rounds=9,
    store_budget_s=4,
    turns_a_writer=4,
)
QUICK = Effort(
    rounds=1,
    rounds_s=720,
    pieces=60,
    alone_pieces=50,
    crowd_pieces=6,
    store_rounds=3,
    store_budget_s=1.5,
    turns_a_writer=2,
)
