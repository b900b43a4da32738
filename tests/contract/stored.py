"""A store, and where a test finds the bytes that it has stored."""

from dataclasses import dataclass
from pathlib import Path

from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import Store


@dataclass
class Stored:
    """A store and its database; without a folder the bytes are in the database's tables."""

    store: Store
    database: Database
    folder: Path | None

    def files(self) -> list[Path]:
        """Every file in the folder."""
        assert self.folder
        return [file for file in self.folder.rglob("*") if file.is_file()]
