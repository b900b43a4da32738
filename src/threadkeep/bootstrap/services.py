"""The services, built in the order in which they need one another."""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from threadkeep.bootstrap.adapters import Adapters
from threadkeep.bootstrap.documents import build_files, file_intake
from threadkeep.bootstrap.jobs import Background, build_hourly, start_background
from threadkeep.bootstrap.limits import build_caps
from threadkeep.bootstrap.models import build_tester, has_guide
from threadkeep.bootstrap.programs import declare_programs
from threadkeep.bootstrap.providers import build_providers
from threadkeep.bootstrap.servers import build_catalog
from threadkeep.bootstrap.tools import build_tools
from threadkeep.context.cards import CardStyle
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.data_folder import UPLOADS
from threadkeep.domain.errors import GatewayNotConfigured
from threadkeep.domain.sharing.share import Sharing
from threadkeep.domain.user import User
from threadkeep.engine.code.outside_calls import LiveRuns
from threadkeep.fair_slots import FairSlots
from threadkeep.handling.services import Services
from threadkeep.imports.confined import UploadedExports
from threadkeep.imports.runs import ImportRuns
from threadkeep.imports.source import ImportLimits
from threadkeep.imports.user_import import Import, UsersImport
from threadkeep.mcp.agent_tools import AgentTools
from threadkeep.mcp.catalog import Catalog
from threadkeep.mcp.personal import PersonalServers
from threadkeep.ports.identity_providers import IdentityProvider
from threadkeep.ports.retriever import Retriever
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.runtime.node import Node
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.services.added_messages import AddedMessages
from threadkeep.services.agent_copies import AgentCopies
from threadkeep.services.agents import Agents
from threadkeep.services.approvals import Approvals
from threadkeep.services.branches.branches import Branches
from threadkeep.services.briefings import Briefings
from threadkeep.services.client_tools import ClientTools
from threadkeep.services.completions.completions import Completions
from threadkeep.services.completions.run_replies import RunReplies
from threadkeep.services.conversations import Conversations
from threadkeep.services.creations import Creations
from threadkeep.services.documents import Documents
from threadkeep.services.equipment import Equipment
from threadkeep.services.executions import Executions
from threadkeep.services.feedback import Feedbacks
from threadkeep.services.gateways import Gateways
from threadkeep.services.keys import Keys
from threadkeep.services.live_gateways import LiveGateways
from threadkeep.services.mcp_servers import McpServers
from threadkeep.services.memories import Memories
from threadkeep.services.model_choice import ModelChoice
from threadkeep.services.outside import Outside
from threadkeep.services.prompts import Prompts
from threadkeep.services.queue import Queue
from threadkeep.services.receipts import Receipts
from threadkeep.services.replies.code_checks import CodeChecks
from threadkeep.services.replies.code_replies import CodeReplies
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.services.replies.model_requests import ModelRequests
from threadkeep.services.replies.passages import Passages
from threadkeep.services.replies.program_starts import ProgramStarts
from threadkeep.services.replies.reply_places import ReplyPlaces
from threadkeep.services.replies.resumed_turns import ResumedTurns
from threadkeep.services.replies.steps import Steps
from threadkeep.services.replies.turn_starts import TurnStarts
from threadkeep.services.reports import Reports
from threadkeep.services.reruns import Reruns
from threadkeep.services.running_turns import RunningTurns
from threadkeep.services.sending import Sending
from threadkeep.services.sharing.shares import Shares
from threadkeep.services.sign_in.attempts import Attempts
from threadkeep.services.sign_in.invitations import Invitations
from threadkeep.services.sign_in.known_users import KnownUsers
from threadkeep.services.sign_in.local_data import LocalData
from threadkeep.services.sign_in.provider_sign_ins import ProviderSignIns
from threadkeep.services.sign_in.sessions import Sessions
from threadkeep.services.turns import Turns
from threadkeep.services.usage import Usages
from threadkeep.services.users import Users
from threadkeep.services.workers import Workers
from threadkeep.settings import Settings
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.tools.roles import WorkspaceRoles

