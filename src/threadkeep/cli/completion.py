"""Tab completion in `threadkeep chat`: commands, and paths of files to attach."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = "/file "
_LAST_PATH = re.compile(r"""(?:"[^"]*|'[^']*|(?:\\.|[^\s\\"'])*)$""")
_NEEDS_ESCAPE = re.compile(r"""([\s\\"'$&;()<>|*?`!#\[\]{}])""")


def complete_with(readline: Any, commands: Sequence[str]) -> None:
    """Makes the line editor complete commands and paths."""
    found: list[str] = []

    def complete(_: str, state: int) -> str | None:
        if state == 0:
            line, begins_at = readline.get_line_buffer()[: readline.get_endidx()], readline.get_begidx()
            found[:] = [whole[begins_at:] for whole in completions(line, commands)]
        return found[state] if state < len(found) else None

    readline.set_completer_delims(" \t\n/")
    readline.set_completer(complete)
    is_libedit = "libedit" in (readline.__doc__ or "")  # as on macOS
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")


def completions(line: str, commands: Sequence[str]) -> list[str]:
    """The possible completions of a line."""
    if not line.startswith(FILE):
        return [command for command in commands if line and command.startswith(line)]
    typed = _LAST_PATH.search(line, len(FILE))
    begin = line if typed is None else line[: typed.start()]
    return [begin + path for path in _paths("" if typed is None else typed[0])]


def _paths(typed: str) -> list[str]:
    """The paths that begin as typed, with the same quotes; a folder ends with a slash."""
    quote = typed[:1] if typed[:1] in {'"', "'"} else ""
    folder, slash, begin = typed.removeprefix(quote).rpartition("/")
    wanted, place = _plain(begin, quote), Path(_plain(folder + slash, quote) or ".").expanduser()
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        quote + folder + slash + _escaped(entry.name, quote) + ("/" if entry.is_dir() else quote or " ")
        for entry in entries
        if entry.name.startswith(wanted) and (wanted.startswith(".") or not entry.name.startswith("."))
    ]


def _plain(text: str, quote: str) -> str:
    return text if quote else re.sub(r"\\(.)", r"\1", text)


def _escaped(name: str, quote: str) -> str:
    return name if quote else _NEEDS_ESCAPE.sub(r"\\\1", name)
