"""What AG-UI clients receive: one type per event, and the messages of a snapshot.

The clients reject null, so what may be missing is `UNSET`. By hand: the models generated from the schema are
2,800 lines and lack what CopilotKit asks for. `tests/clients/ag_ui` reads our events with the real clients.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

encode_json = msgspec.json.Encoder().encode


# Messages, as a snapshot has them and as a client builds them from events


class TextContent(Struct, frozen=True, tag_field="type", tag="text"):
    """Text in a user's message that also has files."""

    text: str


class DataSource(Struct, frozen=True, rename="camel", tag_field="type", tag="data"):
    """A file's content in base64."""

    value: str
    mime_type: str


class UrlSource(Struct, frozen=True, rename="camel", tag_field="type", tag="url"):
    """Where a file is."""

    value: str
    mime_type: str


class ImageContent(Struct, frozen=True, tag_field="type", tag="image"):
    """An image that a user attached."""

    source: DataSource | UrlSource
    metadata: Mapping[str, Any]


class DocumentContent(Struct, frozen=True, tag_field="type", tag="document"):
    """Another file that a user attached."""

    source: DataSource | UrlSource
    metadata: Mapping[str, Any]


Content = TextContent | ImageContent | DocumentContent


class UserMessage(Struct, frozen=True, tag_field="role", tag="user"):
    """What the user said."""

    id: str
    content: str | Sequence[Content]


class Function(Struct, frozen=True):
    """What a call calls; the arguments are JSON in a string."""

    name: str
    arguments: str


class ToolCall(Struct, frozen=True, tag_field="type", tag="function"):
    """A tool call."""

    id: str
    function: Function


class AssistantMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="assistant"):
    """A text of the agent, or its tool call."""

    id: str
    content: str | UnsetType = UNSET
    tool_calls: Sequence[ToolCall] | UnsetType = UNSET


class ToolMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="tool"):
    """The result of a tool call; the metadata has its status unless that is `ok`."""

    id: str
    tool_call_id: str
    content: str
    metadata: Mapping[str, Any] | UnsetType = UNSET


class ReasoningMessage(Struct, frozen=True, tag_field="role", tag="reasoning"):
    """A thought of the agent."""

    id: str
    content: str


class ActivityMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="activity"):
    """What is neither text nor call, such as sources. Clients show the types that they know."""

    id: str
    activity_type: str
    content: Mapping[str, Any]


Message = UserMessage | AssistantMessage | ToolMessage | ReasoningMessage | ActivityMessage


# The run


class RunStarted(Struct, frozen=True, rename="camel", tag_field="type", tag="RUN_STARTED"):
    """The first event."""

    thread_id: str
    run_id: str
    metadata: Mapping[str, str] | UnsetType = UNSET


class Interrupt(Struct, frozen=True, rename="camel", kw_only=True):
    """A request to the user that the next run must answer."""

    id: str
    reason: str
    message: str
    tool_call_id: str | UnsetType = UNSET
    response_schema: Mapping[str, Any] | UnsetType = UNSET
    expires_at: str
    metadata: Mapping[str, Any] | UnsetType = UNSET


class Interrupted(Struct, frozen=True, tag_field="type", tag="interrupt"):
    """The run waits for its user."""

    interrupts: Sequence[Interrupt]


class Cancelled(Struct, frozen=True, tag_field="type", tag="cancelled"):
    """The run was stopped."""


class TokenUsage(Struct, frozen=True, rename="camel", kw_only=True):
    """The tokens that a run spent on a model."""

    model: str | UnsetType
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_input_tokens: int


class RunFinished(Struct, frozen=True, rename="camel", tag_field="type", tag="RUN_FINISHED"):
    """The last event of a run that completed, was stopped, or waits."""

    thread_id: str
    run_id: str
    outcome: Interrupted | Cancelled | UnsetType = UNSET
    usage: Sequence[TokenUsage] | UnsetType = UNSET


class RunError(Struct, frozen=True, tag_field="type", tag="RUN_ERROR"):
    """The last event of a run that failed."""

    message: str
    code: str


class StateSnapshot(Struct, frozen=True, tag_field="type", tag="STATE_SNAPSHOT"):
    """The state that the client sent with the run."""

    snapshot: Any


