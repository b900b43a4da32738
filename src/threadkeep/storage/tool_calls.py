"""Tool calls in the database: records of their own, found by message or by tool."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import PayloadId, UserId
from threadkeep.domain.tool_call import ToolCall, ToolCallFilter, ToolCallStatus
from threadkeep.storage.database.columns import to_json, to_json_or_null, to_object, to_value
from threadkeep.storage.database.connector import Query, Row, Statement
from threadkeep.storage.database.unchecked import unchecked
from threadkeep.storage.path_moves import on_path

COLUMNS = """turn_id, tool_call_id, message_id, tool_name, server, arguments, status, created_at, result,
    error, chart_data, duration_ms, artifact_ids, model_name, refs"""

# `position` is the order within the message.
ADD_TOOL_CALL = Statement(
    f"""INSERT INTO tk_tool_calls ({COLUMNS}, conversation_id, user_id, position)
    VALUES (:turn_id, :tool_call_id, :message_id, :tool_name, :server, :arguments, :status, :created_at,
        :result, :error, :chart_data, :duration_ms, :artifact_ids, :model_name, :refs, :conversation_id,
        :user_id, :position)"""
)
_OWN_COLUMNS = f"{COLUMNS}, conversation_id, user_id, position"
_NAMES = tuple(name.strip() for name in _OWN_COLUMNS.split(","))
_TYPES = {
    **dict.fromkeys(("turn_id", "message_id", "conversation_id"), "uuid"),
    **dict.fromkeys(("created_at", "duration_ms", "position"), "bigint"),
}
_EXTRACTED = ", ".join(f"json_extract(value, '$[{at}]')" for at in range(len(_NAMES)))
_EXTRACTED_ON_POSTGRES = ", ".join(
    f"CAST(value ->> {at} AS {_TYPES.get(name, 'text')})" for at, name in enumerate(_NAMES)
)
# Some hundred calls in one step: with a step for each, SQLite's writer would wait for the GIL each time. But
# SQLite ends a JSON text at a NUL, so this is only for calls from a request's body, where NULs are refused.
ADD_TOOL_CALLS = Statement(
    f"""INSERT INTO tk_tool_calls ({_OWN_COLUMNS})
    SELECT {_EXTRACTED} FROM json_each(:calls)""",
    postgres=f"""INSERT INTO tk_tool_calls ({_OWN_COLUMNS})
    SELECT {_EXTRACTED_ON_POSTGRES} FROM json_array_elements(CAST(:calls AS json))""",
)
# The calls of a page of messages: a range of numbers, with messages off the path only if the page has them.
TOOL_CALLS_OF_MESSAGES = Statement(
    f"""SELECT {COLUMNS} FROM tk_tool_calls WHERE message_id IN (
        SELECT id FROM tk_messages
        WHERE conversation_id = :conversation_id AND seq BETWEEN :first AND :last AND tool_call_count > 0
            AND (({on_path()}) OR :with_overwritten))
    ORDER BY message_id, position"""
)
# Ids of new calls are made unique in their conversation: these are taken.
USED_IDS = Statement(
    """SELECT DISTINCT tool_call_id FROM tk_tool_calls WHERE conversation_id = :conversation_id
        AND tool_call_id IN (SELECT value FROM json_each(:ids))""",
    postgres="""SELECT DISTINCT tool_call_id FROM tk_tool_calls WHERE conversation_id = :conversation_id
        AND tool_call_id IN (SELECT value FROM json_array_elements_text(CAST(:ids AS json)))""",
)
# On any branch. Older calls may have the same id.
NEWEST_WITH_ID = Statement(
    f"""SELECT {COLUMNS} FROM tk_tool_calls
    WHERE conversation_id = :conversation_id AND tool_call_id = :tool_call_id
    ORDER BY created_at DESC LIMIT 1"""
)
# Models know older or imported calls by a derived id, which is not stored: the application derives it from
# these, then reads the call by its own.
UNSETTLED_IDS = Statement(
    """SELECT turn_id, tool_call_id FROM tk_tool_calls
    WHERE conversation_id = :conversation_id AND model_name IS NULL"""
)
TOOL_CALL = Statement(
    f"SELECT {COLUMNS} FROM tk_tool_calls WHERE turn_id = :turn_id AND tool_call_id = :tool_call_id"
)
_OF_CALL = ", ".join(f"call.{name.strip()}" for name in COLUMNS.split(","))
# The conditions on the tool match the index's, word for word.
NEWEST_ROLE = Statement(
    f"""SELECT {_OF_CALL} FROM tk_tool_calls AS call
    JOIN tk_messages AS message ON message.id = call.message_id
    WHERE call.conversation_id = :conversation_id AND call.created_at >= :since AND {on_path("message")}
        AND call.server = 'promptx' AND call.tool_name = 'promptx_action' AND call.status = 'ok'
    ORDER BY call.created_at DESC, call.position DESC LIMIT 1"""
)
_FILTERS = {
    "conversation_id": "call.conversation_id = :conversation_id",
    "tool_name": "call.tool_name = :tool_name",
    "status": "call.status = :status",
    "turn_id": "call.turn_id = :turn_id",
    "since": "call.created_at >= :since",
    "until": "call.created_at < :until",
    "ids": "conversation.agent_id IN ({ids})",
    "before_time": """(call.created_at, call.turn_id, call.tool_call_id)
        < (:before_time, :before_turn, :before_id)""",
}

_decode_ids = msgspec.json.Decoder(tuple[PayloadId, ...]).decode
# A dict lookup: calling an enumeration is slow, and pages have many calls.
_tool_call = unchecked(ToolCall)
_status = {status.value: status for status in ToolCallStatus}.__getitem__


@cache
def _tool_calls(*names: str) -> Statement:
    """The statement for the filters in use."""
    # A user's calls are found by the call's user, a conversation's by the conversation.
    owner = "conversation" if "conversation_id" in names else "call"
    return Statement(
        f"""SELECT {_OF_CALL}, call.conversation_id FROM tk_tool_calls AS call
        JOIN tk_conversations AS conversation ON conversation.id = call.conversation_id
        WHERE {owner}.user_id = :user_id AND conversation.deleted_at IS NULL
            {" ".join(f"AND {_FILTERS[name]}" for name in names)}
        ORDER BY call.created_at DESC, call.turn_id DESC, call.tool_call_id DESC
        LIMIT :limit OFFSET :offset"""
    )


def tool_calls_query(
    user_id: UserId, which: ToolCallFilter, before: tuple[int, str, str] | None, offset: int, limit: int
) -> Query:
    """The query for a page of a user's tool calls."""
    values = {name: getattr(which, name) for name in ToolCallFilter.__slots__}
    if which.agents is not None:
        values["ids"] = to_json(which.agents)
    if before is not None:
        values["before_time"], values["before_turn"], values["before_id"] = before
    used = (name for name in _FILTERS if values.get(name) is not None)
    return _tool_calls(*used)(**values, user_id=user_id, offset=offset, limit=limit)