log = logging.getLogger("threadkeep.bootstrap")

MB = 1024 * 1024
MOST_UNPACKED = 4
"""How many times as large as an upload its conversations may be; they are text, and shrink well."""
MOST_BEGUN_SIGN_INS = 60
"""How many sign-ins with providers one address can begin in a minute: many people may share it."""
IMPORTS_READ_AT_ONCE = 2
"""How many files of imports are worked on at a time; users take turns."""


async def start_services(settings: Settings, adapters: Adapters, started: AsyncExitStack) -> Services:
    """Builds the services and starts what works beside them; `started` ends it in reverse order."""
    catalog, caps = build_catalog(settings), build_caps(settings)
    choice = ModelChoice(adapters.models, settings.allowed_models)
    live_gateways = await _start_gateways(adapters, started)
    agents = await _start_agents(settings, adapters, catalog, choice, caps)
    background = await start_background(settings, adapters, choice, caps, started)
    node = _build_node(settings, adapters, background)
    started.push_async_callback(node.close)
    parts = _build_parts(settings, adapters, catalog, choice, caps, agents, background, node)
    talks = _build_talks(settings, adapters, parts, await _start_turns(settings, adapters, parts))
    providers = build_providers(settings, started)
    services = _build_services(settings, adapters, parts, talks, live_gateways, providers)
    started.push_async_callback(parts.places.close)
    started.push_async_callback(parts.code_checks.close)
    started.push_async_callback(services.completions.close)
    started.push_async_callback(services.run_replies.close)
    started.push_async_callback(services.import_runs.close)
    started.push_async_callback(build_hourly(settings, services, background, adapters.clock).close)
    return services


async def _start_gateways(adapters: Adapters, started: AsyncExitStack) -> LiveGateways:
    """The gateways that admins saved, before a turn could need one of them."""
    store, registry = adapters.store.gateways, adapters.models
    live = LiveGateways(store, registry, adapters.bus, adapters.loops, alone=adapters.alone)
    started.push_async_callback(live.close)
    await live.apply()
    if not registry.gateways:  # a host application has no other sign of it before the first request
        log.warning("%s", GatewayNotConfigured().message)
    return live


async def _start_agents(
    settings: Settings, adapters: Adapters, catalog: Catalog, choice: ModelChoice, caps: OperatorCaps
) -> Agents:
    """The agents, with those that every server has."""
    agents = Agents(
        adapters.store,
        catalog,
        adapters.clock,
        choice,
        caps,
        on_program=adapters.on_program,
        is_token_due=adapters.is_token_due,
    )
    if settings.promptx_arguments or await adapters.store.agents.run_programs():
        adapters.on_program()
    await agents.ensure_default()
    if has_guide(settings):
        await agents.ensure_guide()
    await declare_programs(agents, adapters.programs.declarations)
    return agents