class MessagesSnapshot(Struct, frozen=True, tag_field="type", tag="MESSAGES_SNAPSHOT"):
    """The conversation; it replaces what the client has."""

    messages: Sequence[Message]


# What happens in a run


class TextMessageStart(Struct, frozen=True, rename="camel", tag_field="type", tag="TEXT_MESSAGE_START"):
    """A text begins, or goes on if the client has it."""

    message_id: str
    role: Literal["assistant", "user"] = "assistant"


class TextMessageContent(Struct, frozen=True, rename="camel", tag_field="type", tag="TEXT_MESSAGE_CONTENT"):
    """A piece of a text."""

    message_id: str
    delta: str


class TextMessageEnd(Struct, frozen=True, rename="camel", tag_field="type", tag="TEXT_MESSAGE_END"):
    """A text is complete."""

    message_id: str


class ReasoningStart(Struct, frozen=True, rename="camel", tag_field="type", tag="REASONING_START"):
    """The agent begins to think."""

    message_id: str


class ReasoningMessageStart(
    Struct, frozen=True, rename="camel", tag_field="type", tag="REASONING_MESSAGE_START"
):
    """A thought begins, or goes on if the client has it."""

    message_id: str
    role: Literal["reasoning"] = "reasoning"


class ReasoningMessageContent(
    Struct, frozen=True, rename="camel", tag_field="type", tag="REASONING_MESSAGE_CONTENT"
):
    """A piece of a thought."""

    message_id: str
    delta: str


class ReasoningMessageEnd(Struct, frozen=True, rename="camel", tag_field="type", tag="REASONING_MESSAGE_END"):
    """A thought is complete."""

    message_id: str


class ReasoningEnd(Struct, frozen=True, rename="camel", tag_field="type", tag="REASONING_END"):
    """The agent has stopped thinking."""

    message_id: str


class ToolCallStart(Struct, frozen=True, rename="camel", tag_field="type", tag="TOOL_CALL_START"):
    """A tool call begins; the client makes a message of it, whose id is the call's."""

    tool_call_id: str
    tool_call_name: str


class ToolCallArgs(Struct, frozen=True, rename="camel", tag_field="type", tag="TOOL_CALL_ARGS"):
    """The arguments of a call, in one piece."""

    tool_call_id: str
    delta: str


class ToolCallEnd(Struct, frozen=True, rename="camel", tag_field="type", tag="TOOL_CALL_END"):
    """A call is complete; not yet its execution."""

    tool_call_id: str


class ToolCallResult(Struct, frozen=True, rename="camel", tag_field="type", tag="TOOL_CALL_RESULT"):
    """The result of a call."""

    message_id: str
    tool_call_id: str
    content: str
    role: Literal["tool"] = "tool"
    metadata: Mapping[str, Any] | UnsetType = UNSET


class ActivitySnapshot(Struct, frozen=True, rename="camel", tag_field="type", tag="ACTIVITY_SNAPSHOT"):
    """An activity message; it replaces the message that has its id."""

    message_id: str
    activity_type: str
    content: Mapping[str, Any]


class Custom(Struct, frozen=True, tag_field="type", tag="CUSTOM"):
    """What AG-UI has no event for."""

    name: str
    value: Any


Frame = (
    RunStarted
    | RunFinished
    | RunError
    | StateSnapshot
    | MessagesSnapshot
    | TextMessageStart
    | TextMessageContent
    | TextMessageEnd
    | ReasoningStart
    | ReasoningMessageStart
    | ReasoningMessageContent
    | ReasoningMessageEnd
    | ReasoningEnd
    | ToolCallStart
    | ToolCallArgs
    | ToolCallEnd
    | ToolCallResult
    | ActivitySnapshot
    | Custom
)


class Agent(Struct, frozen=True, rename="camel"):
    """An agent, as CopilotKit lists it."""

    name: str
    description: str
    class_name: str = "HttpAgent"


class Info(Struct, frozen=True, rename="camel", kw_only=True):
    """What CopilotKit asks its runtime for first."""

    version: str
    mode: Literal["sse"] = "sse"
    agents: Mapping[str, Agent]
    audio_file_transcription_enabled: bool = False


class Stopped(Struct, frozen=True):
    """Whether a run was stopped."""

    stopped: bool


class Error(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Why a request was refused: CopilotKit shows `message`."""

    error: str
    message: str
    request_id: str
    param: str | None = None
    details: Any = None
