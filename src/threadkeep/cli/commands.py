"""What every command of the command line has."""

import argparse
from collections.abc import Callable
from pathlib import Path

from threadkeep.settings import Settings

Run = Callable[[Settings, argparse.Namespace], int]
"""Does what was asked with what was given; the status with which the process ends."""


class Commands:
    """The commands of a parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(required=True, metavar="COMMAND")
        self._shared = argparse.ArgumentParser(add_help=False)
        self._shared.add_argument("--data", type=Path, help="data folder (.threadkeep)")

    def add(self, name: str, run: Run, purpose: str) -> argparse.ArgumentParser:
        """Adds a command; whoever adds it gives it its arguments."""
        command = self._parsers.add_parser(name, parents=[self._shared], help=purpose)
        command.set_defaults(run=run)
        return command
