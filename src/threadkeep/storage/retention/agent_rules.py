"""After how many days without a message an agent's conversations are deleted, as its owner wants it."""

from threadkeep.domain.ids import AgentId
from threadkeep.storage.database.connector import Plan, Statement

# An owner who wants it again begins again.
_REMEMBER = Statement(
    """UPDATE tk_agents SET
        delete_since = CASE WHEN :days = 0 THEN NULL
            WHEN delete_after_days = 0 THEN :now ELSE delete_since END,
        delete_shortened_at = CASE WHEN :days = 0 OR delete_after_days = 0 THEN NULL
            WHEN :days < delete_after_days THEN :now ELSE delete_shortened_at END,
        delete_after_days = :days
    WHERE id = :id AND delete_after_days <> :days"""
)


def remember_rule(agent_id: AgentId, days: int, now: int) -> Plan[None]:
    """Notes an agent's rule and since when it counts, in the transaction that changes the agent."""
    yield _REMEMBER(id=agent_id, days=days, now=now)
