"""What the browser's own trace says of the page's main thread."""

from dataclasses import dataclass
from typing import Any, Self

import msgspec

# The page's tasks, and each key from being pressed to being painted.
CATEGORIES = ["toplevel", "devtools.timeline"]
_MAIN = "CrRendererMain"
_TASK = "ThreadControllerImpl::RunTask"


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
class Key:
    """A key, from being pressed to being painted."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened while it was taken."""

    tasks: list[Task]
    keys: list[Key]

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Reads what `browser.stop_tracing()` gives."""
        events: list[dict[str, Any]] = msgspec.json.decode(content)["traceEvents"]
        threads = {(it["pid"], it["tid"]): it["args"]["name"] for it in events if it["name"] == "thread_name"}
        main = [it for it in events if threads.get((it["pid"], it["tid"])) == _MAIN]
        tasks = [
            Task(it["ts"] / 1000, (it["ts"] + it["dur"]) / 1000, it["tdur"] / 1000)
            for it in main
            if it["name"] == _TASK and it.get("tdur") and it["dur"]
        ]
        pressed = [
            (it["ts"] / 1000, it["args"]["data"]["duration"])
            for it in main
            if it["name"] == "EventTiming" and it["ph"] == "b" and it["args"]["data"]["type"] == "keydown"
        ]
        keys = [Key(wall, sum(it.cpu_within(at, at + wall) for it in tasks)) for at, wall in pressed]
        return cls(tasks, keys)

    @property
    def cpu(self) -> float:
        """Milliseconds that the main thread worked."""
        return sum(it.cpu for it in self.tasks)
