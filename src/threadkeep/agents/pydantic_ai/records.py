"""What the adapter has to know about one run of a turn's function."""

from collections import Counter
from weakref import WeakKeyDictionary

from threadkeep.agents.run import FunctionRun
from threadkeep.agents.turn import Turn


class Records:
    """What was recorded, or found out, since the function began."""

    def __init__(self) -> None:
        self.responses = 0
        """How many model calls are steps."""
        self.unstreamed: set[str] = set()
        """Models that don't stream."""
        self.unknown: set[tuple[str, str]] = set()
        """Calls that may have taken effect, by tool and arguments: their repetition asks the user."""
        self.offered: set[str] = set()
        """The tools that the server, or the client, runs."""
        self.deferred: set[str] = set()
        """Calls that asked for an approval only when they ran."""
        self._runs = Counter[str]()

    def next_run_id(self, turn: Turn) -> str:
        """Identifies a run of an agent within the turn: what it is, not when it comes."""
        self._runs[turn.scope_name] += 1
        parts = turn.id, turn.scope_name, str(self._runs[turn.scope_name])
        return ":".join(it for it in parts if it)


_records: WeakKeyDictionary[FunctionRun, Records] = WeakKeyDictionary()


def records_of(turn: Turn) -> Records:
    """Those of the run that a turn belongs to."""
    return _records.setdefault(turn.function_run, Records())
