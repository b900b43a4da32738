"""How long to measure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """What a run takes its time for."""

    rounds: int
    """Of the servers."""
    pieces: int
    """Of a reply, as long as it is measured what a piece costs."""
    crowd_pieces: int
    store_rounds: int
    store_budget_s: float
    """For all rounds of one operation of one store; whoever is slower than that has fewer rounds."""
    turns_a_writer: int


FULL = Effort(rounds=3, pieces=200, crowd_pieces=16, store_rounds=9, store_budget_s=4, turns_a_writer=4)
QUICK = Effort(rounds=1, pieces=100, crowd_pieces=6, store_rounds=3, store_budget_s=1.5, turns_a_writer=2)
