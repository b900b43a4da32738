"""What clients of the Responses API receive. Fields that OpenAI requires are there even if they are null.

By hand: the types generated from the specification are 1,800 lines, with one class for each event where ours
share one for each shape, and without our defaults. `tests/clients/openai` checks what we send with them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

ItemStatus = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class SummaryText(Struct, frozen=True, tag="summary_text"):
    """A part of a summary of the model's reasoning."""

    text: str


class ReasoningItem(Struct, frozen=True, tag="reasoning"):
    """What the model thought."""

    id: str
    summary: Sequence[SummaryText] = ()
    status: ItemStatus | UnsetType = UNSET


class UrlCitation(Struct, frozen=True, tag="url_citation"):
    """A page that a text cites."""

    start_index: int
    end_index: int
    url: str
    title: str


class FileCitation(Struct, frozen=True, tag="file_citation"):
    """A document that a text cites."""

    file_id: str
    filename: str
    index: int


Annotation = UrlCitation | FileCitation


class OutputText(Struct, frozen=True, tag="output_text"):
    """A text of the model."""

    text: str
    annotations: Sequence[Annotation] = ()
    logprobs: Sequence[Any] = ()


class RefusalText(Struct, frozen=True, tag="refusal"):
    """What the model says instead of the JSON that it was asked for."""

    refusal: str


MessagePart = OutputText | RefusalText


class MessageItem(Struct, frozen=True, tag="message"):
    """A message of the model."""

    id: str
    status: ItemStatus
    content: Sequence[MessagePart] = ()
    role: Literal["assistant"] = "assistant"


class TextContent(Struct, frozen=True, tag="text"):
    """A text as MCP's tools return it."""

    text: str


class ToolExecutionError(Struct, frozen=True, tag="mcp_tool_execution_error"):
    """Why a call of one of the agent's own tools failed."""

    content: Sequence[TextContent]


class McpCallItem(Struct, frozen=True, tag="mcp_call"):
    """A call of one of the agent's own tools."""

    id: str
    server_label: str
    name: str
    arguments: str
    status: Literal["in_progress", "completed", "incomplete", "calling", "failed"]
    output: str | None = None
    error: ToolExecutionError | None = None
    approval_request_id: str | None = None


class McpApprovalRequestItem(Struct, frozen=True, tag="mcp_approval_request"):
    """A call that waits for the user."""

    id: str
    server_label: str
    name: str
    arguments: str


class FunctionCallItem(Struct, frozen=True, tag="function_call"):
    """A call of a function that the client runs."""

    id: str
    call_id: str
    name: str
    arguments: str
    status: ItemStatus


class FileSearchResult(Struct, frozen=True):
    """A passage that was found."""

    file_id: str
    filename: str
    score: float
    text: str


class FileSearchItem(Struct, frozen=True, tag="file_search_call"):
    """A search in the agent's documents."""

    id: str
    queries: Sequence[str]
    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"]
    results: Sequence[FileSearchResult] | None = None


OutputItem = (
    ReasoningItem | MessageItem | McpCallItem | McpApprovalRequestItem | FunctionCallItem | FileSearchItem
)


class CachedTokens(Struct, frozen=True):
    """How much of the input the provider had cached."""

    cached_tokens: int
    cache_write_tokens: int = 0


class ReasoningTokens(Struct, frozen=True):
    """How much of the output was reasoning; providers don't always report it."""

    reasoning_tokens: int = 0


class ResponseUsage(Struct, frozen=True):
    """The tokens of a response."""

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class ResponseError(Struct, frozen=True):
    """Why a response failed."""

    code: str
    message: str


class IncompleteDetails(Struct, frozen=True):
    """Why a response is incomplete."""

    reason: str


class ConversationOf(Struct, frozen=True):
    """The conversation that a response belongs to."""

    id: str


class TextFormat(Struct, frozen=True, tag="text"):
    """Plain text."""


class JsonObject(Struct, frozen=True, tag="json_object"):
    """Any JSON object."""


class JsonFormat(Struct, frozen=True, tag="json_schema"):
    """JSON of a schema."""

    name: str
    schema: Mapping[str, Any]
    description: None = None
    strict: bool = True


class TextOptions(Struct, frozen=True):
    """How the model writes."""

    format: TextFormat | JsonObject | JsonFormat = TextFormat()


class Response(Struct, frozen=True, kw_only=True):
    """A response, with all fields that Open Responses requires.

    What the agent decides, and not the request, has the value that the specification takes for the default.
    """

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: ResponseStatus
    background: bool = False
    model: str
    output: Sequence[OutputItem] = ()
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    metadata: dict[str, str] = {}
    previous_response_id: str | None = None
    conversation: ConversationOf | None = None
    store: bool = True
    tools: Sequence[Any] = ()
    tool_choice: str | Mapping[str, str] = "auto"
    parallel_tool_calls: bool = True
    usage: ResponseUsage | None = None
    text: TextOptions = TextOptions()
    truncation: Literal["disabled"] = "disabled"
    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top_logprobs: int = 0
    reasoning: None = None
    max_output_tokens: None = None
    max_tool_calls: None = None
    service_tier: Literal["default"] = "default"
    user: None = None
    safety_identifier: None = None
    prompt_cache_key: None = None


