"""The database, and what is stored outside of it."""

from threadkeep.domain.data_folder import SECRET_KEY
from threadkeep.loops import Loops
from threadkeep.metrics import Metrics
from threadkeep.settings import Settings
from threadkeep.storage.database.connector import Database
from threadkeep.storage.database.folder import make_private
from threadkeep.storage.database.timed import TimedDatabase
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import open_database


def build_secret_box(settings: Settings) -> SecretBox:
    """With SQLite, a key can be created in the data folder; otherwise the settings must provide it."""
    alone = settings.on_sqlite
    return SecretBox(settings.secret_keys, settings.data / SECRET_KEY if alone else None)


async def open_migrated(settings: Settings, loops: Loops | None = None) -> Database:
    """The database, migrated."""
    make_private(settings.data)
    return await open_database(
        settings.database,
        schema=settings.database_schema,
        pool_size=settings.database_pool_size,
        user_table=settings.user_table,
        loops=loops,
    )


async def open_timed(settings: Settings, metrics: Metrics, loops: Loops) -> Database:
    """The database, migrated, with its queries timed."""
    opened = await open_migrated(settings, loops)
    latency = metrics.store_latency
    return TimedDatabase(opened, latency["read"].observe, latency["write"].observe)
