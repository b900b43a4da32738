"""Builds the adapters and passes them to the services; the only module that knows them all."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from threadkeep.clock import system_clock
from threadkeep.domain.caps import OperatorCaps, TurnCaps
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.data_folder import SECRET_KEY, UPLOADS
from threadkeep.domain.errors import GatewayNotConfigured
from threadkeep.domain.guide import GUIDE_MODEL
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.domain.workspace import Workspaces
from threadkeep.fair_slots import FairSlots
from threadkeep.files.image_preparer import ProcessImagePreparer
from threadkeep.files.pdf_inspector import ProcessPdfInspector
from threadkeep.gateways.anthropic import ANTHROPIC
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.guide import GuideGateway
from threadkeep.gateways.llama import WEIGHTS_PACKAGE
from threadkeep.gateways.local import LocalGateway
from threadkeep.gateways.openai import OPENAI
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.http.app import Threadkeep
from threadkeep.http.sign_in.local_token import require_token
from threadkeep.http.sign_in.methods import CurrentUser, sign_in
from threadkeep.jobs.documents import EMBED_JOB, READ_JOB, DocumentJobs
from threadkeep.jobs.hourly import Hourly, HourlyJobs
from threadkeep.jobs.queue import Jobs
from threadkeep.jobs.titles import TITLE_JOB, Titles
from threadkeep.log.replies import written_so_far
from threadkeep.logs import about
from threadkeep.loops import Loops
from threadkeep.mcp.agent_tools import AgentTools
from threadkeep.mcp.catalog import Catalog
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.personal import PersonalServers
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerEnvironment
from threadkeep.mcp.processes.sandbox import Sandbox
from threadkeep.mcp.promptx_command import PromptXCommand
from threadkeep.metrics import Metrics
from threadkeep.ports.allowances import Allowances
from threadkeep.ports.bus import Bus
from threadkeep.ports.embedder import Embedder
from threadkeep.ports.gateway import Gateway, Models
from threadkeep.ports.jobs import JobStore
from threadkeep.ports.retriever import Retriever, VectorIndex
from threadkeep.ports.roles import Roles
from threadkeep.ports.store import Store
from threadkeep.ports.tools import ToolServer
from threadkeep.retrieval.embed import EndpointEmbedder, bundled_embedder
from threadkeep.retrieval.extractor import ProcessExtractor
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.runtime.node import Node
from threadkeep.runtime.user_events import UserEvents
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.search import terms as tokens
from threadkeep.services.agent_copies import AgentCopies
from threadkeep.services.agents import Agents
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.approvals import Approvals
from threadkeep.services.branches import Branches
from threadkeep.services.briefings import Briefings
from threadkeep.services.compactions import COMPACTION_JOB, Compactions
from threadkeep.services.conversations import Conversations
from threadkeep.services.documents import Documents
from threadkeep.services.executions import Executions
from threadkeep.services.file_intake import FileIntake
from threadkeep.services.files import Files
from threadkeep.services.history import History
from threadkeep.services.mcp_servers import McpServers
from threadkeep.services.model_replies import ModelReplies
from threadkeep.services.model_requests import ModelRequests
from threadkeep.services.passages import Passages
from threadkeep.services.prompts import Prompts
from threadkeep.services.queue import Queue
from threadkeep.services.receipts import Receipts
from threadkeep.services.reports import Reports
from threadkeep.services.resumed_turns import ResumedTurns
from threadkeep.services.running_turns import RunningTurns
from threadkeep.services.sending import Sending
from threadkeep.services.services import Services
from threadkeep.services.turn_starts import TurnStarts
from threadkeep.services.turns import Turns
from threadkeep.services.usage import Usages
from threadkeep.services.users import Users
from threadkeep.settings import Settings
from threadkeep.storage.allowances import SqlAllowances
from threadkeep.storage.database.bus import bus_on
from threadkeep.storage.database.connector import Database
from threadkeep.storage.database.folder import make_private
from threadkeep.storage.database.timed import TimedDatabase
from threadkeep.storage.document_files import FolderDocumentFiles
from threadkeep.storage.jobs import SqlJobs
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import open_database, open_snapshot, store_on, store_reading
from threadkeep.storage.vector_index import vector_index_on
from threadkeep.tools.charts import ChartServer
from threadkeep.tools.files import FilesServer
from threadkeep.tools.guide import GuideServer
from threadkeep.tools.history import HistoryServer
from threadkeep.tools.promptx import TOOLS as PROMPTX_TOOLS
from threadkeep.tools.promptx import PromptXServer
from threadkeep.tools.questions import QuestionServer
from threadkeep.tools.results import ResultsServer
from threadkeep.tools.retriever import RetrieverServer
from threadkeep.tools.roles import WorkspaceRoles

log = logging.getLogger(__name__)

HOUR_MS = 60 * 60 * 1000
PROVIDER_APIS = {api.name: api for api in (ANTHROPIC, OPENAI)}


def create_app(settings: Settings | None = None, *, current_user: CurrentUser | None = None) -> Threadkeep:
    """Threadkeep as an ASGI app. `current_user(request)` lets a host application identify the user."""
    settings = settings or Settings.load()
    door = sign_in(settings, current_user)
    runtime = Runtime(settings, is_local=current_user is None and not settings.signs_in)

    @asynccontextmanager
    async def running() -> AsyncGenerator[None]:
        await runtime.services()
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
        is_demonstration=is_demonstration(settings),
    )


def has_model(settings: Settings) -> bool:
    """Whether a model is available: by key, by address, or in this process."""
    if settings.gateway == "local":
        return bool(settings.model) or find_spec(WEIGHTS_PACKAGE) is not None
    return bool(settings.gateway_api_key or settings.gateway_url)


def is_demonstration(settings: Settings) -> bool:
    """Whether the bundled small model answers."""
    return settings.gateway == "local" and settings.model is None and has_model(settings)


def has_guide(settings: Settings) -> bool:
    """Whether there is an agent that needs no model."""
    return is_demonstration(settings) if settings.guide == "auto" else settings.guide == "on"


def build_gateway(settings: Settings) -> Gateway | None:
    """The gateway that the settings select; None if there is none."""
    if not has_model(settings):
        return None
    if settings.gateway == "local":
        return LocalGateway(Path(settings.model) if settings.model else None)
    return ProviderGateway(PROVIDER_APIS[settings.gateway], build_endpoint(settings))


def build_endpoint(settings: Settings) -> Endpoint:
    """Where the provider's models are."""
    api = PROVIDER_APIS[settings.gateway]
    return Endpoint(
        url=settings.gateway_url or api.default_url,
        api_key=settings.gateway_api_key or "",
        model=settings.model or api.default_model,
        images=settings.model_images,
        pdfs=settings.model_pdfs,
    )


