"""How nodes wake each other: within one process, or through the PostgreSQL database that they share."""

from threadkeep.loops import Loops
from threadkeep.storage.database.bus.listening import PostgresBus
from threadkeep.storage.database.bus.local import LocalBus
from threadkeep.storage.database.bus.polling import PollingBus
from threadkeep.storage.database.connector import Database

__all__ = ["LocalBus", "PollingBus", "PostgresBus", "bus_on"]


def bus_on(database: Database, loops: Loops, *, polls: bool = False) -> LocalBus:
    """The bus for the processes that share a database; one that `polls` does without LISTEN."""
    if database.dialect == "sqlite":
        return LocalBus()
    return PollingBus(database, loops) if polls else PostgresBus(database, loops)
