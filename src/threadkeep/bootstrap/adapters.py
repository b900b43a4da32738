"""What the services need from the outside, opened."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from threadkeep.agents import Agent as CodeAgent
from threadkeep.agents import LocalPrograms
from threadkeep.bootstrap.built_in import built_in_programs
from threadkeep.bootstrap.documents import build_embedder
from threadkeep.bootstrap.limits import build_allowances, build_spending
from threadkeep.bootstrap.models import build_models
from threadkeep.bootstrap.servers import build_pool
from threadkeep.bootstrap.storage import build_secret_box, open_timed
from threadkeep.clock import Clock, system_clock
from threadkeep.gateways.registry import GatewayRegistry
from threadkeep.loops import Loops
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerEnvironment
from threadkeep.metrics import Metrics
from threadkeep.ports.allowances import Allowances
from threadkeep.ports.bus import Bus
from threadkeep.ports.embedder import Embedder
from threadkeep.runtime.own_address import OwnAddress
from threadkeep.runtime.spending import Spending
from threadkeep.services.replies.run_tokens import RunTokens
from threadkeep.settings import Settings
from threadkeep.storage.database.bus import bus_on
from threadkeep.storage.documents.vector_index import PgVector, vector_index_on
from threadkeep.storage.jobs import SqlJobs
from threadkeep.storage.store import Store, store_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The open adapters that the services use."""

    store: Store
    jobs: SqlJobs
    allowances: Allowances
    spending: Spending
    bus: Bus
    models: GatewayRegistry
    embedder: Embedder | None
    vector_index: PgVector | None
    pool: Pool
    clock: Clock
    metrics: Metrics
    loops: Loops
    alone: bool
    """Whether no other node works on the database."""
    programs: LocalPrograms
    """The agents in code of this process."""
    built_in: LocalPrograms
    """Our own programs, in a thread of their own."""
    run_tokens: RunTokens
    address: OwnAddress
    on_program: Callable[[], None]
    """Called before a program is saved or started: without sign-in, it would be the admin `local`."""
    is_token_due: Callable[[], bool]
    """Whether the first call makes the server require its token."""


async def open_adapters(
    settings: Settings,
    environment: ServerEnvironment,
    agents: Sequence[CodeAgent],
    address: OwnAddress,
    opened: AsyncExitStack,
) -> Adapters:
    """Opens them one after the other; `opened` closes them in reverse order."""
    metrics, loops = Metrics(), Loops()
    database = await open_timed(settings, metrics, loops)
    opened.push_async_callback(database.close)
    box = build_secret_box(settings)
    store = await store_on(database, box, settings.payload_folder)
    bus = bus_on(database, loops, polls=settings.bus_url is not None)
    opened.push_async_callback(bus.close)
    pool = build_pool(settings, environment, loops)
    opened.push_async_callback(pool.close)
    models = build_models(settings)
    opened.push_async_callback(models.close)
    embedder = build_embedder(settings)
    if embedder is not None:
        opened.push_async_callback(embedder.close)
    ours = built_in_programs(settings)
    programs = LocalPrograms(agents, built_in=ours)
    opened.push_async_callback(programs.close)
    built_in = LocalPrograms(ours)
    opened.push_async_callback(built_in.close)
    return Adapters(
        store=store,
        jobs=SqlJobs(database),
        allowances=build_allowances(settings, database),
        spending=build_spending(settings, store, models, system_clock, metrics),
        bus=bus,
        models=models,
        embedder=embedder,
        vector_index=await vector_index_on(database, store.chunks),
        pool=pool,
        clock=system_clock,
        metrics=metrics,
        loops=loops,
        alone=database.dialect == "sqlite",
        programs=programs,
        built_in=built_in,
        run_tokens=RunTokens(box),
        address=address,
        on_program=environment.on_program,
        is_token_due=environment.is_token_due,
    )
