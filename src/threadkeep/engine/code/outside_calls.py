"""Model calls that come from a program's own SDK while the program runs: not as claims, but over HTTP."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from threadkeep.domain.events import UsageReported
from threadkeep.domain.ids import TurnId
from threadkeep.engine.journal import CallPaid

Report = Callable[[CallPaid, UsageReported], None]


class OutsideCalls:
    """Those of one run: their usage goes into the turn's log, and they end with the run."""

    def __init__(self) -> None:
        self._report: Report | None = None
        self._ends: set[Callable[[], None]] = set()

    def open(self, report: Report) -> None:
        """The run begins."""
        self._report = report

    def close(self) -> None:
        """The run is over: its calls end, and what they have used is no longer the log's."""
        self._report = None
        for end in tuple(self._ends):
            end()

    def report(self, paid: CallPaid, reported: UsageReported) -> bool:
        """Puts what a call has used into the turn's log, which charges it; False if the run is over."""
        if self._report is None:
            return False
        self._report(paid, reported)
        return True

    @property
    def count(self) -> int:
        """How many are being made."""
        return len(self._ends)

    @contextmanager
    def making(self, end: Callable[[], None]) -> Generator[None]:
        """A call is made inside the block, which `end` ends."""
        self._ends.add(end)
        try:
            yield
        finally:
            self._ends.discard(end)


class LiveRuns:
    """The runs of programs on this node."""

    def __init__(self) -> None:
        self._calls: dict[tuple[TurnId, int], OutsideCalls] = {}
        self._elsewhere = WeakValueDictionary[tuple[TurnId, int], OutsideCalls]()
        """Of runs on other nodes, as long as this one makes calls for them."""

    @contextmanager
    def living(self, turn_id: TurnId, fence: int) -> Generator[OutsideCalls]:
        """A run lives inside the block."""
        calls = self._calls[turn_id, fence] = OutsideCalls()
        try:
            yield calls
        finally:
            calls.close()
            if self._calls.get((turn_id, fence)) is calls:
                del self._calls[turn_id, fence]

    def calls_of(self, turn_id: TurnId, fence: int) -> OutsideCalls:
        """The calls of a run; of one on another node, their usage is charged by itself."""
        calls = self._calls.get((turn_id, fence))
        return calls or self._elsewhere.setdefault((turn_id, fence), OutsideCalls())