def build_secret_box(settings: Settings) -> SecretBox:
    """With SQLite, a key can be created in the data folder; otherwise the settings must provide it."""
    alone = settings.on_sqlite
    return SecretBox(settings.secret_keys, settings.data / SECRET_KEY if alone else None)


def build_server_environment(
    settings: Settings, workspaces: Workspaces, *, closes_ports: bool = False
) -> ServerEnvironment:
    """What MCP servers receive, and what is hidden from them."""
    sandbox = Sandbox(
        settings.mcp_sandbox,
        settings.private_paths,
        tuple(map(Path, settings.mcp_writable)),
        tuple(map(Path, settings.mcp_readable)),
        closes_ports=closes_ports,
    )
    return ServerEnvironment(
        workspaces,
        settings.mcp_environment,
        allow_private=settings.mcp_allow_private,
        denied_networks=settings.networks_denied,
        sandbox=sandbox,
    )


def _pool(settings: Settings, environment: ServerEnvironment, loops: Loops) -> Pool:
    limits = Limits(
        most_servers=settings.mcp_max_servers,
        budget_s=settings.mcp_connect_budget_s,
        idle_s=settings.mcp_idle_s,
    )
    return Pool(environment, limits, loops)


def build_embedder(settings: Settings) -> Embedder | None:
    """What embeds documents for search by meaning; None if the small model isn't installed."""
    if settings.embedding_url == "off":
        return None
    if settings.embedding_url:
        return EndpointEmbedder(settings.embedding_url, settings.embedding_api_key, settings.embedding_model)
    return bundled_embedder()


def _promptx(settings: Settings, roles: Roles, store: Store, pool: Pool) -> ToolServer:
    """The system's server of roles and memory: our own, or the operator's."""
    if command := settings.promptx_arguments:
        return PromptXCommand(command, PROMPTX_TOOLS, settings.workspaces, pool)
    return PromptXServer(roles, store.memories, tokens, system_clock)