def tool_call_values(call: ToolCall, conversation: Conversation, position: int) -> dict[str, Any]:
    """A tool call as a row."""
    values = {name: getattr(call, name) for name in ToolCall.__slots__}
    return values | {
        "arguments": to_json(call.arguments),
        "result": None if call.result is None else to_json(call.result),
        "chart_data": None if call.chart_data is None else to_json(call.chart_data),
        "artifact_ids": to_json_or_null(call.artifact_ids),
        "model_name": call.model_name or None,
        "refs": to_json_or_null(call.refs),
        "conversation_id": conversation.id,
        "user_id": conversation.user_id,
        "position": position,
    }


def tool_calls_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """The parameter of ADD_TOOL_CALLS for some rows."""
    return to_json([[row[name] for name in _NAMES] for row in rows])


def to_tool_call(row: Row) -> ToolCall:
    """A row as a tool call."""
    (
        turn_id, call_id, message_id, name, server, arguments, status, created_at, result, error, chart,
        duration_ms, artifact_ids, model_name, refs,
    ) = row  # fmt: skip
    return _tool_call(
        turn_id=turn_id,
        tool_call_id=call_id,
        message_id=message_id,
        tool_name=name,
        server=server,
        arguments=to_object(arguments),
        status=_status(status),
        created_at=created_at,
        result=to_value(result),
        error=error,
        chart_data=to_value(chart),
        duration_ms=duration_ms,
        artifact_ids=_decode_ids(artifact_ids) if artifact_ids else (),
        model_name=model_name or "",
        refs=to_object(refs) if refs else {},
    )
