"""What AgentX clients receive: one type per frame, encoded by msgspec.

A frame is an `Envelope` with the data of an event or of a response. Fields are on the wire in the order in
which they are declared; those that are `UNSET` are left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

Category = Literal["stream", "state", "message", "response"]

encode_json = msgspec.json.Encoder().encode


# Envelopes


class EventContext(Struct, frozen=True, rename="camel"):
    """Where an event of a turn happened."""

    container_id: str
    image_id: str
    agent_id: str
    session_id: str
    turn_id: str


class SessionContext(Struct, frozen=True, rename="camel"):
    """The session that something outside of a turn is about."""

    session_id: str


class NoContext(Struct, frozen=True):
    """Of what is about the connection itself."""


class EventData(Struct, frozen=True, rename="camel"):
    """The data of an event."""

    type: ClassVar[str]
    category: ClassVar[Category] = "stream"


class Response(Struct, frozen=True, kw_only=True, rename="camel"):
    """The data of a response."""

    request_id: str | int = ""
    """Of the request that it answers, once that is known."""


class Envelope(Struct, frozen=True):
    """What AgentX sends: data with a type, and where it comes from."""

    type: str
    timestamp: int
    data: EventData | Response
    source: Literal["agent", "command"]
    category: Category
    intent: Literal["notification", "result"]
    context: Raw | SessionContext | NoContext

    def json(self) -> bytes:
        """The envelope as sent."""
        return encode_json(self)


def event_envelope(data: EventData, at: int, context: Raw | SessionContext) -> Envelope:
    """An event; `Raw` is an `EventContext` encoded in advance."""
    return Envelope(data.type, at, data, "agent", data.category, "notification", context)


def response_envelope(
    name: str, data: "Response | Error", at: int, context: SessionContext | NoContext
) -> Envelope:
    """A response to a request, or an error that no request waits for."""
    return Envelope(name, at, data, "command", "response", "result", context)


class Wrapped(Struct, frozen=True):
    """An envelope as sent over the web socket, to be acknowledged by its cursor."""

    cursor: str = msgspec.field(name="__msgId")
    envelope: str = msgspec.field(name="__payload")


# Parts of a message


class TextContent(Struct, frozen=True, tag="text"):
    """A piece of text."""

    text: str


class ImageContent(Struct, frozen=True, rename="camel", tag="image"):
    """An image in base64."""

    data: str
    media_type: str
    name: str


class FileContent(Struct, frozen=True, rename="camel", tag="file"):
    """Another file in base64."""

    data: str
    media_type: str
    filename: str


Content = TextContent | ImageContent | FileContent


# Messages: in a conversation's history, and all but the user's also as events


class UserMessage(Struct, frozen=True, kw_only=True):
    """A user's message; in parts if it has files."""

    id: str
    role: Literal["user"] = "user"
    subtype: Literal["user"] = "user"
    content: str | Sequence[Content]
    timestamp: int


class AssistantMessage(EventData, frozen=True, kw_only=True):
    """The agent's message."""

    type = "assistant_message"
    category = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    subtype: Literal["assistant"] = "assistant"
    content: tuple[TextContent]
    timestamp: int


class CallContent(Struct, frozen=True, tag="tool-call"):
    """A tool call."""

    id: str
    name: str
    input: Mapping[str, Any]


class ToolCallMessage(EventData, frozen=True, kw_only=True):
    """A tool call, which belongs to a message of the agent."""

    type = "tool_call_message"
    category = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    subtype: Literal["tool-call"] = "tool-call"
    tool_call: CallContent
    timestamp: int
    parent_id: str


class Output(Struct, frozen=True):
    """What a tool returned, or why it failed."""

    type: Literal["text", "json", "error-text"]
    value: Any


class ResultContent(Struct, frozen=True, tag="tool-result"):
    """The result of a tool call."""

    id: str
    name: str
    output: Output


class ToolResultMessage(EventData, frozen=True, kw_only=True):
    """The result of a tool call."""

    type = "tool_result_message"
    category = "message"
    id: str
    role: Literal["tool"] = "tool"
    subtype: Literal["tool-result"] = "tool-result"
    tool_call_id: str
    tool_result: ResultContent
    timestamp: int


class ErrorMessage(EventData, frozen=True, kw_only=True):
    """Why a reply failed."""

    type = "error_message"
    category = "message"
    id: str
    role: Literal["error"] = "error"
    subtype: Literal["error"] = "error"
    content: str
    error_code: str
    timestamp: int


Message = UserMessage | AssistantMessage | ToolCallMessage | ToolResultMessage | ErrorMessage


# Events of a turn


class ConversationStart(EventData, frozen=True):
    """A turn begins."""

    type = "conversation_start"
    category = "state"
    message_id: str


class MessageStart(EventData, frozen=True):
    """The agent's message begins."""

    type = "message_start"
    message_id: str
    model: str


class TextDelta(EventData, frozen=True):
    """A piece of the reply."""

    type = "text_delta"
    text: str


class ConversationResponding(EventData, frozen=True):
    """The agent responds: with the first piece of a model call."""

    type = "conversation_responding"
    category = "state"


