"""What AI SDK clients receive: the chunks of a stream, and the messages that they build from them.

A chunk that is added to the message as it is (a source, a file, data) is also that message's part. What a
chunk may leave out is UNSET: clients reject null.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

Version = Literal[5, 6, 7]
"""The major version of the package `ai`. A chunk that a version doesn't know is fatal to it."""

Metadata = Mapping[str, Any]
FinishReason = Literal["stop", "length", "content-filter", "tool-calls", "other"]

HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
DONE = b"data: [DONE]\n\n"

encode_json = msgspec.json.Encoder().encode


class _Tagged(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    pass


def sse(chunk: "Chunk") -> bytes:
    """A chunk as sent."""
    return b"data: %b\n\n" % encode_json(chunk)


# The message and its steps


class Start(_Tagged, frozen=True, kw_only=True, tag="start"):
    """The message begins, or continues after the answer to a request."""

    message_id: str
    message_metadata: Metadata | UnsetType = UNSET


class Mark(Struct, frozen=True):
    """What has no more than a type.

    `start-step` and `finish-step` enclose a model call and its tools, `reset-step` (version 7) removes what
    the step has so far, and `abort` says that the turn was stopped.
    """

    type: Literal["start-step", "finish-step", "reset-step", "abort"]


class Finish(_Tagged, frozen=True, kw_only=True, tag="finish"):
    """The message is complete, or waits for its user."""

    finish_reason: FinishReason
    message_metadata: Metadata | UnsetType = UNSET


class Error(_Tagged, frozen=True, kw_only=True, tag="error"):
    """The turn failed."""

    error_text: str


# Texts and thoughts


class Boundary(Struct, frozen=True):
    """`text-start`, `text-end`, `reasoning-start` and `reasoning-end`."""

    type: str
    id: str


class Delta(Struct, frozen=True):
    """`text-delta` and `reasoning-delta`: a piece."""

    type: str
    id: str
    delta: str


# Tools


class ToolInputStart(_Tagged, frozen=True, kw_only=True, tag="tool-input-start"):
    """A tool is about to be called."""

    tool_call_id: str
    tool_name: str


class ToolInputDelta(_Tagged, frozen=True, kw_only=True, tag="tool-input-delta"):
    """What it will be called with, as JSON."""

    tool_call_id: str
    input_text_delta: str


class ToolInputAvailable(_Tagged, frozen=True, kw_only=True, tag="tool-input-available"):
    """A tool is called. The client runs it unless it is `provider_executed`."""

    tool_call_id: str
    tool_name: str
    input: Any
    provider_metadata: Metadata
    dynamic: bool | UnsetType = UNSET
    provider_executed: bool | UnsetType = UNSET


class ToolApprovalRequest(_Tagged, frozen=True, kw_only=True, tag="tool-approval-request"):
    """A call waits for the user. From version 6; `reason` from 7."""

    approval_id: str
    tool_call_id: str
    reason: str | UnsetType = UNSET


class ToolApprovalResponse(_Tagged, frozen=True, kw_only=True, tag="tool-approval-response"):
    """The user's decision about a call. Version 7."""

    approval_id: str
    approved: bool


class ToolOutputAvailable(_Tagged, frozen=True, kw_only=True, tag="tool-output-available"):
    """A call's result. Version 5 finds a dynamic call only if its result is `dynamic`, too."""

    tool_call_id: str
    output: Any
    dynamic: bool | UnsetType = UNSET


class ToolOutputError(_Tagged, frozen=True, kw_only=True, tag="tool-output-error"):
    """A call failed."""

    tool_call_id: str
    error_text: str
    dynamic: bool | UnsetType = UNSET


class ToolOutputDenied(_Tagged, frozen=True, kw_only=True, tag="tool-output-denied"):
    """The user denied a call. From version 6."""

    tool_call_id: str


# Chunks that are parts of the message, too


class SourceUrl(_Tagged, frozen=True, kw_only=True, tag="source-url"):
    """A page that the answer may cite by `source_id`."""

    source_id: str
    url: str
    title: str


class SourceDocument(_Tagged, frozen=True, kw_only=True, tag="source-document"):
    """A document that the answer may cite by `source_id`."""

    source_id: str
    media_type: str
    title: str
    filename: str | UnsetType = UNSET


class File(_Tagged, frozen=True, kw_only=True, tag="file"):
    """A file of the user, or an image that a tool returned; only the former has its name."""

    media_type: str
    filename: str | UnsetType = UNSET
    url: str


class Text(_Tagged, frozen=True, kw_only=True, tag="text"):
    """A whole text."""

    text: str
    state: Literal["done"] | UnsetType = UNSET


class SteeringMessage(_Tagged, frozen=True, kw_only=True, tag="steering-message"):
    """A message that the user sent while the turn ran. Version 7."""

    id: str
    parts: Sequence[Text]


class Data(Struct, frozen=True, kw_only=True):
    """Data of a kind of our own; a later one with the same type and id takes its place.

    A transient one is only reported to the client, not added to the message.
    """

    type: str
    id: str | UnsetType = UNSET
    data: Mapping[str, Any]
    transient: bool | UnsetType = UNSET


SharedPart = SourceUrl | SourceDocument | File | SteeringMessage | Data


# Parts of messages that take several chunks


class StepStart(_Tagged, frozen=True, kw_only=True, tag="step-start"):
    """A model call begins."""


class Reasoning(_Tagged, frozen=True, kw_only=True, tag="reasoning"):
    """A whole thought."""

    id: str
    text: str
    state: Literal["done"] = "done"


class Approval(Struct, frozen=True, kw_only=True, rename="camel"):
    """The request about a call, and the user's decision."""

    id: str
    request_reason: str | UnsetType = UNSET
    approved: bool | UnsetType = UNSET


ToolState = Literal[
    "input-available",
    "approval-requested",
    "approval-responded",
    "output-available",
    "output-error",
    "output-denied",
]


class Tool(Struct, frozen=True, kw_only=True, rename="camel"):
    """A tool call: `dynamic-tool`, or `tool-<name>` if the client runs it."""

    type: str
    tool_name: str | UnsetType = UNSET
    tool_call_id: str
    state: ToolState
    input: Any
    output: Any = UNSET
    error_text: str | UnsetType = UNSET
    provider_executed: bool | UnsetType = UNSET
    call_provider_metadata: Metadata
    approval: Approval | UnsetType = UNSET


Part = StepStart | Text | Reasoning | Tool | SharedPart


class UIMessage(Struct, frozen=True, kw_only=True):
    """A message as the client would have built it."""

    id: str
    role: Literal["user", "assistant"]
    metadata: Metadata | UnsetType = UNSET
    parts: Sequence[Part]


class Chat(Struct, frozen=True, kw_only=True, rename="camel"):
    """A conversation, as `useChat` takes it; `conversationId` is its id in our own API."""

    id: str
    conversation_id: str | UnsetType = UNSET
    messages: Sequence[UIMessage]


Chunk = (
    Start
    | Mark
    | Finish
    | Error
    | Boundary
    | Delta
    | ToolInputStart
    | ToolInputDelta
    | ToolInputAvailable
    | ToolApprovalRequest
    | ToolApprovalResponse
    | ToolOutputAvailable
    | ToolOutputError
    | ToolOutputDenied
    | SharedPart
)
