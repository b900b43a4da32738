"""How a command of the command line is declared."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.settings import Settings

Run = Callable[[Settings, argparse.Namespace], int]
"""Runs a command; returns the exit status."""

Report = Callable[[SettingsError, argparse.Namespace], int]
"""Explains why nothing can be done; returns the exit status."""


def refuse(error: ThreadkeepError, _: argparse.Namespace) -> int:
    """Prints the error in one line."""
    print(f"threadkeep: {error.message}", file=sys.stderr)
    return 1


def sentence(purpose: str) -> str:
    """A command's purpose as its own help says it."""
    return f"{purpose[0].upper()}{purpose[1:]}."


def add_data(command: argparse.ArgumentParser, default: str | None = None) -> None:
    """Adds `--data`, which every command has."""
    command.add_argument("--data", type=Path, default=default, help="data folder (.threadkeep)")


def text_of(path: Path) -> str:
    """A text file; `-` is what the command reads."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"Couldn't read {path}: {exc}.") from exc


def runs(
    command: argparse.ArgumentParser,
    run: Run,
    *,
    reports_settings: bool = False,
    report_refused: Report = refuse,
) -> None:
    """Sets what a command does.

    A command with `reports_settings` includes mistyped ones in its output; `report_refused` handles unusable
    settings.
    """
    command.set_defaults(run=run, reports_settings=reports_settings, report_refused=report_refused)