@asynccontextmanager
async def opened_jobs_and_store(settings: Settings) -> AsyncGenerator[tuple[JobStore, Store]]:
    """The store alone, for commands that write; refuses a data folder that a server uses."""
    database = await _open_database(settings)
    try:
        store = await store_on(database, build_secret_box(settings), settings.payload_folder)
        await Agents(store, build_catalog(settings), system_clock).ensure_default()
        yield SqlJobs(database), store
    finally:
        await database.close()


@asynccontextmanager
async def reading_store(settings: Settings) -> AsyncGenerator[Store]:
    """A snapshot of the store, for commands that only read; a server may be running."""
    database = await open_snapshot(settings.database, schema=settings.database_schema)
    try:
        yield await store_reading(database, build_secret_box(settings), settings.payload_folder)
    finally:
        await database.close()


async def _open_database(settings: Settings, loops: Loops | None = None) -> Database:
    """The database, migrated."""
    make_private(settings.data)
    return await open_database(
        settings.database,
        schema=settings.database_schema,
        pool_size=settings.database_pool_size,
        user_table=settings.user_table,
        loops=loops,
    )


async def _timed_database(settings: Settings, metrics: Metrics, loops: Loops) -> Database:
    """The database, migrated, with its queries timed."""
    opened = await _open_database(settings, loops)
    latency = metrics.store_latency
    return TimedDatabase(opened, latency["read"].observe, latency["write"].observe)


def build_catalog(settings: Settings) -> Catalog:
    """Which MCP servers the operator allows."""
    return Catalog(
        settings.mcp_allowed_commands,
        stdio_needs_admin=settings.mcp_stdio == "admin",
        allow_private=settings.mcp_allow_private,
        denied_networks=settings.networks_denied,
    )


def build_caps(settings: Settings, gateway: Gateway | None) -> OperatorCaps:
    """The operator's caps. The default model is their own choice, hence always allowed."""
    models = settings.allowed_models
    if models and gateway is not None:
        guide = (GUIDE_MODEL,) if has_guide(settings) else ()
        models = tuple(dict.fromkeys((gateway.default_model, *models, *guide)))
    return OperatorCaps(
        models=models,
        reply_tokens=settings.max_reply_tokens,
        iterations=settings.max_iterations,
        message_chars=settings.max_message_chars,
        documents=settings.user_documents,
        bytes=settings.user_bytes,
        publish=settings.publish,
    )


def _allowances(settings: Settings, database: Database) -> Allowances:
    """Each user's allowance: counted in the database if several nodes share it."""
    caps = TurnCaps(
        at_once=settings.user_running_turns,
        per_minute=settings.user_turns_per_minute,
        uploads_per_minute=settings.user_uploads_per_minute,
    )
    return LocalAllowances(caps) if database.dialect == "sqlite" else SqlAllowances(database, caps)


class Runtime:
    """Everything that runs while the app does. Starts on first use, for a host may not run our lifespan."""

    def __init__(self, settings: Settings, *, is_local: bool) -> None:
        self._settings = settings
        environment = build_server_environment(settings, settings.workspaces, closes_ports=is_local)
        # Without sign-in, a program would be the admin `local`, and can't tell us the token.
        on_program = partial(require_token, settings.data)
        self._environment = replace(environment, on_program=on_program) if is_local else environment
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

    async def close(self) -> None:
        """Stops everything, in reverse order of its start."""
        self._services = None
        await self._closing.aclose()

    async def _start(self) -> Services:
        async with AsyncExitStack() as started:
            metrics, loops = Metrics(), Loops()
            adapters = await _open_adapters(self._settings, self._environment, metrics, loops, started)
            services = await _start_services(self._settings, adapters, metrics, loops, started)
            self._closing = started.pop_all()
        return services


@dataclass(frozen=True, slots=True)
class Adapters:
    """The open adapters that the services use."""

    store: Store
    jobs: JobStore
    allowances: Allowances
    bus: Bus
    models: Models
    embedder: Embedder | None
    vector_index: VectorIndex | None
    pool: Pool
    alone: bool
    """Whether no other node works on the database."""
    on_program: Callable[[], None]
    """Called before a program is saved or started: without sign-in, it would be the admin `local`."""


