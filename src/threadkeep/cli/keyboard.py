"""Keyboard input: whole lines, even while an answer arrives."""

import importlib
import os
import select
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

LOOK_EVERY_S = 0.05
MOST_LINE_BYTES = 65_536


class NoLongerAsked(Exception):
    """The question was answered elsewhere, or no longer needs an answer."""


class Keyboard:
    """The terminal's keyboard, or a pipe."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._termios: Any = None
        self._flags: Any = None
        """The terminal's normal flags, while its echo is off."""
        if sys.stdin.isatty():
            with suppress(ImportError):  # as on Windows
                self._termios = importlib.import_module("termios")

    @property
    def can_look(self) -> bool:
        """Whether lines can be read while other things happen."""
        return self._termios is not None

    @contextmanager
    def unseen(self) -> Generator[None]:
        """Turns the echo off, so that typing doesn't appear in the answer; the next prompt shows it."""
        if self._termios is None:
            yield
            return
        self._flags = self._termios.tcgetattr(sys.stdin)
        self._show_keys(is_shown=False)
        try:
            yield
        finally:
            self._show_keys(is_shown=True)
            self._flags = None

    def line(self, prompt: str, *, begin_with: str = "") -> str:
        """The next line, which may begin with an editable text; EOFError at the end of input."""
        return _edit(prompt, begin_with) if begin_with and self.is_terminal else input(prompt).strip()

    def look(self) -> str | None:
        """A line, if one is typed soon; EOFError at the end of input."""
        if not select.select([sys.stdin], [], [], LOOK_EVERY_S)[0]:
            return None
        line = os.read(sys.stdin.fileno(), MOST_LINE_BYTES)
        if not line:
            raise EOFError
        return line.decode("utf-8", "replace")

    def ask(self, prompt: str, is_asked: Callable[[], bool], *, begin_with: str = "") -> str:
        """A line in answer to a prompt, which may begin with an editable text.

        EOFError at the end of input, NoLongerAsked as soon as `is_asked` says so.
        """
        if self._flags is None:
            return input(prompt if self.is_terminal else "").strip()
        # What was typed before the question appeared isn't an answer to it.
        self._termios.tcflush(sys.stdin, self._termios.TCIFLUSH)
        self._show_keys(is_shown=True)
        try:
            if begin_with:
                return _edit(prompt, begin_with)
            return self._wait_for_line(prompt, is_asked)
        except (KeyboardInterrupt, NoLongerAsked):
            sys.stdout.write("\n")
            sys.stdout.flush()
            raise
        finally:
            self._show_keys(is_shown=False)

    def _wait_for_line(self, prompt: str, is_asked: Callable[[], bool]) -> str:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        while is_asked():
            if (line := self.look()) is not None:
                return line.strip()
        raise NoLongerAsked

    def _show_keys(self, *, is_shown: bool) -> None:
        flags = self._flags
        if not is_shown:
            flags = [*flags[:3], flags[3] & ~self._termios.ECHO, *flags[4:]]
        self._termios.tcsetattr(sys.stdin, self._termios.TCSANOW, flags)


def _edit(prompt: str, text: str) -> str:
    """A line that begins with a text, if the system supports line editing."""
    try:
        readline = importlib.import_module("readline")
    except ImportError:
        return input(prompt).strip()
    readline.set_startup_hook(lambda: readline.insert_text(text))
    try:
        return input(prompt).strip()
    finally:
        readline.set_startup_hook(None)
