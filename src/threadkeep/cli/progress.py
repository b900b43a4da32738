"""A command's progress: a bar in a terminal, plain lines elsewhere."""

import sys
from typing import TextIO

COLUMNS = 24
LINE_EVERY = 10  # percent


class Progress:
    """Shows progress on a stream, at most once per percent."""

    def __init__(self, verb: str, stream: TextIO | None = None) -> None:
        self._verb = verb
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._shown_percent = -1

    def show(self, done: int, total: int) -> None:
        """Shows that this much is done."""
        percent = min(done * 100 // total, 100) if total else 100
        if percent == self._shown_percent:
            return
        if self._is_terminal:
            full = percent * COLUMNS // 100
            self._stream.write(f"\r{self._verb} [{'█' * full}{' ' * (COLUMNS - full)}] {percent:3} %")
        elif percent // LINE_EVERY > self._shown_percent // LINE_EVERY:
            self._stream.write(f"{self._verb}: {percent} %\n")
        self._shown_percent = percent
        self._stream.flush()

    def end(self) -> None:
        """Leaves the line of the bar."""
        if self._is_terminal and self._shown_percent >= 0:
            self._stream.write("\n")
            self._stream.flush()
