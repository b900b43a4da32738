"""Anthropic's Messages API, as served by Anthropic and compatible servers."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import httpx2
import msgspec

from threadkeep.domain.document import PDF
from threadkeep.gateways.encoding import decode
from threadkeep.gateways.files import files_of_claude, image_type, in_base64
from threadkeep.gateways.history import sendable
from threadkeep.gateways.outputs import is_strict
from threadkeep.gateways.provider_api import ProviderApi
from threadkeep.gateways.quirks import ProviderQuirks
from threadkeep.gateways.refusals import broke_off, stream_error
from threadkeep.gateways.tool_calls import input_schema, read_tool_use, sendable_name
from threadkeep.ports.gateway import (
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
    ThinkingBlock,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
    UnshownDelta,
)
from threadkeep.sse import ServerSentEvent

NAME = "anthropic"
VERSION = "2023-06-01"
MAX_TOKENS = 4096
MOST_TEMPERATURE = 1.0
MOST_TITLE_CHARACTERS = 500

# Reasoning that the provider hides goes back unchanged; this marks it among the signatures.
_REDACTED = "redacted_thinking:"

_STOP_REASONS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


def anthropic_body(
    request: ModelRequest, signer: str, quirks: ProviderQuirks | None = None
) -> dict[str, Any]:
    """A request in the form of the Messages API, with the reasoning that this signer signed."""
    quirks = quirks or ProviderQuirks()
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens or MAX_TOKENS,
        "stream": True,
    }
    if request.temperature is not None and quirks.takes_temperature:
        body["temperature"] = min(request.temperature, MOST_TEMPERATURE)
    # What stays the same between requests comes first, in the order in which the provider reads it.
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.tools and request.tool_choice is not None:
        named = {"type": "tool", "name": request.tool_choice}
        body["tool_choice"] = named if request.tool_choice else {"type": "any"}
    if request.output is not None and quirks.takes_output and is_strict(request.output):
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.output}}
    if request.system:
        body["system"] = [{"type": "text", "text": request.system}]
    history = sendable(request.messages, signer)
    body["messages"] = [_message(message, request.contents) for message in history]
    if request.cache_key and quirks.takes_cache_marks:
        _mark_for_caching(body)
    return body


def _mark_for_caching(body: dict[str, Any]) -> None:
    """Sets up to four marks, up to which the provider caches the prompt for the next request.

    Tools and system prompt stay the same; the next request continues from the latest user message, and the
    previous request was marked at the one before it.
    """
    asked = [message for message in body["messages"] if message["role"] == "user"]
    ends = [body.get("tools"), body.get("system"), *(message["content"] for message in asked[-2:])]
    for blocks in ends:
        if blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    spec = {"name": tool.name, "input_schema": input_schema(tool)}
    return spec | {"description": tool.description} if tool.description else spec


def _message(message: ModelMessage, contents: Mapping[str, bytes]) -> dict[str, Any]:
    if not any(isinstance(it, ImageBlock) for it in message.blocks):  # nearly every message
        return {"role": message.role, "content": [_block(block, contents, {}) for block in message.blocks]}
    images = _images_by_call(message)
    blocks = (it for it in message.blocks if not (isinstance(it, ImageBlock) and it.tool_use_id in images))
    return {"role": message.role, "content": [_block(block, contents, images) for block in blocks]}


def _images_by_call(message: ModelMessage) -> dict[str, list[ImageBlock]]:
    """The images that tools returned, which are part of their results.

    The result of a failed call accepts only text: its images follow the results.
    """
    results = [it for it in message.blocks if isinstance(it, ToolResultBlock)]
    calls = [it.tool_use_id for it in results if not it.is_error]
    images: dict[str, list[ImageBlock]] = {call: [] for call in calls}
    for block in message.blocks:
        if isinstance(block, ImageBlock) and block.tool_use_id in images:
            images[block.tool_use_id].append(block)
    return images


def _block(
    block: Block, contents: Mapping[str, bytes], images: Mapping[str, Sequence[ImageBlock]]
) -> dict[str, Any]:
    match block:  # what histories have most of comes first
        case TextBlock(text):
            return {"type": "text", "text": text}
        case ToolUseBlock(use_id, name, arguments):
            return {"type": "tool_use", "id": use_id, "name": sendable_name(name), "input": arguments}
        case ToolResultBlock(use_id, content, is_error):
            result = {"type": "tool_result", "tool_use_id": use_id, "is_error": is_error}
            if returned := images.get(use_id):
                shown = [_block(image, contents, {}) for image in returned]
                return result | {"content": [{"type": "text", "text": content or "[Images]"}, *shown]}
            return result | {"content": content} if content else result
        case ThinkingBlock(text, signature) if signature.startswith(_REDACTED):
            return {"type": "redacted_thinking", "data": signature.removeprefix(_REDACTED)}
        case ThinkingBlock(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ImageBlock():
            return _with_content("image", image_type(block, contents), in_base64(block, contents))
        case DocumentBlock():
            document = _with_content("document", PDF, in_base64(block, contents))
            return document | {"title": block.file_name[:MOST_TITLE_CHARACTERS]}
        case _:
            assert_never(block)


def _with_content(type_: str, media_type: str, data: str) -> dict[str, Any]:
    return {"type": type_, "source": {"type": "base64", "media_type": media_type, "data": data}}


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Message(msgspec.Struct):
    usage: _Usage | None = None


class _MessageStart(msgspec.Struct):
    message: _Message


class _Content(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class _BlockStart(msgspec.Struct):
    index: int
    content_block: _Content


class _Delta(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class _BlockDelta(msgspec.Struct):
    index: int
    delta: _Delta


class _BlockStop(msgspec.Struct):
    index: int


class _MessageChange(msgspec.Struct):
    stop_reason: str | None = None


class _MessageDelta(msgspec.Struct):
    delta: _MessageChange
    usage: _Usage | None = None


class _Error(msgspec.Struct):
    error: Any = None


_message_start = msgspec.json.Decoder(_MessageStart)
_block_start = msgspec.json.Decoder(_BlockStart)
_block_delta = msgspec.json.Decoder(_BlockDelta)
_block_stop = msgspec.json.Decoder(_BlockStop)
_message_delta = msgspec.json.Decoder(_MessageDelta)
_error = msgspec.json.Decoder(_Error)


class _OpenBlock:
    """A block of the reply that has not ended yet."""

    def __init__(self, content: _Content) -> None:
        self.content = content
        self.signature = content.signature or ""
        self.json: list[str] = []


class _ReplyReader:
    """One reply, event by event."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._blocks: dict[int, _OpenBlock] = {}
        self._usage = _Usage()
        self._shows_thoughts = False
        """If not, a thought is only in its signature."""
        self._stop_reason: str | None = None
        self.is_complete = False

    def read(self, event: ServerSentEvent) -> Sequence[ModelEvent]:
        """The meaning of a stream event; unknown kinds mean nothing."""
        data = event.data
        match event.event:
            case b"content_block_delta":
                return self._read_delta(decode(_block_delta, data))
            case b"content_block_start":
                return self._open_block(decode(_block_start, data))
            case b"content_block_stop":
                return self._close_block(decode(_block_stop, data).index)
            case b"message_start":
                self._count(decode(_message_start, data).message.usage)
            case b"message_delta":
                change = decode(_message_delta, data)
                self._stop_reason = change.delta.stop_reason or self._stop_reason
                self._count(change.usage)
            case b"message_stop":
                return self._finish()
            case b"error":
                raise stream_error(decode(_error, data).error, secret=self._secret)
            case _:
                pass
        return ()

    def end(self) -> Sequence[ModelEvent]:
        """The stream may only end after `message_stop`."""
        raise broke_off()

    def _read_delta(self, change: _BlockDelta) -> Sequence[ModelEvent]:
        delta = change.delta
        if delta.text:
            return (TextDelta(delta.text),)
        if delta.thinking:
            self._shows_thoughts = True
            return (ThoughtDelta(delta.thinking),)
        block = self._blocks.get(change.index)
        if block is not None and delta.partial_json:
            block.json.append(delta.partial_json)
            return (UnshownDelta.of(delta.partial_json),)
        if block is not None and delta.signature:
            block.signature = delta.signature
            return () if self._shows_thoughts else (UnshownDelta.of_base64(delta.signature),)
        return ()

    def _open_block(self, start: _BlockStart) -> Sequence[ModelEvent]:
        content = start.content_block
        self._blocks[start.index] = _OpenBlock(content)
        if content.type == "text" and content.text:
            return (TextDelta(content.text),)
        if content.type == "thinking" and content.thinking:
            self._shows_thoughts = True
            return (ThoughtDelta(content.thinking),)
        if content.type == "redacted_thinking" and content.data:
            return (UnshownDelta.of_base64(content.data),)
        return ()

    def _close_block(self, index: int) -> Sequence[ModelEvent]:
        block = self._blocks.pop(index, None)
        if block is None:
            return ()
        content = block.content
        match content.type:
            case "tool_use":
                arguments = "".join(block.json) or content.input or {}
                return (read_tool_use(content.id or "", content.name or "", arguments),)
            case "thinking":
                return (ThoughtSigned(block.signature),)
            case "redacted_thinking" if content.data:
                return (ThoughtSigned(_REDACTED + content.data),)
            case _:
                return ()

    def _count(self, usage: _Usage | None) -> None:
        """Adopts the counts given: later ones include the earlier."""
        for name in _Usage.__struct_fields__:
            count = getattr(usage, name, None)
            if count is not None:
                setattr(self._usage, name, count)

    def _finish(self) -> Sequence[ModelEvent]:
        events = [event for index in list(self._blocks) for event in self._close_block(index)]
        spent = _spent(self._usage)
        if spent.input_tokens or spent.output_tokens:
            events.append(spent)
        events.append(ModelStopped(_STOP_REASONS.get(self._stop_reason or "", "other")))
        self.is_complete = True
        return events


def _spent(usage: _Usage) -> ModelUsage:
    """Adds cached input, read and written, which the provider counts separately."""
    read = max(usage.cache_read_input_tokens or 0, 0)
    written = max(usage.cache_creation_input_tokens or 0, 0)
    return ModelUsage(
        input_tokens=(usage.input_tokens or 0) + read + written,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _request_url(address: httpx2.URL) -> str:
    return f"{str(address).removesuffix('/v1')}/v1/messages"


def _headers(key: str) -> Mapping[str, str]:
    return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})


ANTHROPIC = ProviderApi(
    name=NAME,
    default_url="https://api.anthropic.com",
    default_model="claude-sonnet-4-5",
    context_tokens=200_000,
    request_url=_request_url,
    headers=_headers,
    takes_files=files_of_claude,
    body=anthropic_body,
    reply_reader=_ReplyReader,
)
