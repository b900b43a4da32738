"""Which of the moments that matter a run has reached; faults at commits count where they happen."""

import sqlite3

from tests.proof.seen import Seen
from tests.proof.simulation.trace import Trace


def count_interleavings(trace: Trace, seen: Seen, connection: sqlite3.Connection) -> None:
    """Counts what can only be told afterwards."""
    busy: dict[str, str] = {}
    """What each node was last seen doing when it was lost."""
    for happened in trace.all:
        if happened.what == "asks the model":
            busy[happened.where] = "a model call"
        elif happened.what.startswith("WORLD note"):
            busy[happened.where] = "a write step"
        elif happened.what.startswith("SqlApprovals.decide: ok"):
            busy[happened.where] = "between answer and resume"
        elif happened.what.startswith(("SqlTurns.end", "SqlTurnLog.pause")):
            busy.pop(happened.where, None)
        elif happened.what.startswith(("FAULT kill", "FAULT stall")) and (was := busy.get(happened.where)):
            trace.count(f"node lost in {was}")
        elif happened.what == "SqlTurnLog.adopt: ok":
            trace.count("takeover")
        elif happened.what == "SqlQueue.take_in: ok":
            trace.count("steering taken in")
        elif happened.what.startswith("trims"):
            trace.count("trimming")
    for followed in seen.followed:
        if followed.end == "gone":
            trace.count("trimming beside replay")
        if followed.after:
            trace.count("follower came back")
    (waiting,) = connection.execute("SELECT count(*) FROM tk_queued").fetchone()
    for _ in range(waiting):
        trace.count("message held in the queue")
