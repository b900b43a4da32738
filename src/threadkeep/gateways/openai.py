"""OpenAI's chat completions, as served by OpenAI, vLLM, Ollama, llama.cpp, LiteLLM and others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, cast

import httpx2
import msgspec

from threadkeep.domain.document import PDF
from threadkeep.gateways.encoding import decode, encode
from threadkeep.gateways.files import files_of_openai, image_type, in_base64
from threadkeep.gateways.history import sendable
from threadkeep.gateways.outputs import NAME as OUTPUT_NAME
from threadkeep.gateways.outputs import is_any_object, is_strict
from threadkeep.gateways.provider_api import ProviderApi
from threadkeep.gateways.quirks import ProviderQuirks
from threadkeep.gateways.refusals import broke_off, stream_error
from threadkeep.gateways.tool_calls import input_schema, read_tool_use, sendable_name
from threadkeep.ports.gateway import (
    FILE_BLOCKS,
    Block,
    DocumentBlock,
    ImageBlock,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    TextBlock,
    TextDelta,
    ThoughtDelta,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
    ToolUseBlock,
    UnshownDelta,
)
from threadkeep.sse import ServerSentEvent

MOST_CALLS_A_MESSAGE = 128
"""The provider refuses a message with more tool calls."""

_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def openai_body(request: ModelRequest, _signer: str, quirks: ProviderQuirks | None = None) -> dict[str, Any]:
    """A request in the form of chat completions, which carry no reasoning."""
    quirks = quirks or ProviderQuirks()
    body: dict[str, Any] = {"model": request.model, "stream": True}
    if quirks.takes_stream_options:
        body["stream_options"] = {"include_usage": True}
    if request.temperature is not None and quirks.takes_temperature:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_tokens" if quirks.takes_max_tokens else "max_completion_tokens"] = request.max_tokens
    if request.tools and not quirks.reasons_with_tools:
        body["reasoning_effort"] = "none"
    if request.cache_key and quirks.takes_cache_key:
        body["prompt_cache_key"] = request.cache_key
    # What stays the same between requests comes first, in the order in which the provider reads it.
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.tools and request.tool_choice is not None:
        named = {"type": "function", "function": {"name": request.tool_choice}}
        body["tool_choice"] = named if request.tool_choice else "required"
    if request.output is not None and quirks.takes_output:
        body["response_format"] = _format(request.output)
    body["messages"] = list(_messages(request))
    return body


def _format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the reply is to be."""
    if is_any_object(schema):
        return {"type": "json_object"}
    described = {"name": OUTPUT_NAME, "schema": schema, "strict": is_strict(schema)}
    return {"type": "json_schema", "json_schema": described}


def _messages(request: ModelRequest) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}
    history = sendable(request.messages, None)
    for message, after in zip_longest(history, history[1:]):
        if message.role == "assistant":
            yield from _assistant(message, _results(after))
        elif said := _said(message, request.contents):
            yield {"role": "user", "content": said}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": input_schema(tool)}
    return {"type": "function", "function": function}


def _said(message: ModelMessage, contents: Mapping[str, bytes]) -> str | list[dict[str, Any]]:
    """The user's message: a text, or a list of parts if it has files."""
    if not any(isinstance(block, FILE_BLOCKS) for block in message.blocks):
        return _text(message)
    return [part for block in message.blocks for part in _parts(block, contents)]


