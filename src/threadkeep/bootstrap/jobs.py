"""Work beside requests: jobs on demand, and the hourly ones."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from threadkeep.bootstrap.adapters import Adapters
from threadkeep.clock import Clock
from threadkeep.context.cards import CardStyle
from threadkeep.context.completion import Complete
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import UserId
from threadkeep.domain.money import Purpose
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.engine.completion import complete
from threadkeep.handling.services import Services
from threadkeep.jobs.documents import EMBED_JOB, READ_JOB, DocumentJobs
from threadkeep.jobs.hourly import Hourly, HourlyJobs
from threadkeep.jobs.idle_conversations import IdleConversations
from threadkeep.jobs.queue import Jobs
from threadkeep.jobs.titles import TITLE_JOB, Titles
from threadkeep.ports.models import ConnectedModel
from threadkeep.retrieval.extractor import ProcessExtractor
from threadkeep.runtime.user_events import UserEvents
from threadkeep.services.compactions import COMPACTION_JOB, LONGEST_JOB_S, Compactions
from threadkeep.services.history import History
from threadkeep.services.model_choice import ModelChoice
from threadkeep.settings import Settings
from threadkeep.storage.documents.document_files import FolderDocumentFiles

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What works beside requests, and the services that it works for."""

    jobs: Jobs
    document_jobs: DocumentJobs
    document_files: FolderDocumentFiles
    compactions: Compactions
    history: History
    user_events: UserEvents


async def start_background(
    settings: Settings,
    adapters: Adapters,
    choice: ModelChoice,
    caps: OperatorCaps,
    started: AsyncExitStack,
) -> Background:
    """Starts the jobs, which whichever node has time does."""
    store, clock = adapters.store, adapters.clock
    document_files = FolderDocumentFiles(settings.workspaces)
    document_jobs = DocumentJobs(
        store, document_files, ProcessExtractor(), adapters.embedder, clock, adapters.vector_index
    )
    cards = CardStyle(settings.zone, settings.language)
    compactions = Compactions(
        store,
        choice,
        adapters.allowances,
        clock,
        cards,
        adapters.spending,
        caps,
    )
    history = History(store, adapters.loops)
    started.push_async_callback(history.close)
    if adapters.alone:  # no other process could be running a job, or writing a conversation
        await adapters.jobs.release_all()
        await store.conversations.let_all_go()
    user_events = UserEvents(adapters.bus)

    async def titled(conversation: Conversation) -> None:
        await history.follow(conversation.id)
        await user_events.publish(
            UserEvent(conversation.user_id, UserEventType.CONVERSATION_RENAMED, conversation.id)
        )

    async def complete_title(
        model: ConnectedModel, agent: Agent, user_id: UserId, key_id: str | None
    ) -> Complete:
        user = await adapters.spending.with_key(User(user_id), key_id)
        account = adapters.spending.account(user, agent, Purpose.TITLE)
        return partial(complete, model, account, timeout_s=agent.settings.generation_timeout_s)

    jobs = Jobs(
        adapters.jobs,
        {
            TITLE_JOB: Titles(store, choice.own, titled, complete_title).give,
            COMPACTION_JOB: compactions.compact_later,
            READ_JOB: document_jobs.read,
            EMBED_JOB: document_jobs.embed,
        },
        adapters.loops,
        {COMPACTION_JOB: LONGEST_JOB_S},
    )
    started.push_async_callback(jobs.close)
    return Background(
        jobs=jobs,
        document_jobs=document_jobs,
        document_files=document_files,
        compactions=compactions,
        history=history,
        user_events=user_events,
    )


def build_hourly(settings: Settings, services: Services, background: Background, clock: Clock) -> Hourly:
    """The periodic jobs; `jobs/hourly.py` says what each is for."""
    store, conversations = services.store, services.conversations
    kept_ms = settings.turn_log_ttl_hours * HOUR_MS

    async def embed() -> None:
        for arguments in await background.document_jobs.embed_jobs():
            await background.jobs.add(EMBED_JOB, arguments)

    idle = IdleConversations(
        store.idle,
        background.user_events.publish,
        services.metrics,
        clock,
        days=settings.delete_after_days,
    )
    hourly = HourlyJobs(
        conversations_without_messages=idle.sweep,
        deleted_conversations=lambda: conversations.purge_expired(clock()),
        runs_without_a_turn=services.executions.finish_left,
        turn_logs=lambda: store.log.trim(clock() - kept_ms),
        requests_of_ended_turns=lambda: store.approvals.close_of_ended(clock()),
        receipt_prompts=store.receipts.forget_texts,
        leftovers_of_deleted_users=services.users.sweep,
        agent_folders=services.prompts.remove_orphans,
        document_files=background.document_jobs.sweep,
        documents_without_vectors=embed,
        conversations_missing_from_search=services.history.catch_up,
        files_without_a_message=services.files.sweep,
        unreferenced_payloads=store.payloads.collect,
        abandoned_reservations=lambda: services.spending.charge_abandoned(clock() - HOUR_MS),
        repeatable_requests=lambda: store.repeats.forget_old(clock() - DAY_MS),
        ended_sessions=services.sessions.sweep,
        ended_invitations=services.invitations.sweep,
        unfinished_sign_ins=services.provider_sign_ins.sweep,
        past_spending=lambda: store.ledger.forget_spending(services.spending.today),
        users_of_providers=services.provider_sign_ins.refresh_due,
    )
    return Hourly(hourly.by_name, services.loops)
