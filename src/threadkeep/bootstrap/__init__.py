"""Builds the adapters and passes them to the services; the only package that knows them all.

    storage.py    the database and the key of its secrets
    models.py     the gateways and their models
    documents.py  what reads, embeds and searches documents and files
    servers.py    agents' MCP servers: which may run, and the pool that runs them
    limits.py     the operator's limits
    adapters.py   all of these, opened
    tools.py      our own tools beside those of the servers
    programs.py   the agents that are programs
    built_in.py   our own programs, for agents without code
    providers.py  the providers with which people sign in
    jobs.py       work beside requests
    services.py   the services
    runtime.py    all of that, started on first use and stopped in reverse order
    stores.py     the store alone, for commands

`create_app` puts the HTTP app in front.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from threadkeep.agents import Agent
from threadkeep.bootstrap.documents import file_intake
from threadkeep.bootstrap.models import (
    build_models,
    connect,
    endpoint_of,
    gateway_configs,
    has_model,
    is_demonstration,
)
from threadkeep.bootstrap.programs import load_agents
from threadkeep.bootstrap.providers import build_providers
from threadkeep.bootstrap.runtime import Runtime
from threadkeep.bootstrap.servers import build_catalog, build_server_environment
from threadkeep.bootstrap.storage import build_secret_box
from threadkeep.bootstrap.stores import (
    check_has_database,
    opened_jobs_and_store,
    reading_store,
    store_beside_server,
)
from threadkeep.http.app import Threadkeep
from threadkeep.http.metrics import render
from threadkeep.http.siblings import Siblings
from threadkeep.http.sign_in.methods import CurrentUser, sign_in
from threadkeep.runtime.own_address import OwnAddress
from threadkeep.settings import Settings

__all__ = [
    "Runtime",
    "build_catalog",
    "build_models",
    "build_providers",
    "build_secret_box",
    "build_server_environment",
    "check_has_database",
    "connect",
    "create_app",
    "endpoint_of",
    "file_intake",
    "gateway_configs",
    "has_model",
    "is_demonstration",
    "load_agents",
    "opened_jobs_and_store",
    "reading_store",
    "store_beside_server",
]


def create_app(
    settings: Settings | None = None,
    *,
    current_user: CurrentUser | None = None,
    agents: Sequence[Agent] = (),
    siblings: Siblings | None = None,
) -> Threadkeep:
    """Threadkeep as an ASGI app. `current_user(request)` lets a host application identify the user.

    `agents` are functions that are agents (`threadkeep.agents`), beside those that the settings name.
    `siblings` is for `threadkeep serve`: the processes of the same server.
    """
    settings = settings or Settings.load()
    agents = [*load_agents(settings), *agents]
    door = sign_in(settings, current_user)
    address = OwnAddress(settings.public_url)
    is_local = current_user is None and not settings.signs_in
    runtime = Runtime(settings, agents, address, is_local=is_local)

    @asynccontextmanager
    async def running() -> AsyncGenerator[None]:
        services = await runtime.services()
        if siblings is not None:
            siblings.respond_with(lambda: "".join(render(services)))
        try:
            yield
        finally:
            await runtime.close()
            await door.close()

    return Threadkeep(
        settings,
        door,
        runtime.services,
        running,
        embedded=current_user is not None,
        model_state=runtime.model_state,
        siblings=siblings,
        address=address,
    )
