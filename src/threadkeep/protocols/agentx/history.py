"""Stored conversations and messages → frames. Pure, like `encode.py`.

AgentX has separate messages for a call and its result. Ours are parts of one reply, so their ids derive from
the call's: the same in events and in the history.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from msgspec import UNSET

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import card_of
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.protocols.agentx import frames


def image_record(conversation: Conversation) -> frames.ImageRecord:
    """A conversation as an image; online, and with an agent, while a turn runs in it."""
    return frames.ImageRecord(
        image_id=conversation.id,
        container_id=conversation.agent_id,
        session_id=conversation.session_id.reveal(),
        name=conversation.title or "",
        created_at=conversation.created_at,
        updated_at=conversation.updated_at,
        online=is_online(conversation),
        agent_id=agent_id_of(conversation) if is_online(conversation) else UNSET,
    )


def is_online(conversation: Conversation) -> bool:
    """Whether a turn runs in it."""
    return conversation.active_turn_id is not None


def agent_id_of(conversation: Conversation) -> str:
    """The id of its AgentX agent: the running side of one conversation, so the conversation's id."""
    return conversation.id


def history(message: Message, files: Sequence[frames.Content] = ()) -> list[frames.Message]:
    """A stored message: a question with its files, or a reply with its calls, results and failure."""
    match message.role:
        case MessageRole.USER:
            return [_user_message(message, files)]
        case MessageRole.ASSISTANT:
            return _reply(message)
        case MessageRole.SYSTEM:
            # AgentX has no briefing message; as the agent's words it at least gets read.
            card = card_of(message.parts)
            text = card.text if card else message.text
            return [assistant_message(message.id, text, message.created_at)]
        case _ as never:
            assert_never(never)


def _user_message(message: Message, files: Sequence[frames.Content]) -> frames.UserMessage:
    said = [frames.TextContent(message.text)] if message.text else []
    content = [*said, *files] if files else message.text
    return frames.UserMessage(id=message.id, content=content, timestamp=message.created_at)


def _reply(message: Message) -> list[frames.Message]:
    at = message.completed_at or message.created_at
    shown: list[frames.Message] = []
    # Calls name the reply that they belong to, so it is included even if it is blank.
    if message.tool_calls or not is_blank(message.text):
        shown.append(assistant_message(message.id, message.text, at))
    for call in message.tool_calls:
        shown += _call(message, call)
    if (failure := message.error) is not None:
        shown.append(error_message(message.id, failure.code, failure.message, at))
    return shown


def _call(message: Message, call: ToolCall) -> list[frames.Message]:
    """A call and, once it has ended, its result. Its id is unique within the conversation."""
    id_, name = call.sent_id, call.tool_name
    shown: list[frames.Message] = [call_message(id_, name, call.arguments, call.created_at, message.id)]
    if call.status is not ToolCallStatus.RUNNING:
        ended_at = call.created_at + (call.duration_ms or 0)
        shown.append(result_message(id_, name, call.result, call.error, ended_at))
    return shown


# The messages that are events, too


def assistant_message(message_id: str, text: str, at: int) -> frames.AssistantMessage:
    """The agent's message."""
    return frames.AssistantMessage(id=message_id, content=(frames.TextContent(text),), timestamp=at)


def call_message(
    call_id: str, name: str, arguments: Mapping[str, Any], at: int, reply_id: str
) -> frames.ToolCallMessage:
    """A tool call, which belongs to a reply."""
    return frames.ToolCallMessage(
        id=f"{call_id}:call",
        tool_call=frames.CallContent(call_id, name, arguments),
        timestamp=at,
        parent_id=reply_id,
    )


def result_message(
    call_id: str, name: str, result: object, error: str | None, at: int
) -> frames.ToolResultMessage:
    """The result of a call."""
    return frames.ToolResultMessage(
        id=f"{call_id}:result",
        tool_call_id=call_id,
        tool_result=frames.ResultContent(call_id, name, _output(result, error)),
        timestamp=at,
    )


def _output(result: object, error: str | None) -> frames.Output:
    if error is not None:
        return frames.Output("error-text", error)
    return frames.Output("text" if isinstance(result, str) else "json", result)


def error_message(reply_id: str, code: str, text: str, at: int) -> frames.ErrorMessage:
    """Why a reply failed."""
    return frames.ErrorMessage(id=f"{reply_id}:error", content=text, error_code=code, timestamp=at)
