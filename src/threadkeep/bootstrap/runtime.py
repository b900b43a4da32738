"""Everything that runs while the app does."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from threadkeep.agents import Agent as CodeAgent
from threadkeep.bootstrap.adapters import open_adapters
from threadkeep.bootstrap.models import build_models
from threadkeep.bootstrap.servers import build_server_environment
from threadkeep.bootstrap.services import start_services
from threadkeep.handling.services import Services
from threadkeep.http.sign_in.local_token import is_token_required, require_token
from threadkeep.ports.models import ModelState, model_state
from threadkeep.program_log import about
from threadkeep.runtime.own_address import OwnAddress
from threadkeep.settings import Settings


class Runtime:
    """Everything that runs while the app does. Starts on first use: a host may not run our lifespan."""

    def __init__(
        self,
        settings: Settings,
        agents: Sequence[CodeAgent] = (),
        address: OwnAddress | None = None,
        *,
        is_local: bool,
    ) -> None:
        self._settings = settings
        self._agents = agents
        self._address = address or OwnAddress(settings.public_url)
        environment = build_server_environment(settings, settings.workspaces, closes_ports=is_local)
        # Without sign-in, a program would be the admin `local`, and can't tell us the token.
        on_program = partial(require_token, settings.data)
        self._environment = (
            replace(environment, on_program=on_program, is_token_due=self._is_token_due)
            if is_local
            else environment
        )
        self._services: Services | None = None
        self._starting = asyncio.Lock()
        self._closing = AsyncExitStack()

    async def services(self) -> Services:
        """The services, started if necessary."""
        if self._services is None:
            async with self._starting:
                if self._services is None:
                    with about():  # not about the first request, which happens to start them
                        self._services = await self._start()
        return self._services

    def model_state(self) -> ModelState:
        """Which model replies where an agent names none; before the start, as the settings have it."""
        return model_state(self._services.models if self._services else build_models(self._settings))

    def _is_token_due(self) -> bool:
        """Whether the first program makes the server require its token."""
        return not self._settings.require_token and not is_token_required(self._settings.data)

    async def close(self) -> None:
        """Stops everything, in reverse order of its start."""
        self._services = None
        await self._closing.aclose()

    async def _start(self) -> Services:
        async with AsyncExitStack() as started:
            adapters = await open_adapters(
                self._settings, self._environment, self._agents, self._address, started
            )
            services = await start_services(self._settings, adapters, started)
            self._closing = started.pop_all()
        return services
