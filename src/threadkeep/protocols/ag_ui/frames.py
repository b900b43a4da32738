"""What AG-UI clients receive: one type per event, and the messages of a snapshot.

The clients reject null, so what may be missing is `UNSET`. By hand: the models generated from the schema are
2,800 lines and lack what CopilotKit asks for. `tests/clients/ag_ui` reads our events with the real clients.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

encode_json = msgspec.json.Encoder().encode


class _Typed(Struct, frozen=True, rename="camel", tag_field="type"):
    pass


class _Message(Struct, frozen=True, rename="camel", tag_field="role"):
    pass


# Messages, as a snapshot has them and as a client builds them from events


class TextContent(_Typed, frozen=True, tag="text"):
    """Text in a user's message that also has files."""

    text: str


class DataSource(_Typed, frozen=True, tag="data"):
    """A file's content in base64."""

    value: str
    mime_type: str


class UrlSource(_Typed, frozen=True, tag="url"):
    """Where a file is."""

    value: str
    mime_type: str


class ImageContent(_Typed, frozen=True, tag="image"):
    """An image that a user attached."""

    source: DataSource | UrlSource
    metadata: Mapping[str, Any]


class DocumentContent(_Typed, frozen=True, tag="document"):
    """Another file that a user attached."""

    source: DataSource | UrlSource
    metadata: Mapping[str, Any]


Content = TextContent | ImageContent | DocumentContent


class UserMessage(_Message, frozen=True, tag="user"):
    """What the user said."""

    id: str
    content: str | Sequence[Content]


class Function(Struct, frozen=True):
    """What a call calls; the arguments are JSON in a string."""

    name: str
    arguments: str


class ToolCall(_Typed, frozen=True, tag="function"):
    """A tool call."""

    id: str
    function: Function


class AssistantMessage(_Message, frozen=True, tag="assistant"):
    """A text of the agent, or its tool call."""

    id: str
    content: str | UnsetType = UNSET
    tool_calls: Sequence[ToolCall] | UnsetType = UNSET


class ToolMessage(_Message, frozen=True, tag="tool"):
    """The result of a tool call; the metadata has its status unless that is `ok`."""

    id: str
    tool_call_id: str
    content: str
    metadata: Mapping[str, Any] | UnsetType = UNSET


class ReasoningMessage(_Message, frozen=True, tag="reasoning"):
    """A thought of the agent."""

    id: str
    content: str


class ActivityMessage(_Message, frozen=True, tag="activity"):
    """What is neither text nor call, such as sources. Clients show the types that they know."""

    id: str
    activity_type: str
    content: Mapping[str, Any]


Message = UserMessage | AssistantMessage | ToolMessage | ReasoningMessage | ActivityMessage


# The run


class RunStarted(_Typed, frozen=True, tag="RUN_STARTED"):
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


class Interrupted(_Typed, frozen=True, tag="interrupt"):
    """The run waits for its user."""

    interrupts: Sequence[Interrupt]


class Cancelled(_Typed, frozen=True, tag="cancelled"):
    """The run was stopped."""


class TokenUsage(Struct, frozen=True, rename="camel", kw_only=True):
    """The tokens that a run spent on a model."""

    model: str | UnsetType
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_input_tokens: int


class RunFinished(_Typed, frozen=True, tag="RUN_FINISHED"):
    """The last event of a run that completed, was stopped, or waits."""

    thread_id: str
    run_id: str
    outcome: Interrupted | Cancelled | UnsetType = UNSET
    usage: Sequence[TokenUsage] | UnsetType = UNSET
    result: Any = UNSET
    """The reply as a value, where it is structured."""


class RunError(_Typed, frozen=True, tag="RUN_ERROR"):
    """The last event of a run that failed."""

    message: str
    code: str


class StateSnapshot(_Typed, frozen=True, tag="STATE_SNAPSHOT"):
    """The state that the client sent with the run."""

    snapshot: Any


class MessagesSnapshot(_Typed, frozen=True, tag="MESSAGES_SNAPSHOT"):
    """The conversation; it replaces what the client has."""

    messages: Sequence[Message]


# What happens in a run


class MessageStart(Struct, frozen=True, rename="camel"):
    """`TEXT_MESSAGE_START` and `REASONING_MESSAGE_START`: it begins, or goes on if the client has it."""

    type: str
    message_id: str
    role: Literal["assistant", "user", "reasoning"]


class MessageContent(Struct, frozen=True, rename="camel"):
    """`TEXT_MESSAGE_CONTENT` and `REASONING_MESSAGE_CONTENT`: a piece."""

    type: str
    message_id: str
    delta: str


class MessageBoundary(Struct, frozen=True, rename="camel"):
    """`TEXT_MESSAGE_END`, `REASONING_MESSAGE_END`; around thoughts, `REASONING_START` and `REASONING_END`."""

    type: str
    message_id: str


class StepBoundary(Struct, frozen=True, rename="camel"):
    """`STEP_STARTED` and `STEP_FINISHED`: the name is unique among the steps that are open."""

    type: str
    step_name: str


class ToolCallStart(_Typed, frozen=True, tag="TOOL_CALL_START"):
    """A tool call begins; the client makes a message of it, whose id is the call's."""

    tool_call_id: str
    tool_call_name: str


class ToolCallArgs(_Typed, frozen=True, tag="TOOL_CALL_ARGS"):
    """The arguments of a call, in one piece."""

    tool_call_id: str
    delta: str


class ToolCallEnd(_Typed, frozen=True, tag="TOOL_CALL_END"):
    """A call is complete; not yet its execution."""

    tool_call_id: str


class ToolCallResult(_Typed, frozen=True, tag="TOOL_CALL_RESULT"):
    """The result of a call."""

    message_id: str
    tool_call_id: str
    content: str
    role: Literal["tool"] = "tool"
    metadata: Mapping[str, Any] | UnsetType = UNSET


class ActivitySnapshot(_Typed, frozen=True, tag="ACTIVITY_SNAPSHOT"):
    """An activity message; it replaces the message that has its id."""

    message_id: str
    activity_type: str
    content: Mapping[str, Any]


class Custom(_Typed, frozen=True, tag="CUSTOM"):
    """What AG-UI has no event for."""

    name: str
    value: Any


Frame = (
    RunStarted
    | RunFinished
    | RunError
    | StateSnapshot
    | MessagesSnapshot
    | MessageStart
    | MessageContent
    | MessageBoundary
    | StepBoundary
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
