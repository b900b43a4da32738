"""The steps of a running program that have begun and not ended."""

from threadkeep.domain.events import TurnEvent
from threadkeep.domain.turn import OpenStep
from threadkeep.engine.journal import StepBegun, StepEnded
from threadkeep.engine.recorded_steps import name_of
from threadkeep.log.format import LogEntry

_NO_STEPS = frozenset({"take", "save"})
"""Claims that ask for what is there."""


class OpenSteps:
    """Those of one turn, by key."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[StepBegun, int]] = {}
        self._earlier: dict[str, StepBegun] = {}
        """What an earlier run began and did not end: it runs again, or nobody will know how it ended."""
        self._at = 0

    @property
    def oldest(self) -> OpenStep | None:
        """The one that has run longest."""
        begun, since = next(iter(self._open.values()), (None, 0))
        return OpenStep(name_of(begun), since) if begun else None

    def recall(self, entry: LogEntry) -> None:
        """The next entry of the turn's log, before the turn resumes. A question stays asked meanwhile."""
        match entry:
            case TurnEvent(at=at):
                self._at = at
            case StepBegun(kind="question"):
                self._open.setdefault(entry.key, (entry, self._at))
            case StepBegun():
                self._earlier[entry.key] = entry
            case StepEnded():
                self.end(entry)
            case _:
                pass

    def begin(self, begun: StepBegun, at: int) -> None:
        """A step begins, maybe again."""
        if begun.kind not in _NO_STEPS:
            self._open[begun.key] = begun, at

    def end(self, ended: StepEnded) -> StepBegun | None:
        """A step has ended; returns how it began, unless it has ended before."""
        earlier = self._earlier.pop(ended.key, None)
        begun, _ = self._open.pop(ended.key, (earlier, 0))
        return begun if begun is None or begun.kind not in _NO_STEPS else None
