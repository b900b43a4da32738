"""Checks an installation: what is fine, what isn't, how to fix it. Changes nothing, shows no secrets."""

from collections.abc import AsyncGenerator, Mapping

from threadkeep.bootstrap import build_secret_box
from threadkeep.clock import system_clock
from threadkeep.doctor.agents import check_agents
from threadkeep.doctor.database import (
    check_bus,
    check_connections,
    check_database,
    check_retention,
    check_secret_key,
    unreachable_database,
)
from threadkeep.doctor.finding import Finding
from threadkeep.doctor.folder import check_folder
from threadkeep.doctor.installed import check_extras, check_page
from threadkeep.doctor.internet import check_internet, check_invitations
from threadkeep.doctor.model import check_models
from threadkeep.doctor.prices import check_prices
from threadkeep.doctor.providers import check_providers
from threadkeep.doctor.sandbox import check_sandbox, check_workers
from threadkeep.doctor.servers import check_roles, check_rules, check_servers
from threadkeep.doctor.settings import check_settings
from threadkeep.domain.errors import SettingsError, StorageError
from threadkeep.settings import Settings
from threadkeep.storage.inspection import inspect_database


async def examine(
    settings: Settings, environment: Mapping[str, str], *, internet: bool = False
) -> AsyncGenerator[Finding]:
    """Runs all checks, one after the other; on request also those for a server on the internet."""
    for finding in check_settings(settings, environment):
        yield finding
    for finding in check_folder(settings):
        yield finding
    inspection = None
    try:
        box = build_secret_box(settings)
        inspection = await inspect_database(
            settings.database,
            schema=settings.database_schema,
            box=box,
            now=system_clock(),
            delete_after_days=settings.delete_after_days,
        )
    except (StorageError, SettingsError) as exc:
        yield Finding("database", "problem", exc.message, unreachable_database(environment))
    else:
        for finding in check_database(settings, inspection):
            yield finding
        for finding in check_connections(settings, inspection):
            yield finding
        if not settings.on_sqlite:
            yield await check_bus(settings)
        for finding in check_retention(settings, inspection):
            yield finding
        for finding in check_secret_key(settings, inspection, box.sealing_key):
            yield finding
    async for finding in check_providers(settings):
        yield finding
    async for finding in check_models(settings, inspection):
        yield finding
    for finding in await check_prices(settings, inspection):
        yield finding
    for finding in check_agents(settings):
        yield finding
    yield await check_sandbox(settings)
    yield check_workers()
    if inspection is not None:
        async for finding in check_servers(settings, inspection):
            yield finding
        for finding in check_rules(inspection):
            yield finding
    for finding in (*check_roles(settings), check_page(), *check_extras(settings)):
        yield finding
    if internet:
        for finding in (*check_internet(settings), check_invitations(inspection)):
            yield finding
