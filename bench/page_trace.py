"""What the browser's own trace says of the page's main thread."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import msgspec

# The page's tasks, its frames, and each key from being pressed to being painted.
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
_MAIN = "CrRendererMain"
_TASKS = {"RunTask", "ThreadControllerImpl::RunTask"}
_FRAME = "FireAnimationFrame"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of the main thread, in milliseconds."""

    start: float
    end: float
    cpu: float

    def cpu_within(self, start: float, end: float) -> float:
        """The CPU it spent in a span, as if spent evenly."""
        shared = min(self.end, end) - max(self.start, start)
        return self.cpu * shared / (self.end - self.start) if shared > 0 else 0


@dataclass(frozen=True, slots=True)
class Span:
    """A key, from being pressed to being painted, or a frame, from the one before it."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened while it was taken; frames only where something asks for every one."""

    tasks: list[Task]
    keys: list[Span]
    frames: list[Span]

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Reads what `browser.stop_tracing()` gives."""
        events: list[dict[str, Any]] = msgspec.json.decode(content)["traceEvents"]
        threads = {(it["pid"], it["tid"]): it["args"]["name"] for it in events if it["name"] == "thread_name"}
        main = [it for it in events if threads.get((it["pid"], it["tid"])) == _MAIN]
        tasks = _outermost(
            Task(it["ts"] / 1000, (it["ts"] + it["dur"]) / 1000, it.get("tdur", 0) / 1000)
            for it in main
            if it["name"] in _TASKS and it.get("dur")
        )
        pressed = [
            (it["ts"] / 1000, it["args"]["data"]["duration"])
            for it in main
            if it["name"] == "EventTiming" and it["ph"] == "b" and it["args"]["data"]["type"] == "keydown"
        ]
        drawn = sorted(it["ts"] / 1000 for it in main if it["name"] == _FRAME)

        def span(at: float, wall: float) -> Span:
            return Span(wall, sum(it.cpu_within(at, at + wall) for it in tasks))

        return cls(
            tasks,
            [span(at, wall) for at, wall in pressed],
            [span(before, at - before) for before, at in pairwise(drawn)],
        )

    @property
    def cpu(self) -> float:
        """Milliseconds that the main thread worked."""
        return sum(it.cpu for it in self.tasks)


def _outermost(tasks: Iterable[Task]) -> list[Task]:
    """Those that no other contains: one task may be in the trace under two names."""
    kept: list[Task] = []
    for task in sorted(tasks, key=lambda it: (it.start, -it.end)):
        if not kept or task.start >= kept[-1].end:
            kept.append(task)
    return kept
