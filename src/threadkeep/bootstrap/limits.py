"""The operator's limits."""

from threadkeep.clock import Clock
from threadkeep.domain.caps import OperatorCaps, TurnCaps
from threadkeep.metrics import Metrics
from threadkeep.ports.allowances import Allowances
from threadkeep.ports.models import Models
from threadkeep.runtime.spending import Spending
from threadkeep.services.allowances import LocalAllowances
from threadkeep.settings import Settings
from threadkeep.storage.allowances import SqlAllowances
from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import Store


def build_caps(settings: Settings) -> OperatorCaps:
    """The operator's caps on agents and users."""
    return OperatorCaps(
        reply_tokens=settings.max_reply_tokens,
        iterations=settings.max_iterations,
        message_chars=settings.max_message_chars,
        documents=settings.user_documents,
        bytes=settings.user_bytes,
        conversation_messages=settings.conversation_messages,
        publish=settings.publish,
        client_tools=settings.client_tools,
    )


def build_spending(
    settings: Settings, store: Store, models: Models, clock: Clock, metrics: Metrics
) -> Spending:
    """What model calls may cost."""
    return Spending(
        store.ledger,
        store.keys,
        models,
        clock,
        settings.zone,
        currency=settings.currency,
        user_day=settings.user_budget_day,
        user_month=settings.user_budget_month,
        charged=metrics.charged,
    )


def build_allowances(settings: Settings, database: Database) -> Allowances:
    """Each user's allowance: counted in the database if several nodes share it."""
    caps = TurnCaps(
        at_once=settings.user_running_turns,
        per_minute=settings.user_turns_per_minute,
        uploads_per_minute=settings.user_uploads_per_minute,
        writes_per_minute=settings.user_writes_per_minute,
    )
    return LocalAllowances(caps) if database.dialect == "sqlite" else SqlAllowances(database, caps)