async def _open_adapters(
    settings: Settings,
    environment: ServerEnvironment,
    metrics: Metrics,
    loops: Loops,
    opened: AsyncExitStack,
) -> Adapters:
    database = await _timed_database(settings, metrics, loops)
    opened.push_async_callback(database.close)
    store = await store_on(database, build_secret_box(settings), settings.payload_folder)
    bus = bus_on(database, loops)
    opened.push_async_callback(bus.close)
    pool = _pool(settings, environment, loops)
    opened.push_async_callback(pool.close)
    gateway = build_gateway(settings)
    if gateway is None:  # a host application has no other sign of it before the first request
        log.warning("%s", GatewayNotConfigured().message)
    else:
        opened.push_async_callback(gateway.close)
    embedder = build_embedder(settings)
    if embedder is not None:
        opened.push_async_callback(embedder.close)
    return Adapters(
        store=store,
        jobs=SqlJobs(database),
        allowances=_allowances(settings, database),
        bus=bus,
        models=Models(gateway, {GUIDE_MODEL: GuideGateway()} if has_guide(settings) else {}),
        embedder=embedder,
        vector_index=await vector_index_on(database, store.chunks),
        pool=pool,
        alone=database.dialect == "sqlite",
        on_program=environment.on_program,
    )


async def _start_agents(
    settings: Settings, store: Store, catalog: Catalog, caps: OperatorCaps, on_program: Callable[[], None]
) -> Agents:
    """The agents, with those that every server has."""
    agents = Agents(store, catalog, system_clock, caps, on_program=on_program)
    if settings.promptx_arguments or await store.agents.run_programs():
        on_program()
    await agents.ensure_default()
    if has_guide(settings):
        await agents.ensure_guide()
    return agents


async def _start_turns(
    settings: Settings, adapters: Adapters, node: Node, replies: ModelReplies, caps: OperatorCaps
) -> TurnStarts:
    """What starts turns; those that the previous process left resume immediately."""
    store = adapters.store
    starts = TurnStarts(store, node, replies, adapters.allowances, system_clock, caps)
    within_hours = settings.resume_within_hours
    node.resume_with(ResumedTurns(store, replies, starts, within_hours=within_hours, caps=caps))
    await node.recover_abandoned()
    return starts


async def _start_services(
    settings: Settings, adapters: Adapters, metrics: Metrics, loops: Loops, started: AsyncExitStack
) -> Services:
    store, models, workspaces = adapters.store, adapters.models, settings.workspaces
    catalog, caps = build_catalog(settings), build_caps(settings, models.gateway)
    agents = await _start_agents(settings, store, catalog, caps, adapters.on_program)
    compactions = Compactions(store, models, adapters.allowances, system_clock, settings.zone, caps)
    document_files = FolderDocumentFiles(workspaces)
    document_jobs = DocumentJobs(
        store, document_files, ProcessExtractor(), adapters.embedder, system_clock, adapters.vector_index
    )
    history = History(store, loops)
    started.push_async_callback(history.close)
    if adapters.alone:  # no other process could be running a job
        await adapters.jobs.release_all()
    user_events = UserEvents(adapters.bus)
    jobs = _jobs(adapters, history, user_events, compactions, document_jobs, caps, loops)
    started.push_async_callback(jobs.close)
    node = Node(store, adapters.bus, user_events, system_clock, metrics, loops, alone=adapters.alone)
    started.push_async_callback(node.close)
    roles = WorkspaceRoles(workspaces)
    prompt_files = FolderPromptFiles(workspaces)
    prompts = Prompts(store, agents, prompt_files, roles, models)
    retriever = DocumentIndex(store.chunks, adapters.embedder, vector_index=adapters.vector_index)
    tools = _tools(settings, adapters, catalog, roles, retriever, node)
    files = _files(settings, store, adapters.allowances, caps)
    schemas = SchemaChecker()
    replies = ModelReplies(
        store,
        models,
        ModelRequests(store, prompts, Passages(retriever), settings.zone),
        history,
        tools,
        schemas,
        jobs,
        system_clock,
        files.keep_returned,
    )
    starts = await _start_turns(settings, adapters, node, replies, caps)
    turns = Turns(store, node)
    running_turns = RunningTurns(store, node, system_clock)
    conversations = Conversations(
        store, agents, turns, history, system_clock, settings.zone, settings.retention_days
    )
    services = Services(
        agents=agents,
        agent_copies=AgentCopies(agents, prompt_files),
        mcp_servers=McpServers(store, agents, catalog, tools),
        conversations=conversations,
        documents=Documents(store, agents, document_files, retriever, jobs, system_clock, caps),
        files=files,
        history=history,
        turns=turns,
        sending=Sending(store, node, starts, system_clock),
        approvals=Approvals(store, node, system_clock, schemas),
        queue=Queue(store, turns, system_clock, caps),
        branches=Branches(store, turns, history, system_clock),
        running_turns=running_turns,
        prompts=prompts,
        executions=Executions(store, turns, history, system_clock),
        compactions=compactions,
        briefings=Briefings(store, agents, conversations, history, user_events, system_clock),
        receipts=Receipts(store, turns),
        reports=Reports(store, conversations, system_clock),
        usages=Usages(store, system_clock),
        users=Users(store, running_turns, prompts, PersonalServers(adapters.pool, workspaces), system_clock),
        user_events=user_events,
        metrics=metrics,
        loops=loops,
        store=store,
        gateway=models.gateway,
    )
    started.push_async_callback(_hourly(settings, services, document_jobs, jobs).close)
    return services