class ToolUseStart(EventData, frozen=True):
    """The model begins to call a tool."""

    type = "tool_use_start"
    tool_call_id: str
    tool_name: str


class InputJsonDelta(EventData, frozen=True):
    """The arguments of a call, in one piece."""

    type = "input_json_delta"
    partial_json: str


class ToolUseStop(ToolUseStart, frozen=True):
    """The model has called a tool."""

    type = "tool_use_stop"
    input: Mapping[str, Any]


class ToolPlanned(EventData, frozen=True):
    """A call will run."""

    type = "tool_planned"
    category = "state"
    tool_id: str
    tool_name: str


class ToolExecuting(ToolPlanned, frozen=True):
    """A call runs."""

    type = "tool_executing"
    input: Mapping[str, Any]


class ToolResult(EventData, frozen=True):
    """A call has ended."""

    type = "tool_result"
    tool_call_id: str
    result: Any
    is_error: bool


class Tokens(Struct, frozen=True, rename="camel"):
    """The tokens of one model call."""

    input_tokens: int
    output_tokens: int


class MessageDelta(EventData, frozen=True):
    """The usage of one model call; clients add them up."""

    type = "message_delta"
    usage: Tokens


class MessageStop(EventData, frozen=True):
    """The agent's message ends."""

    type = "message_stop"
    stop_reason: str


class MessageComplete(EventData, frozen=True):
    """The agent's message with its whole text."""

    type = "message_complete"
    message_id: str
    content: str
    status: str


class Error(EventData, frozen=True):
    """Something failed: a turn, or what the connection was asked for."""

    type = "error"
    message: str
    error_code: str


class ConversationEnd(EventData, frozen=True):
    """A turn ends."""

    type = "conversation_end"
    category = "state"
    reason: Literal["completed", "interrupted", "error"]


class ErrorOccurred(EventData, frozen=True):
    """A turn has failed."""

    type = "error_occurred"
    category = "state"
    code: str
    message: str
    recoverable: bool


class PathChanged(EventData, frozen=True):
    """Another branch has become the active path, which ends with this message; not an event of a turn."""

    type = "path_changed"
    category = "state"
    message_id: str | None


# Responses to requests


class ErrorResponse(Response, frozen=True, kw_only=True):
    """Why a request failed."""

    error: str
    error_code: str


class OneContainer(Response, frozen=True, kw_only=True):
    """The agent that a client wanted to create, which exists already, or whose running sides were ended."""

    container_id: str


class ContainerStatus(Response, frozen=True, kw_only=True):
    """Whether an agent exists."""

    container_id: str | UnsetType = UNSET
    exists: bool


class ContainerList(Response, frozen=True, kw_only=True):
    """The agents."""

    container_ids: Sequence[str]


class ImageRecord(Struct, frozen=True, kw_only=True, rename="camel"):
    """A conversation. Only its owner sees one, since it names the session."""

    image_id: str
    container_id: str
    session_id: str
    name: str
    description: str = ""
    system_prompt: str = ""
    """Like the description, it belongs to the agent here."""
    created_at: int
    updated_at: int
    online: bool
    agent_id: str | UnsetType = UNSET
    """Only while a turn runs in it."""


class ImageFound(Response, frozen=True, kw_only=True):
    """A conversation, if it exists; clients follow its session from now on."""

    record: ImageRecord | None
    subscriptions: Sequence[str] = msgspec.field(name="__subscriptions")


class ImageList(Response, frozen=True, kw_only=True):
    """The conversations; clients follow their sessions from now on."""

    records: Sequence[ImageRecord]
    subscriptions: Sequence[str] = msgspec.field(name="__subscriptions")


class ImageUpdated(Response, frozen=True, kw_only=True):
    """A renamed conversation."""

    record: ImageRecord


class OneImage(Response, frozen=True, kw_only=True):
    """The conversation that was deleted, or whose turn was stopped."""

    image_id: str


class ImageMessages(Response, frozen=True, kw_only=True):
    """A conversation's history."""

    image_id: str
    messages: Sequence[Message]


class ImageRunning(Response, frozen=True, kw_only=True):
    """A conversation that accepts messages."""

    image_id: str
    agent_id: str
    reused: bool


class AgentStatus(Response, frozen=True, kw_only=True):
    """Whether the running side of a conversation exists."""

    agent_id: str | UnsetType = UNSET
    container_id: str | UnsetType = UNSET
    exists: bool


class ListedAgent(Struct, frozen=True, kw_only=True, rename="camel"):
    """The running side of a conversation."""

    image_id: str
    agent_id: str
    container_id: str


class AgentList(Response, frozen=True, kw_only=True):
    """The running sides of an agent's conversations."""

    agents: Sequence[ListedAgent]


class AgentDestroyed(Response, frozen=True, kw_only=True):
    """The running side that was ended."""

    agent_id: str
    success: bool = True


class AgentInterrupted(Response, frozen=True, kw_only=True):
    """The conversation whose turn was stopped."""

    image_id: str
    agent_id: str


class MessageSent(Response, frozen=True, kw_only=True):
    """The turn that answers a message, or the one that it waits for."""

    image_id: str
    agent_id: str
    turn_id: str | None
    queued: bool | UnsetType = UNSET