class ResponseEvent(Struct, frozen=True):
    """`response.created`, `.queued`, `.in_progress`, `.completed`, `.incomplete`, `.failed`."""

    type: str
    sequence_number: int
    response: Response


class ItemEvent(Struct, frozen=True):
    """`response.output_item.added` and `.done`."""

    type: str
    sequence_number: int
    output_index: int
    item: OutputItem


class _OfItem(Struct, frozen=True):
    sequence_number: int
    item_id: str
    output_index: int


class _TypedOfItem(Struct, frozen=True):
    type: str
    sequence_number: int
    item_id: str
    output_index: int


class ContentPartEvent(_TypedOfItem, frozen=True):
    """`response.content_part.added` and `.done`."""

    content_index: int
    part: MessagePart


class TextDelta(_OfItem, frozen=True, tag="response.output_text.delta"):
    """A piece of a text."""

    delta: str
    content_index: int = 0
    logprobs: Sequence[Any] = ()


class TextDone(_OfItem, frozen=True, tag="response.output_text.done"):
    """A whole text."""

    text: str
    content_index: int = 0
    logprobs: Sequence[Any] = ()


class RefusalDelta(_OfItem, frozen=True, tag="response.refusal.delta"):
    """A piece of a refusal."""

    delta: str
    content_index: int = 0


class RefusalDone(_OfItem, frozen=True, tag="response.refusal.done"):
    """A whole refusal."""

    refusal: str
    content_index: int = 0


class AnnotationAdded(_OfItem, frozen=True, tag="response.output_text.annotation.added"):
    """A citation in a text."""

    annotation_index: int
    annotation: Annotation
    content_index: int = 0


class SummaryPartEvent(_TypedOfItem, frozen=True):
    """`response.reasoning_summary_part.added` and `.done`."""

    part: SummaryText
    summary_index: int = 0


class SummaryTextDelta(_OfItem, frozen=True, tag="response.reasoning_summary_text.delta"):
    """A piece of the reasoning."""

    delta: str
    summary_index: int = 0


class SummaryTextDone(_OfItem, frozen=True, tag="response.reasoning_summary_text.done"):
    """A whole part of the reasoning."""

    text: str
    summary_index: int = 0


class ArgumentsDelta(_TypedOfItem, frozen=True):
    """`response.mcp_call_arguments.delta` and `response.function_call_arguments.delta`."""

    delta: str


class ArgumentsDone(_TypedOfItem, frozen=True):
    """`response.mcp_call_arguments.done` and `response.function_call_arguments.done`."""

    arguments: str
    name: str | UnsetType = UNSET


class CallEvent(_TypedOfItem, frozen=True):
    """`response.mcp_call.in_progress`, `.completed` and `.failed`; the same of `file_search_call`."""


StreamEvent = (
    ResponseEvent
    | ItemEvent
    | ContentPartEvent
    | TextDelta
    | TextDone
    | RefusalDelta
    | RefusalDone
    | AnnotationAdded
    | SummaryPartEvent
    | SummaryTextDelta
    | SummaryTextDone
    | ArgumentsDelta
    | ArgumentsDone
    | CallEvent
)


class InputText(Struct, frozen=True, tag="input_text"):
    """A text of the user."""

    text: str


class InputImage(Struct, frozen=True, tag="input_image"):
    """An image of the user."""

    file_id: str
    detail: Literal["auto"] = "auto"


class InputFile(Struct, frozen=True, tag="input_file"):
    """A file of the user."""

    file_id: str
    filename: str


class UserMessageItem(Struct, frozen=True, tag="message"):
    """A message of the user."""

    id: str
    content: Sequence[InputText | InputImage | InputFile]
    role: Literal["user"] = "user"
    status: Literal["completed"] = "completed"


class ApprovalResponseItem(Struct, frozen=True, tag="mcp_approval_response"):
    """What the user decided about a call."""

    id: str
    approval_request_id: str
    approve: bool


class FunctionOutputItem(Struct, frozen=True, tag="function_call_output"):
    """What a function returned that the client ran."""

    id: str
    call_id: str
    output: str
    status: Literal["completed"] = "completed"


InputItem = UserMessageItem | ApprovalResponseItem | FunctionOutputItem


class ItemList(Struct, frozen=True, kw_only=True):
    """A list of items."""

    object: Literal["list"] = "list"
    data: Sequence[InputItem | OutputItem]
    first_id: str | None
    last_id: str | None
    has_more: bool = False

    @staticmethod
    def of(items: Sequence[InputItem | OutputItem], *, has_more: bool = False) -> "ItemList":
        """A page of items."""
        first, last = (items[0].id, items[-1].id) if items else (None, None)
        return ItemList(data=items, first_id=first, last_id=last, has_more=has_more)
