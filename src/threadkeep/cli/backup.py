"""`threadkeep backup` and `restore`: a data folder as one file, and back."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from threadkeep.cli.commands import runs
from threadkeep.domain.data_folder import DATABASE
from threadkeep.domain.errors import SettingsError
from threadkeep.settings import Settings
from threadkeep.storage.database.archive import LeftOut
from threadkeep.storage.database.backup import back_up, restore


def add_backup(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _backup)
    command.add_argument("file", type=Path, help="the file to create")


def add_restore(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _restore)
    command.add_argument("file", type=Path, help="the backup")


def _backup(settings: Settings, given: argparse.Namespace) -> int:
    _check_database(settings, "pg_dump", "it and copy the data folder after the dump")
    backup = back_up(settings.data, given.file)
    _warn("the backup leaves out", backup.left_out)
    print(f"{given.file}: {backup.size / 1e6:.1f} MB. It contains the key to stored secrets; keep it safe.")
    return 0


def _restore(settings: Settings, given: argparse.Namespace) -> int:
    _check_database(settings, "pg_restore", "it and copy the data folder back")
    _warn("not restored:", restore(given.file, settings.data))
    print(f"Restored {given.file} to {settings.data}.")
    return 0


def _warn(what: str, left_out: Sequence[LeftOut]) -> None:
    for it in left_out:
        print(f"threadkeep: {what} {it.name!r}: {it.why}.", file=sys.stderr)


def _check_database(settings: Settings, tool: str, how: str) -> None:
    """Refuses a database outside the data folder, with what to do instead."""
    if settings.database_url is None:
        return
    if settings.on_sqlite:
        advice = f"Move the database to {settings.data / DATABASE} and unset THREADKEEP_DATABASE_URL."
    else:
        advice = f"{tool} does this on PostgreSQL: use {how}."
    raise SettingsError(f"This command is for the database in the data folder. {advice}")
