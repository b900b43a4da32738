"""Notices when agents' code blocks the event loop that all of them share, and says where."""

import asyncio
import logging
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from threadkeep.domain.agent import BlockedLoop

log = logging.getLogger("threadkeep.agents")

BLOCKED_AFTER_S = 1.0
_LOOKS_EVERY_S = 0.25
_ADVICE = (
    "what blocks belongs in a step whose function is `def` and runs in a thread, or in `asyncio.to_thread`"
)
_NOT_THE_PROGRAMS = tuple({*sysconfig.get_paths().values(), str(Path(__file__).parent)})


class Watchdog:
    """Asks a loop for a sign of life again and again, from a thread of its own."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread_id: Callable[[], int | None],
        who: Callable[[], str | None],
        blocked_after_s: float = BLOCKED_AFTER_S,
    ) -> None:
        self._loop = loop
        self._thread_id = thread_id
        self._who = who
        self._after_s = blocked_after_s
        self._asked_at: float | None = None
        self._reported: str | None = None
        self._closed = threading.Event()
        self._total_s = 0.0
        threading.Thread(target=self._watch, name="agents-watchdog", daemon=True).start()

    @property
    def blocked(self) -> BlockedLoop | None:
        """Who blocks the loop, and where; None if it answers."""
        if not (silent_s := self.blocked_s):
            return None
        return BlockedLoop(self._who(), self._place(), round(silent_s * 1000))

    @property
    def blocked_s(self) -> float:
        """For how long the loop has not answered; 0 if it does."""
        asked_at = self._asked_at
        silent_s = 0.0 if asked_at is None else time.monotonic() - asked_at
        return silent_s if silent_s >= self._after_s else 0.0

    @property
    def total_s(self) -> float:
        """For how long the loop has been blocked so far, all times together."""
        return self._total_s + (self.blocked_s if self._reported is not None else 0.0)

    def close(self) -> None:
        """Ends the watch."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(min(_LOOKS_EVERY_S, self._after_s / 2)):
            if self._asked_at is None:
                self._asked_at = time.monotonic()
                try:
                    self._loop.call_soon_threadsafe(self._note_life)
                except RuntimeError:  # the loop is closed
                    return
            elif self.blocked_s and self._reported is None:
                self._reported = f'agent "{self._who() or "?"}"'
                log.warning(
                    "%s blocks the event loop (%s) for %.0f s: %s",
                    self._reported,
                    self._place(),
                    self.blocked_s,
                    _ADVICE,
                )

    def _note_life(self) -> None:
        silent_s, self._asked_at = self.blocked_s, None
        if self._reported is not None:
            self._total_s += silent_s
            log.warning("%s no longer blocks the event loop; it did for %.1f s", self._reported, silent_s)
            self._reported = None

    def _place(self) -> str:
        """Where the loop's thread is: the innermost line of the program's own."""
        frame = sys._current_frames().get(self._thread_id() or 0)  # pyright: ignore[reportPrivateUsage]
        innermost = frame
        while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_PROGRAMS):
            frame = frame.f_back
        return _describe(frame or innermost)


def _describe(frame: FrameType | None) -> str:
    if frame is None:
        return "somewhere"
    code = frame.f_code
    return f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
