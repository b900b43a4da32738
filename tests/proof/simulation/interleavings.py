"""Which of the moments that matter a run has reached."""

import sqlite3

from tests.proof.seen import Seen
from tests.proof.simulation.trace import Trace


def count_interleavings(trace: Trace, seen: Seen, connection: sqlite3.Connection) -> None:
    """Counts them."""
