"""What the programs of this node's turns do, step by step: for operators and for the metrics."""

from threadkeep.clock import Clock
from threadkeep.engine.journal import ReplayDiverged, StepBegun, StepEnded
from threadkeep.engine.loop import Together, TurnStep
from threadkeep.metrics import Metrics, StepCount
from threadkeep.runtime.running import NodeTurn


class StepWatch:
    """Looks at all that they record."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics

    def note(self, turn: NodeTurn, key: str, step: TurnStep) -> None:
        """The next of a turn's steps, about to be stored; `key` is its program's."""
        for entry in step.entries if isinstance(step, Together) else (step,):
            match entry:
                case StepBegun():
                    turn.steps.begin(entry, self._clock())
                case StepEnded():
                    if (begun := turn.steps.end(entry)) is not None:
                        self._metrics.step_ended(StepCount(key, begun.name, entry.status, begun.effect))
                case ReplayDiverged():
                    self._metrics.divergences[key] += 1
                case _:
                    pass
