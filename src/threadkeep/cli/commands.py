"""What every command of the command line says of itself."""

import argparse
import sys
from collections.abc import Callable

from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.settings import Settings

Run = Callable[[Settings, argparse.Namespace], int]
"""Does what was asked with what was given; the status with which the process ends."""

Report = Callable[[SettingsError, argparse.Namespace], int]
"""Says why nothing can be done; the status with which the process ends."""


def refuse(error: ThreadkeepError, _: argparse.Namespace) -> int:
    """Says it in one line."""
    print(f"threadkeep: {error.message}", file=sys.stderr)
    return 1


def runs(
    command: argparse.ArgumentParser,
    run: Run,
    *,
    reports_settings: bool = False,
    report_refused: Report = refuse,
) -> None:
    """Sets what a command does.

    A command that `reports_settings` names mistyped ones among its own lines; `report_refused` is for
    settings that cannot be used.
    """
    command.set_defaults(run=run, reports_settings=reports_settings, report_refused=report_refused)
