"""Tool calls in the database: records of their own, found by message or by tool."""

from typing import Any

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.storage.columns import to_json, to_json_or_null, to_object, to_value
from threadkeep.storage.database import Row, Statement

_COLUMNS = """turn_id, tool_call_id, message_id, tool_name, server, arguments, status, created_at, result,
    error, chart_data, duration_ms, refs"""

ADD_TOOL_CALL = Statement(
    f"""INSERT INTO tk_tool_calls ({_COLUMNS}, conversation_id, user_id, position)
    VALUES (:turn_id, :tool_call_id, :message_id, :tool_name, :server, :arguments, :status, :created_at,
        :result, :error, :chart_data, :duration_ms, :refs, :conversation_id, :user_id, :position)"""
)
TOOL_CALLS_OF_MESSAGES = Statement(
    f"""SELECT {_COLUMNS} FROM tk_tool_calls WHERE message_id IN (
        SELECT id FROM tk_messages
        WHERE conversation_id = :conversation_id AND seq BETWEEN :first AND :last AND tool_call_count > 0)
    ORDER BY message_id, position"""
)
TOOL_CALLS_BY_TOOL = Statement(
    f"""SELECT {_COLUMNS} FROM tk_tool_calls
    WHERE user_id = :user_id AND tool_name = :tool_name
        AND (created_at, tool_call_id) < (:before_time, :before_id)
    ORDER BY created_at DESC, tool_call_id DESC LIMIT :limit"""
)


def tool_call_values(call: ToolCall, conversation: Conversation, position: int) -> dict[str, Any]:
    """A tool call as a row."""
    values = {name: getattr(call, name) for name in ToolCall.__slots__}
    return values | {
        "arguments": to_json(call.arguments),
        "result": None if call.result is None else to_json(call.result),
        "chart_data": None if call.chart_data is None else to_json(call.chart_data),
        "refs": to_json_or_null(call.refs),
        "conversation_id": conversation.id,
        "user_id": conversation.user_id,
        "position": position,
    }


def to_tool_call(row: Row) -> ToolCall:
    """A row as a tool call."""
    (
        turn_id, call_id, message_id, name, server, arguments, status, created_at, result, error, chart,
        duration_ms, refs,
    ) = row  # fmt: skip
    return ToolCall(
        turn_id, call_id, message_id, name, server, to_object(arguments), ToolCallStatus(status), created_at,
        to_value(result), error, to_value(chart), duration_ms,
        to_object(refs) if refs else {},
    )  # fmt: skip
