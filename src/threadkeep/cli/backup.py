"""`threadkeep backup` and `restore`: a data folder as one file, and back."""

import argparse
from pathlib import Path

from threadkeep.cli.commands import runs
from threadkeep.domain.errors import SettingsError
from threadkeep.settings import Settings
from threadkeep.storage.backup import back_up, restore


def add_backup(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _backup)
    command.add_argument("file", type=Path, help="the file to create")


def add_restore(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _restore)
    command.add_argument("file", type=Path, help="the backup")


def _backup(settings: Settings, given: argparse.Namespace) -> int:
    _check_sqlite(settings, "pg_dump")
    size = back_up(settings.data, given.file)
    print(f"{given.file}: {size / 1e6:.1f} MB. It contains the key to stored secrets; keep it safe.")
    return 0


def _restore(settings: Settings, given: argparse.Namespace) -> int:
    _check_sqlite(settings, "pg_restore")
    restore(given.file, settings.data)
    print(f"Restored {given.file} to {settings.data}.")
    return 0


def _check_sqlite(settings: Settings, instead: str) -> None:
    if settings.database_url is not None:
        raise SettingsError(
            f"This command is for the database in the data folder. For other databases, use {instead}."
        )