def _parts(block: Block, contents: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    match block:
        case TextBlock(text):
            yield {"type": "text", "text": text}
        case ImageBlock():
            if block.tool_use_id:  # a tool's message accepts only text, so its images follow the results
                yield {
                    "type": "text",
                    "text": f"[{block.file_name}, which call {block.tool_use_id} returned]",
                }
            url = f"data:{image_type(block, contents)};base64,{in_base64(block, contents)}"
            yield {"type": "image_url", "image_url": {"url": url}}
        case DocumentBlock(file_name=name):
            data = f"data:{PDF};base64,{in_base64(block, contents)}"
            yield {"type": "file", "file": {"filename": name, "file_data": data}}
        case _:  # a result has its own message
            pass


def _text(message: ModelMessage) -> str:
    return "\n\n".join([block.text for block in message.blocks if isinstance(block, TextBlock)])


def _assistant(message: ModelMessage, results: Mapping[str, ToolResultBlock]) -> list[dict[str, Any]]:
    """The model's text, and its calls in as many messages as needed, each followed by its results."""
    uses = [block for block in message.blocks if isinstance(block, ToolUseBlock)]
    content = _text(message) or None
    if not uses:
        return [{"role": "assistant", "content": content}]
    entries: list[dict[str, Any]] = []
    for start in range(0, len(uses), MOST_CALLS_A_MESSAGE):
        group = uses[start : start + MOST_CALLS_A_MESSAGE]
        calls = [_call(use) for use in group]
        entries.append({"role": "assistant", "content": content, "tool_calls": calls})
        entries += [_tool_message(results[use.id]) for use in group if use.id in results]
        content = None
    return entries


def _call(use: ToolUseBlock) -> dict[str, Any]:
    function = {"name": sendable_name(use.name), "arguments": encode(use.arguments).decode()}
    return {"id": use.id, "type": "function", "function": function}


def _results(message: ModelMessage | None) -> dict[str, ToolResultBlock]:
    """A message's results, by the ids of their calls."""
    blocks = message.blocks if message else ()
    return {block.tool_use_id: block for block in blocks if isinstance(block, ToolResultBlock)}


def _tool_message(result: ToolResultBlock) -> dict[str, Any]:
    # The API has no other field for a failure.
    content = f"Error: {result.content}" if result.is_error else result.content
    return {"role": "tool", "tool_call_id": result.tool_use_id, "content": content}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Any = None  # an extra that must not break the reply, whatever its shape


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: str | None = None
    message: Any = None


_chunk = msgspec.json.Decoder(_Chunk)


@dataclass(slots=True)
class _Call:
    """A tool call, as far as it has arrived."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def is_followed_by(self, delta: _CallDelta) -> bool:
        """Whether a piece with the same index begins another call."""
        if delta.id and self.id:
            return delta.id != self.id
        names_another = delta.function is not None and delta.function.name
        return delta.index is None and bool(self.name and names_another)

    def add(self, delta: _CallDelta) -> UnshownDelta | None:
        """Adds a piece; returns how much of the arguments it has."""
        self.id = self.id or delta.id or ""
        function = delta.function or _Function()
        # Some servers repeat the name in every piece.
        if function.name and function.name != self.name:
            self.name += function.name
        if not function.arguments:
            return None
        piece = function.arguments
        if isinstance(piece, dict):
            piece = encode(piece).decode()
        self.arguments.append(piece)
        return UnshownDelta.of(piece)


class _ReplyReader:
    """One reply, chunk by chunk."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._calls: list[_Call] = []
        """Calls not emitted yet, since more pieces may arrive."""
        self._has_calls = False
        self._has_refused = False
        self._by_index: dict[int | None, _Call] = {}
        self._usage: _Usage | None = None
        self._finish_reason: str | None = None
        self.is_complete = False

    def read(self, event: ServerSentEvent) -> Sequence[ModelEvent]:
        """The meaning of a chunk of the stream."""
        data = event.data
        if data.startswith(b"[DONE]"):
            return self._finish()
        if not data:
            return ()
        chunk = decode(_chunk, data)
        if chunk.error or chunk.object == "error":
            raise stream_error(chunk.error or {"message": chunk.message}, secret=self._secret)
        self._usage = chunk.usage or self._usage
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        return self._read_delta(choice.delta) if choice.delta else ()

    def end(self) -> Sequence[ModelEvent]:
        """Some servers just close the connection after sending the finish reason."""
        if self._finish_reason is None:
            raise broke_off()
        return self._finish()

    def _read_delta(self, delta: _Delta) -> Sequence[ModelEvent]:
        added = [self._call(call).add(call) for call in delta.tool_calls or ()]
        said: list[ModelEvent] = []
        if thought := delta.reasoning_content or delta.reasoning:
            said.append(ThoughtDelta(thought))
        self._has_refused = self._has_refused or bool(delta.refusal)
        if text := delta.content or delta.refusal:
            said.append(TextDelta(text))
        # Text after a call must be emitted after it; incomplete calls wait.
        if said and self._calls:
            said = [*self._take_calls(only_whole=True), *said]
        return [*filter(None, added), *said] if added else said

    def _call(self, delta: _CallDelta) -> _Call:
        """The call that a piece belongs to; some servers give every call the same index, or none."""
        known = self._by_index.get(delta.index)
        if known is not None and not known.is_followed_by(delta):
            return known
        call = self._by_index[delta.index] = _Call()
        self._calls.append(call)
        self._has_calls = True
        return call

    def _take_calls(self, *, only_whole: bool) -> Sequence[ToolUse]:
        """The calls so far, unless one of them may continue."""
        uses = [read_tool_use(call.id, call.name, "".join(call.arguments)) for call in self._calls]
        if only_whole and not all(use.arguments for use in uses):
            return ()
        self._calls.clear()
        self._by_index.clear()
        return uses

    def _finish(self) -> Sequence[ModelEvent]:
        events: list[ModelEvent] = [*self._take_calls(only_whole=False)]
        spent = _spent(self._usage or _Usage())
        if spent.input_tokens or spent.output_tokens:
            events.append(spent)
        reason = _STOP_REASONS.get(self._finish_reason or "stop", "other")
        if reason == "end_turn":
            reason = "tool_use" if self._has_calls else "refusal" if self._has_refused else reason
        events.append(ModelStopped(reason))
        self.is_complete = True
        return events


def _spent(usage: _Usage) -> ModelUsage:
    return ModelUsage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cache_read_tokens=count_in(usage.prompt_tokens_details, "cached_tokens"),
        cache_write_tokens=count_in(usage.prompt_tokens_details, "cache_write_tokens"),
    )


def count_in(details: object, name: str) -> int:
    """A count among the details of a usage; 0 if it isn't there."""
    count = cast("dict[str, object]", details).get(name) if isinstance(details, dict) else None
    return count if isinstance(count, int) else 0


def openai_url(address: httpx2.URL, path: str) -> str:
    """Where one of OpenAI's APIs is: a bare host gets the usual `/v1`, a path is used as written."""
    base = str(address).rstrip("/")
    return f"{base}/{path}" if address.path.strip("/") else f"{base}/v1/{path}"


def openai_headers(key: str) -> Mapping[str, str]:
    """The headers of OpenAI's APIs."""
    return {"authorization": f"Bearer {key}"} if key else {}


OPENAI = ProviderApi(
    name="openai",
    default_url="https://api.openai.com/v1",
    default_model="gpt-5.4-mini",
    context_tokens=128_000,
    request_url=lambda address: openai_url(address, "chat/completions"),
    headers=openai_headers,
    takes_files=files_of_openai,
    body=openai_body,
    reply_reader=_ReplyReader,
)
