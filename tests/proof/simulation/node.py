"""A whole node of the product, on a simulated outside."""

import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

from tests.proof.simulation.bus import NodeBus
from tests.proof.simulation.database import NodeDatabase
from tests.proof.simulation.loop import Place
from tests.proof.simulation.model import NAME, SimulatedGateway
from tests.proof.simulation.world import InlinePrograms, SimulatedServers, World
from threadkeep.bootstrap.adapters import Adapters
from threadkeep.bootstrap.limits import build_spending
from threadkeep.bootstrap.services import start_services
from threadkeep.clock import Clock
from threadkeep.domain.caps import TurnCaps
from threadkeep.domain.model import GatewayConfig, GatewayKind
from threadkeep.domain.user import User, UserRole, user_id
from threadkeep.gateways.registry import ConfiguredGateway, GatewayRegistry
from threadkeep.handling.services import Services
from threadkeep.http.app import Threadkeep
from threadkeep.http.sign_in.methods import sign_in
from threadkeep.loops import Loops
from threadkeep.metrics import Metrics
from threadkeep.ports.models import model_state
from threadkeep.runtime.own_address import OwnAddress
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.replies.run_tokens import RunTokens
from threadkeep.settings import Settings
from threadkeep.storage.jobs import SqlJobs
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import store_on

ADMIN = "boss"


@cache
def usual_settings(budget: str | None) -> Settings:
    """Those of every node: what isn't the turns' business is off."""
    folder = tempfile.mkdtemp(prefix="threadkeep-proof-")
    return Settings.load(
        {},
        Path(os.devnull),
        data=Path(folder),
        gateway="openai",
        gateway_url="https://model.example/v1",
        gateway_api_key="sk-simulated",
        model=NAME,
        embedding_url="off",
        guide="off",
        check_agents=False,
        user_turns_per_minute=0,
        user_uploads_per_minute=0,
        user_writes_per_minute=0,
        user_running_turns=0,
        agents_patience_s=5.0,
        agents_pause_after_s=0.5,
        mcp_allow_private=True,
        **({"user_budget_day": budget} if budget else {}),
    )


@cache
def _key() -> str:
    return "c2ltdWxhdGVkLXNpbXVsYXRlZC1zaW11bGF0ZWQtMTI="


class SimulatedNode:
    """One node: started, serving, gone."""

    def __init__(
        self,
        place: Place,
        database: NodeDatabase,
        bus: NodeBus,
        gateway: SimulatedGateway,
        world: World,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self.place = place
        self.database = database
        self.bus = bus
        self._gateway = gateway
        self._world = world
        self._clock = clock
        self._settings = settings
        self._started = AsyncExitStack()
        self.services: Services | None = None
        self.app: Threadkeep | None = None
        self.is_serving = False

    async def start(self) -> None:
        """Starts all that `bootstrap` starts."""
        adapters = await self._adapters()
        self.services = services = await start_services(self._settings, adapters, self._started)

        async def ready() -> Services:
            return services

        @asynccontextmanager
        async def running() -> AsyncGenerator[None]:
            yield

        self.app = Threadkeep(
            self._settings,
            sign_in(self._settings, _user_of),
            ready,
            running,
            embedded=True,
            model_state=lambda: model_state(services.models),
            siblings=None,
            address=OwnAddress("http://threadkeep.example"),
        )
        self.is_serving = True

    async def _adapters(self) -> Adapters:
        database, settings, metrics = self.database, self._settings, Metrics()
        box = SecretBox((_key(),), None)
        store = await store_on(database, box, None)
        config = GatewayConfig(
            name="default", kind=GatewayKind.OPENAI, url=None, api_key=None, default_model=NAME, is_fixed=True
        )
        models = GatewayRegistry(lambda it: ConfiguredGateway(it, self._gateway, NAME), [config])
        programs = InlinePrograms(self._world.agents())
        self._started.push_async_callback(self.bus.close)
        self._started.push_async_callback(programs.close)
        return Adapters(
            store=store,
            jobs=SqlJobs(database),
            allowances=LocalAllowances(
                TurnCaps(at_once=0, per_minute=0, uploads_per_minute=0, writes_per_minute=0)
            ),
            spending=build_spending(settings, store, models, self._clock, metrics),
            bus=self.bus,
            models=models,
            embedder=None,
            vector_index=None,
            pool=cast("Any", SimulatedServers(self._world)),
            clock=self._clock,
            metrics=metrics,
            loops=Loops(),
            alone=False,
            programs=programs,
            built_in=InlinePrograms(()),
            run_tokens=RunTokens(box),
            address=OwnAddress("http://threadkeep.example"),
            on_program=lambda: None,
            is_token_due=lambda: False,
        )

    async def drain(self, grace_s: float) -> None:
        """Ends as a deploy ends it."""
        self.is_serving = False
        assert self.services is not None
        await self.services.drain(grace_s)
        await self.close()

    async def close(self) -> None:
        """Stops everything, in reverse order of its start."""
        self.is_serving = False
        await self._started.aclose()


def _user_of(request: Any) -> User | None:
    name = request.headers.get("x-user")
    if not name:
        return None
    return User(user_id(name), UserRole.ADMIN if name == ADMIN else UserRole.USER)
