"""How much rows and texts take in the database: they count towards their user's limit, like files.

Each conversation has a count of its own; every writer raises it in the same unit of work. So nobody
has to measure all texts of a user, and purging a conversation gives its bytes back. Logs, receipts and search
indexes are copies, and don't count.
"""

from collections.abc import Mapping
from typing import Any

from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.storage.database.connector import Plan, Query, Statement

ROW_BYTES = 200
"""What a row takes besides its texts."""

_OF_MESSAGE = ("content", "parts")
_OF_CALL = ("arguments", "result", "chart_data")

_COUNT = Statement("UPDATE tk_conversations SET text_bytes = text_bytes + :size WHERE id = :conversation_id")
OF_CONVERSATION = Statement("SELECT text_bytes FROM tk_conversations WHERE id = :conversation_id")
_SUM = "SELECT CAST(COALESCE(SUM(text_bytes), 0) AS bigint) FROM"
# Each from its index alone. Deleted conversations count until they are purged, deleted agents until they are
# cleared. A briefing counts for the owner of its agent, who sends it.
OF_CONVERSATIONS = Statement(f"{_SUM} tk_conversations WHERE user_id = :user_id")
OF_AGENTS = Statement(f"{_SUM} tk_agents WHERE owner_id = :user_id AND NOT is_cleared")
OF_BRIEFINGS = Statement(
    f"""{_SUM} tk_briefings
    WHERE agent_id IN (SELECT id FROM tk_agents WHERE owner_id = :user_id AND NOT is_cleared)"""
)
OF_MEMORIES = Statement(f"{_SUM} tk_memories WHERE user_id = :user_id")


def text_bytes_of(user_id: UserId) -> Plan[int]:
    """The bytes of all rows and texts of a user."""
    total = 0
    for statement in (OF_CONVERSATIONS, OF_AGENTS, OF_BRIEFINGS, OF_MEMORIES):
        ((size,),) = yield statement(user_id=user_id)
        total += size
    return total


def count(conversation_id: ConversationId, size: int) -> Query:
    """Adds to a conversation's count."""
    return _COUNT(conversation_id=conversation_id, size=size)


def message_bytes(columns: Mapping[str, Any]) -> int:
    """The bytes of a message's texts, without its row and its calls."""
    return _sum(columns, _OF_MESSAGE)


def call_bytes(columns: Mapping[str, Any]) -> int:
    """The bytes of a tool call's row."""
    return ROW_BYTES + _sum(columns, _OF_CALL)


def byte_length(text: str) -> int:
    """The bytes of a text in the database."""
    return len(text) if text.isascii() else len(text.encode())


def _sum(columns: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return sum(byte_length(columns[name]) for name in names if columns[name])
