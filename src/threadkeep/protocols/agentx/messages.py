"""Messages as AgentX shows them: in events while a turn runs, and in a conversation's history.

AgentX has separate messages for a call and its result. Ours are parts of one reply, so their ids derive from
the call's: the same in events and in the history.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import card_of
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus

Shown = Mapping[str, Any]


def history(message: Message, files: Sequence[Shown] = ()) -> list[Shown]:
    """A stored message: a question with its files, or a reply with its calls, results and failure."""
    match message.role:
        case MessageRole.USER:
            return [user_message(message.id, message.text, message.created_at, files)]
        case MessageRole.ASSISTANT:
            return _reply(message)
        case MessageRole.SYSTEM:
            # AgentX has no briefing message; as the agent's words it at least gets read.
            card = card_of(message.parts)
            text = card.text if card else message.text
            return [assistant_message(message.id, text, message.created_at)]
        case _ as never:
            assert_never(never)


def user_message(message_id: str, text: str, at: int, files: Sequence[Shown] = ()) -> Shown:
    """A user's message; in parts if it has files."""
    said = [{"type": "text", "text": text}] if text else []
    content = [*said, *files] if files else text
    return {"id": message_id, "role": "user", "subtype": "user", "content": content, "timestamp": at}


def assistant_message(message_id: str, text: str, at: int) -> Shown:
    """The agent's message."""
    return {
        "id": message_id,
        "role": "assistant",
        "subtype": "assistant",
        "content": [{"type": "text", "text": text}],
        "timestamp": at,
    }


def call_message(call_id: str, name: str, arguments: Mapping[str, Any], at: int, reply_id: str) -> Shown:
    """A tool call, which belongs to a reply."""
    return {
        "id": f"{call_id}:call",
        "role": "assistant",
        "subtype": "tool-call",
        "toolCall": {"type": "tool-call", "id": call_id, "name": name, "input": arguments},
        "timestamp": at,
        "parentId": reply_id,
    }


def result_message(call_id: str, name: str, result: object, error: str | None, at: int) -> Shown:
    """The result of a call."""
    return {
        "id": f"{call_id}:result",
        "role": "tool",
        "subtype": "tool-result",
        "toolCallId": call_id,
        "toolResult": {
            "type": "tool-result",
            "id": call_id,
            "name": name,
            "output": _output(result, error),
        },
        "timestamp": at,
    }


def error_message(reply_id: str, code: str, text: str, at: int) -> Shown:
    """Why a reply failed."""
    return {
        "id": f"{reply_id}:error",
        "role": "error",
        "subtype": "error",
        "content": text,
        "errorCode": code,
        "timestamp": at,
    }


def _output(result: object, error: str | None) -> Shown:
    if error is not None:
        return {"type": "error-text", "value": error}
    return {"type": "text" if isinstance(result, str) else "json", "value": result}


def _reply(message: Message) -> list[Shown]:
    at = message.completed_at or message.created_at
    shown: list[Shown] = []
    # Calls name the reply that they belong to, so it is included even if it is blank.
    if message.tool_calls or not is_blank(message.text):
        shown.append(assistant_message(message.id, message.text, at))
    for call in message.tool_calls:
        shown += _call(message, call)
    if (failure := message.error) is not None:
        shown.append(error_message(message.id, failure.code, failure.message, at))
    return shown


def _call(message: Message, call: ToolCall) -> list[Shown]:
    """A call and, once it has ended, its result. Its id is unique within the conversation."""
    id_, name = call.sent_id, call.tool_name
    shown = [call_message(id_, name, call.arguments, call.created_at, message.id)]
    if call.status is not ToolCallStatus.RUNNING:
        ended_at = call.created_at + (call.duration_ms or 0)
        shown.append(result_message(id_, name, call.result, call.error, ended_at))
    return shown
