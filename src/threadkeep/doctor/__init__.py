"""Looks Threadkeep over: what is well, what is not, what to do about it. Changes nothing, shows no secret."""

from collections.abc import AsyncGenerator, Mapping

from threadkeep.bootstrap import build_secret_box
from threadkeep.doctor.database import check_database, check_secret_key
from threadkeep.doctor.finding import Finding
from threadkeep.doctor.folder import check_folder
from threadkeep.doctor.installed import check_extras, check_page
from threadkeep.doctor.model import check_model
from threadkeep.doctor.servers import check_roles, check_servers
from threadkeep.doctor.settings import check_settings
from threadkeep.domain.errors import SettingsError, StorageError
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.look import look_at


async def examine(settings: Settings, environment: Mapping[str, str]) -> AsyncGenerator[Finding]:
    """Looks at everything, one thing after the other."""
    for finding in check_settings(settings, environment):
        yield finding
    for finding in check_folder(settings):
        yield finding
    look = None
    try:
        box = build_secret_box(settings)
        look = await look_at(settings.database, schema=settings.database_schema, box=box)
    except (StorageError, SettingsError) as exc:
        advice = f"Check {PREFIX}DATABASE_URL, and that the database runs and lets this user in."
        yield Finding("database", "problem", exc.message, advice)
    else:
        for finding in (*check_database(look), *check_secret_key(settings, look, box.sealing_key)):
            yield finding
    yield await check_model(settings)
    if look is not None:
        async for finding in check_servers(settings, look):
            yield finding
    for finding in (*check_roles(settings), check_page(), *check_extras(settings)):
        yield finding