def file_intake(settings: Settings) -> FileIntake:
    """What prepares files for messages."""
    return FileIntake(
        ProcessImagePreparer(),
        ProcessPdfInspector(),
        ProcessExtractor(),
        settings.data / UPLOADS,
        system_clock,
        FairSlots(settings.file_workers),
    )


def _files(settings: Settings, store: Store, allowances: Allowances, caps: OperatorCaps) -> Files:
    return Files(
        store,
        file_intake(settings),
        allowances,
        system_clock,
        caps,
        most_unsent_bytes=settings.max_unsent_file_bytes,
        ttl_hours=settings.file_ttl_hours,
    )


def _jobs(
    adapters: Adapters,
    history: History,
    user_events: UserEvents,
    compactions: Compactions,
    document_jobs: DocumentJobs,
    caps: OperatorCaps,
    loops: Loops,
) -> Jobs:
    """Background jobs, done by whichever node has time."""

    async def titled(conversation: Conversation) -> None:
        await history.follow(conversation.id)
        await user_events.publish(
            UserEvent(conversation.user_id, UserEventType.CONVERSATION_RENAMED, conversation.id)
        )

    return Jobs(
        adapters.jobs,
        {
            TITLE_JOB: Titles(adapters.store, adapters.models, titled, caps).give,
            COMPACTION_JOB: compactions.compact_later,
            READ_JOB: document_jobs.read,
            EMBED_JOB: document_jobs.embed,
        },
        loops,
    )


def _tools(
    settings: Settings, adapters: Adapters, catalog: Catalog, roles: Roles, retriever: Retriever, node: Node
) -> AgentTools:
    """Our own tools, and those of the agents' MCP servers."""
    store = adapters.store
    own = (
        _promptx(settings, roles, store, adapters.pool),
        RetrieverServer(store.documents, retriever),
        HistoryServer(store),
        ResultsServer(store, written_so_far),
        FilesServer(store),
        ChartServer(),
        QuestionServer(),
        GuideServer(node.lose),
    )
    return AgentTools(own, catalog, adapters.pool, store.seen_tools)


def _hourly(settings: Settings, services: Services, document_jobs: DocumentJobs, jobs: Jobs) -> Hourly:
    """The periodic jobs; `jobs/hourly.py` says what each is for."""
    store, conversations = services.store, services.conversations
    kept_ms = settings.turn_log_ttl_hours * HOUR_MS

    async def embed() -> None:
        for arguments in await document_jobs.embed_jobs():
            await jobs.add(EMBED_JOB, arguments)

    hourly = HourlyJobs(
        deleted_conversations=lambda: conversations.purge_expired(system_clock()),
        turn_logs=lambda: store.log.trim(system_clock() - kept_ms),
        requests_of_ended_turns=lambda: store.approvals.close_of_ended(system_clock()),
        receipt_prompts=store.receipts.forget_texts,
        leftovers_of_deleted_users=services.users.sweep,
        agent_folders=services.prompts.remove_orphans,
        document_files=document_jobs.sweep,
        documents_without_vectors=embed,
        conversations_missing_from_search=services.history.catch_up,
        files_without_a_message=services.files.sweep,
        unreferenced_payloads=store.payloads.collect,
    )
    return Hourly(hourly.by_name, services.loops)
