"""How much text conversations take in the database: what imports count besides files and documents."""

from collections.abc import Collection
from typing import Any

from threadkeep.domain.ids import PayloadId, UserId
from threadkeep.ports.exchange.records import WholeConversation
from threadkeep.storage.database.connector import Plan, Statement
from threadkeep.storage.messages import message_values
from threadkeep.storage.parts import calls_in
from threadkeep.storage.tool_calls import tool_call_values

_OF_MESSAGE = ("content", "parts")
_OF_CALL = ("arguments", "result", "chart_data")
# Each from its own index. Those of deleted conversations count until they are purged.
_CONVERSATIONS = """SELECT id FROM tk_conversations WHERE user_id = :user_id AND deleted_at IS NULL
        UNION ALL SELECT id FROM tk_conversations WHERE user_id = :user_id AND deleted_at IS NOT NULL"""


_OF_USER = f"conversation_id IN ({_CONVERSATIONS})"


def _total(size: str, rest: str) -> str:
    return f"SELECT CAST(COALESCE(SUM({size}), 0) AS bigint) FROM {rest}"


def _in_sqlite(columns: Collection[str]) -> str:
    return " + ".join(f"COALESCE(LENGTH(CAST({it} AS blob)), 0)" for it in columns)


def _in_postgres(columns: Collection[str]) -> str:
    """Which doesn't unpack texts to know their lengths."""
    return " + ".join(f"COALESCE(octet_length({it}), 0)" for it in columns)


MESSAGE_BYTES = Statement(
    _total(_in_sqlite(_OF_MESSAGE), f"tk_messages WHERE {_OF_USER}"),
    postgres=_total(_in_postgres(_OF_MESSAGE), f"tk_messages WHERE {_OF_USER}"),
)
CALL_BYTES = Statement(
    _total(_in_sqlite(_OF_CALL), "tk_tool_calls WHERE user_id = :user_id"),
    postgres=_total(_in_postgres(_OF_CALL), "tk_tool_calls WHERE user_id = :user_id"),
)
SUMMARY_BYTES = Statement(
    _total(_in_sqlite(("summary",)), f"tk_compactions WHERE {_OF_USER}"),
    postgres=_total(_in_postgres(("summary",)), f"tk_compactions WHERE {_OF_USER}"),
)
PAYLOAD_BYTES = Statement(_total("size", f"tk_payloads WHERE {_OF_USER}"))


def stored_text_bytes(user_id: UserId) -> Plan[int]:
    """The bytes of all texts and values in a user's conversations."""
    total = 0
    for statement in (MESSAGE_BYTES, CALL_BYTES, SUMMARY_BYTES, PAYLOAD_BYTES):
        ((size,),) = yield statement(user_id=user_id)
        total += size
    return total


def text_bytes(whole: WholeConversation, files: Collection[PayloadId]) -> int:
    """The bytes of all texts and values in a conversation that is to be stored; `files` count elsewhere."""
    size = sum(payload.size for payload in whole.payloads if payload.id not in files)
    size += sum(_bytes(compaction.summary) for compaction in whole.compactions)
    for message in whole.messages:
        size += _sum(message_values(message), _OF_MESSAGE)
        for call in calls_in(message.parts):
            size += _sum(tool_call_values(call, whole.conversation, 0), _OF_CALL)
    return size


def _sum(values: dict[str, Any], columns: Collection[str]) -> int:
    return sum(_bytes(values[name]) for name in columns if values[name] is not None)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