def _build_node(settings: Settings, adapters: Adapters, background: Background) -> Node:
    return Node(
        adapters.store,
        adapters.bus,
        background.user_events,
        adapters.clock,
        adapters.metrics,
        adapters.loops,
        alone=adapters.alone,
        zone=settings.zone,
        priced=adapters.spending.priced,
        programs=adapters.programs,
        built_in=adapters.built_in,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What several services share."""

    catalog: Catalog
    caps: OperatorCaps
    agents: Agents
    background: Background
    node: Node
    prompts: Prompts
    prompt_files: FolderPromptFiles
    retriever: Retriever
    passages: Passages
    tools: AgentTools
    equipment: Equipment
    places: ReplyPlaces
    creations: Creations
    program_starts: ProgramStarts
    code_checks: CodeChecks
    live_runs: LiveRuns


def _build_parts(
    settings: Settings,
    adapters: Adapters,
    catalog: Catalog,
    choice: ModelChoice,
    caps: OperatorCaps,
    agents: Agents,
    background: Background,
    node: Node,
) -> _Parts:
    store = adapters.store
    roles, prompt_files = WorkspaceRoles(settings.workspaces), FolderPromptFiles(settings.workspaces)
    retriever = DocumentIndex(store.chunks, adapters.embedder, vector_index=adapters.vector_index)
    tools = build_tools(settings, adapters, catalog, roles, retriever, node)
    starts = ProgramStarts(store, node.programs, adapters.run_tokens, adapters.address)
    return _Parts(
        catalog=catalog,
        caps=caps,
        agents=agents,
        background=background,
        node=node,
        prompts=Prompts(store, agents, prompt_files, roles, choice),
        prompt_files=prompt_files,
        retriever=retriever,
        passages=Passages(retriever),
        tools=tools,
        equipment=Equipment(
            models=adapters.models,
            choice=choice,
            tools=tools,
            schemas=SchemaChecker(),
            files=build_files(settings, store, adapters.allowances, adapters.clock, caps),
            spending=adapters.spending,
            clock=adapters.clock,
        ),
        places=ReplyPlaces(adapters.allowances, node.runner.count_of, adapters.loops),
        creations=Creations(store.stored_bytes, adapters.allowances, caps),
        program_starts=starts,
        code_checks=CodeChecks(store, starts, is_on=settings.check_agents),
        live_runs=LiveRuns(),
    )


async def _start_turns(settings: Settings, adapters: Adapters, parts: _Parts) -> TurnStarts:
    """What starts turns; those that the previous process left resume immediately."""
    store, node, caps = adapters.store, parts.node, parts.caps
    cards = CardStyle(settings.zone, settings.language)
    requests = ModelRequests(store, parts.prompts, parts.passages, cards)
    replies = ModelReplies(store, parts.equipment, requests, parts.background.history, parts.background.jobs)
    code_replies = CodeReplies(
        store,
        replies,
        requests,
        parts.program_starts,
        parts.code_checks,
        adapters.metrics,
        parts.live_runs,
        patience_s=settings.agents_patience_s,
        pause_after_s=settings.agents_pause_after_s,
        caps=caps,
    )
    starts = TurnStarts(store, node.runner, replies, code_replies, adapters.allowances, parts.creations, caps)
    within_hours = settings.resume_within_hours
    node.runner.resume_with(
        ResumedTurns(store, replies, starts, code_replies, within_hours=within_hours, caps=caps)
    )
    await node.recover_abandoned()
    return starts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talks:
    """What other services need of conversations and their turns."""

    turns: Turns
    conversations: Conversations
    client_tools: ClientTools
    sending: Sending
    approvals: Approvals


def _build_talks(settings: Settings, adapters: Adapters, parts: _Parts, starts: TurnStarts) -> _Talks:
    store, clock, node = adapters.store, adapters.clock, parts.node
    turns, client_tools = Turns(store, node), ClientTools(parts.tools)
    history = parts.background.history
    kept = settings.retention_days, settings.delete_after_days
    cards = CardStyle(settings.zone, settings.language)
    return _Talks(
        turns=turns,
        conversations=Conversations(store, parts.agents, turns, history, clock, cards, *kept),
        client_tools=client_tools,
        sending=Sending(store, node, starts, client_tools, clock),
        approvals=Approvals(store, node, clock, parts.equipment.schemas),
    )


def _build_services(
    settings: Settings,
    adapters: Adapters,
    parts: _Parts,
    talks: _Talks,
    live_gateways: LiveGateways,
    providers: Mapping[str, IdentityProvider],
) -> Services:
    store, clock = adapters.store, adapters.clock
    agents, caps, background = parts.agents, parts.caps, parts.background
    history, user_events = background.history, background.user_events
    turns, conversations, sending, approvals = (
        talks.turns,
        talks.conversations,
        talks.sending,
        talks.approvals,
    )
    sessions, rules = Sessions(store, clock), settings.sign_in_rules
    running_turns = RunningTurns(store, parts.node, clock)
    keys = Keys(
        store,
        agents,
        clock,
        act_as_anyone=settings.act_as_anyone,
        taken_realms={way.name for way in rules.ways},
    )
    servers = PersonalServers(adapters.pool, settings.workspaces)
    known_users = KnownUsers(store, sessions, keys, running_turns, clock)
    return Services(
        agents=agents,
        agent_copies=AgentCopies(agents, parts.prompt_files),
        prompts=parts.prompts,
        mcp_servers=McpServers(store, agents, parts.catalog, parts.tools),
        documents=_build_documents(adapters, parts),
        memories=Memories(store, agents, clock),
        feedback=Feedbacks(store, agents, clock),
        conversations=conversations,
        creations=parts.creations,
        turns=turns,
        sending=sending,
        approvals=approvals,
        running_turns=running_turns,
        queue=Queue(store, turns, parts.creations, clock, caps),
        branches=Branches(store, turns, history, parts.creations, clock, caps),
        added_messages=AddedMessages(store, conversations, sending, turns, history, clock, caps),
        outside=Outside(store, agents, conversations, sending, approvals, clock),
        executions=Executions(store, turns, history, clock),
        receipts=Receipts(store, turns),
        steps=Steps(store, turns),
        code_checks=parts.code_checks,
        reruns=Reruns(store, parts.equipment, parts.places, caps),
        completions=Completions(
            store,
            parts.node.runner,
            parts.equipment,
            parts.prompts,
            parts.passages,
            talks.client_tools,
            parts.places,
            caps,
        ),
        run_replies=RunReplies(store, adapters.run_tokens, parts.equipment, parts.live_runs, caps),
        history=history,
        compactions=background.compactions,
        files=parts.equipment.files,
        shares=Shares(store, parts.equipment.files, clock, Sharing(settings.sharing)),
        reports=Reports(store, conversations, clock),
        import_runs=_build_import_runs(settings, adapters, parts),
        briefings=Briefings(store, agents, conversations, history, user_events, clock),
        gateways=Gateways(store.gateways, live_gateways, build_tester(settings), clock),
        live_gateways=live_gateways,
        models=adapters.models,
        choice=parts.equipment.choice,
        usages=Usages(store, adapters.spending),
        spending=adapters.spending,
        users=Users(store, running_turns, parts.prompts, servers, keys, sessions, clock),
        local_data=LocalData(store, history, keys, servers, rules, clock),
        workers=Workers(store, parts.node),
        keys=keys,
        sessions=sessions,
        invitations=Invitations(store, sessions, rules, clock),
        attempts=Attempts(),
        known_users=known_users,
        provider_sign_ins=ProviderSignIns(store, sessions, known_users, keys, providers, clock),
        begun_sign_ins=Attempts(MOST_BEGUN_SIGN_INS),
        sign_in_rules=rules,
        user_events=user_events,
        metrics=adapters.metrics,
        loops=adapters.loops,
        store=store,
    )


def _build_documents(adapters: Adapters, parts: _Parts) -> Documents:
    background = parts.background
    return Documents(
        adapters.store,
        parts.agents,
        background.document_files,
        parts.retriever,
        background.jobs,
        adapters.clock,
        parts.caps,
    )


def _build_import_runs(settings: Settings, adapters: Adapters, parts: _Parts) -> ImportRuns:
    intake = file_intake(settings, adapters.clock)

    def new_import(user: User, rules: UsersImport) -> Import:
        return Import(
            adapters.store,
            adapters.jobs,
            parts.prompt_files,
            parts.background.document_files,
            intake,
            adapters.clock,
            user,
            rules,
        )

    limits = ImportLimits(
        conversation_bytes=32 * MB,
        conversations=100_000,
        unpacked_bytes=MOST_UNPACKED * settings.max_import_bytes,
        message_parts=20_000,
        directory_bytes=8 * MB,
    )
    slots = FairSlots(IMPORTS_READ_AT_ONCE)
    return ImportRuns(
        adapters.store,
        parts.agents,
        adapters.allowances,
        parts.background.user_events,
        UploadedExports(settings.data / UPLOADS, settings.max_import_bytes, limits, slots),
        new_import,
        adapters.clock,
        parts.caps,
    )
