"""How much rows and texts take in the database: they count towards their user's limit, like files.

Each conversation has a count of its own; every writer raises it in the same unit of work. So nobody
has to measure all texts of a user, and purging a conversation gives its bytes back. Messages that wait are
measured, because they come and go. Logs, receipts and search indexes are copies, and don't count.
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
_OWN_AGENTS = "SELECT id FROM tk_agents WHERE owner_id = :user_id AND NOT is_cleared"
_OWN_CONVERSATIONS = "SELECT id FROM tk_conversations WHERE user_id = :user_id"
_QUEUED_TEXTS = ("content", "files", "begun_with")


def _of_user(length: str) -> str:
    """All that a user's texts take, each sum from its index alone, but for the few messages that wait.

    Deleted conversations count until they are purged, deleted agents until they are cleared. A briefing
    counts for the owner of its agent, who sends it.
    """
    queued = " + ".join(f"COALESCE({length.format(name)}, 0)" for name in _QUEUED_TEXTS)
    sums = {
        "tk_conversations WHERE user_id = :user_id": "text_bytes",
        "tk_agents WHERE owner_id = :user_id AND NOT is_cleared": "text_bytes",
        f"tk_briefings WHERE agent_id IN ({_OWN_AGENTS})": "text_bytes",
        "tk_memories WHERE user_id = :user_id": "text_bytes",
        f"tk_queued WHERE taken_at IS NULL AND conversation_id IN ({_OWN_CONVERSATIONS})": (
            f"{ROW_BYTES} + {queued}"
        ),
    }
    total = " + ".join(f"COALESCE((SELECT SUM({size}) FROM {rows}), 0)" for rows, size in sums.items())
    return f"SELECT CAST({total} AS bigint)"


OF_USER = Statement(_of_user("length(CAST({} AS blob))"), postgres=_of_user("octet_length({})"))


def text_bytes_of(user_id: UserId) -> Plan[int]:
    """The bytes of all rows and texts of a user."""
    ((size,),) = yield OF_USER(user_id=user_id)
    return size


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
