"""`threadkeep settings`: every setting, its value and what it does."""

import argparse

from threadkeep.cli.commands import runs
from threadkeep.settings import PREFIX, Settings


def add_settings(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _settings)
    command.add_argument("--markdown", action="store_true", help="print the table in docs/operating.md")


def _settings(settings: Settings, given: argparse.Namespace) -> int:
    if given.markdown:
        print("| setting | value | what it does |\n|---|---|---|")
    for setting in settings.describe():
        value = "(set, not shown)" if setting.secret and setting.value else _shown(setting.value)
        if given.markdown:
            print(f"| `{PREFIX}{setting.name.upper()}` | {value} | {setting.documentation} |")
            continue
        print(f"{PREFIX}{setting.name.upper()} = {value}\n    {setting.documentation}")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "(none)"  # pyright: ignore[reportUnknownArgumentType]
    return "(not set)" if value is None else str(value)
