"""A model behind a provider: what it receives, and what it streams back.

The system prompt is separate, and messages only have the roles `user` and `assistant`.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from msgspec import Struct

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.image import ImageTokenRule
from threadkeep.domain.message import Usage
from threadkeep.domain.model import Model

MOST_TOKENS = 10**9
DEMONSTRATION_MODEL = "SmolLM2-135M-Instruct (demonstration)"
"""The name of the small model that comes with Threadkeep."""

# Blocks and messages are msgspec structs, unlike other values: a request has thousands, and its receipt
# stores them as JSON.


class TextBlock(Struct, frozen=True, gc=False, tag="text"):
    """A text."""

    text: str


class ThinkingBlock(Struct, frozen=True, gc=False, tag="thinking"):
    """The model's own reasoning as the provider signed it; it goes back only to `signed_by`."""

    text: str
    signature: str
    signed_by: str


class ToolUseBlock(Struct, frozen=True, gc=False, tag="tool_use"):
    """A tool call by the model."""

    id: str
    name: str
    arguments: Mapping[str, Any]


class ToolResultBlock(Struct, frozen=True, gc=False, tag="tool_result"):
    """A tool's result."""

    tool_use_id: str
    content: str
    is_error: bool


class ImageBlock(Struct, frozen=True, gc=False, tag="image", omit_defaults=True):
    """An image from the user or from a tool call; its bytes are in the request's `contents`."""

    content_id: str
    file_name: str
    tokens: int
    tool_use_id: str = ""


class DocumentBlock(Struct, frozen=True, gc=False, tag="document"):
    """A PDF from the user; its bytes are in the request's `contents`."""

    content_id: str
    file_name: str
    tokens: int


Block = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock | DocumentBlock
FILE_BLOCKS = (ImageBlock, DocumentBlock)
"""For `isinstance`, which is asked of every block of a long history and slower with `|`."""


class ModelMessage(Struct, frozen=True, gc=False):
    """One message of the history."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything that a model call sends."""

    model: str
    """As the provider calls it; in a receipt, the model's id."""
    system: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    tool_choice: str | None = None
    """The tool that the model must call, or "" for any; None: it decides."""
    output: Mapping[str, Any] | None = None
    """The JSON schema of the reply, for providers that hold models to one; the prompt asks for it, too."""
    cache_key: str | None = None
    """Identifies the series of requests with the same prefix, in at most 64 characters; None for a single
    request.
    """
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The bytes of its images and documents, by their ids."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A chunk of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """A chunk of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtSigned:
    """A block of reasoning is complete; `signature` is sent back with it, empty if the provider sent none."""

    signature: str


@dataclass(frozen=True, slots=True)
class UnshownDelta:
    """So many bytes arrived that nobody sees yet, or ever: of a tool call, or of a thought that is hidden."""

    size: int

    @staticmethod
    def of(text: str) -> "UnshownDelta":
        """A chunk of a call's arguments."""
        return UnshownDelta(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))

    @staticmethod
    def of_base64(text: str) -> "UnshownDelta":
        """An encrypted thought: nearly as long as the thought."""
        return UnshownDelta(len(text) * 3 // 4)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The model calls a tool; `problem` says why its arguments are unreadable.

    A gateway passes on the model's id, empty if there is none; the engine replaces it if necessary.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The usage of the call, as reported by the provider; `input_tokens` includes cached input."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def plausible(self) -> "ModelUsage | None":
        """Token counts within a plausible range: an impossible count must not lose the reply."""
        if not all(0 <= tokens <= MOST_TOKENS for tokens in (self.input_tokens, self.output_tokens)):
            return None
        read = min(max(self.cache_read_tokens, 0), self.input_tokens)
        written = min(max(self.cache_write_tokens, 0), self.input_tokens - read)
        return replace(self, cache_read_tokens=read, cache_write_tokens=written)

    def as_usage(self) -> Usage:
        """The usage of the call, before anybody knows its cost."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class ModelStopped:
    """The reply is complete. `stop_reason` is one of end_turn, tool_use, max_tokens, refusal, other."""

    stop_reason: str


class GatewayError(ThreadkeepError):
    """The provider rejected the request, failed or broke off; the message is for people and contains no
    secrets.
    """

    code = "AGENTX_ERROR"

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class GatewayUnavailable(GatewayError):
    """Nothing of a reply arrived: the provider is busy or failed. Another model may reply instead."""

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message, retryable=True)
        self.after_s = after_s
        """How long the provider asks us to wait; None if it doesn't."""


class GatewayUnreachable(GatewayUnavailable):
    """There is no connection to the provider."""


class ReplyBrokeOff(GatewayError):
    """The reply failed in the middle, after some of it had arrived; the same call may succeed next time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True)


@dataclass(frozen=True, slots=True)
class Retrying:
    """Nothing of a reply has arrived yet; after a pause, the request is sent again."""

    error: GatewayUnavailable
    pause_s: float

    @property
    def message(self) -> str:
        """What happened and what happens now, for people."""
        return f"{self.error.message} Retrying in {self.pause_s:.1f} s."


ModelEvent = (
    TextDelta | ThoughtDelta | ThoughtSigned | UnshownDelta | ToolUse | ModelUsage | Retrying | ModelStopped
)


@dataclass(frozen=True, slots=True)
class TakenFiles:
    """The file types a model accepts as is."""

    images: ImageTokenRule | None = None
    """How it counts images; None if it doesn't accept any."""
    pdfs: bool = False


TAKES_NO_FILES = TakenFiles()


class Gateway(Protocol):
    """A connection to the models of one account with a provider."""

    def describe(self, model: str) -> Model:
        """What is known about a model."""
        ...

    def signer(self, model: str) -> str:
        """The signer of a model's reasoning: other gateways and models would reject it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls the model; raises GatewayError, ends with ModelStopped. Closing it cancels the call."""
        ...

    async def retire(self) -> None:
        """Nobody new uses it: closes its connections as soon as its last call has ended."""
        ...

    async def close(self) -> None:
        """Closes the connections."""
        ...
