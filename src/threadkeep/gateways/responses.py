"""OpenAI's Responses API, as served by OpenAI and compatible servers.

The provider stores nothing (`store` is false): every request brings the whole history. A model's reasoning
comes encrypted and goes back as it came, so that the model continues its thoughts between tool calls.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from threadkeep.domain.document import PDF
from threadkeep.gateways.encoding import decode, encode
from threadkeep.gateways.files import files_of_openai, image_type, in_base64
from threadkeep.gateways.history import sendable
from threadkeep.gateways.openai import count_in, openai_headers, openai_url
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
    ThinkingBlock,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
    UnshownDelta,
)
from threadkeep.sse import ServerSentEvent

NAME = "responses"
LEAST_MAX_TOKENS = 16
"""The provider refuses a smaller limit."""

_Item = dict[str, Any]


def responses_body(
    request: ModelRequest, signer: str, quirks: ProviderQuirks | None = None
) -> dict[str, Any]:
    """A request in the form of the Responses API."""
    quirks = quirks or ProviderQuirks()
    body: dict[str, Any] = {"model": request.model, "stream": True, "store": False}
    if quirks.takes_encrypted_reasoning:
        body["include"] = ["reasoning.encrypted_content"]
    if quirks.takes_reasoning_summary:
        body["reasoning"] = {"summary": "auto"}
    if request.temperature is not None and quirks.takes_temperature:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_output_tokens"] = max(request.max_tokens, LEAST_MAX_TOKENS)
    if request.cache_key and quirks.takes_cache_key:
        body["prompt_cache_key"] = request.cache_key
    # What stays the same between requests comes first, in the order in which the provider reads it.
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.tools and request.tool_choice is not None:
        named = {"type": "function", "name": request.tool_choice}
        body["tool_choice"] = named if request.tool_choice else "required"
    if request.output is not None and quirks.takes_output:
        body["text"] = {"format": _format(request.output)}
    if request.system:
        body["instructions"] = request.system
    signed_by = signer if quirks.takes_encrypted_reasoning else None
    history = sendable(request.messages, signed_by)
    body["input"] = [item for message in history for item in _items(message, request.contents)]
    return body


def _format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the reply is to be."""
    if is_any_object(schema):
        return {"type": "json_object"}
    return {"type": "json_schema", "name": OUTPUT_NAME, "schema": schema, "strict": is_strict(schema)}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    # Not strict: a strict schema must require every property and allow no other.
    spec = {"type": "function", "name": tool.name, "description": tool.description}
    return spec | {"parameters": input_schema(tool), "strict": False}


def _items(message: ModelMessage, contents: Mapping[str, bytes]) -> Iterator[_Item]:
    if message.role == "assistant":
        yield from _said_by_model(message)
        return
    for block in message.blocks:
        if isinstance(block, ToolResultBlock):
            yield _result(block, _images_of(message, block), contents)
    if said := _said_by_user(message, contents):
        yield {"type": "message", "role": "user", "content": said}


def _said_by_model(message: ModelMessage) -> Iterator[_Item]:
    """The model's reasoning, texts and calls, in their order."""
    reasoning: list[_Item] = []  # the provider rejects reasoning that nothing follows
    for block in message.blocks:
        match block:
            case TextBlock(text):
                yield from reasoning
                reasoning.clear()
                yield {"type": "message", "role": "assistant", "content": text}
            case ToolUseBlock(use_id, name, arguments):
                yield from reasoning
                reasoning.clear()
                call = {"type": "function_call", "call_id": use_id, "name": sendable_name(name)}
                yield call | {"arguments": encode(arguments).decode()}
            case ThinkingBlock():
                reasoning.append(_reasoning(block))
            case _:  # a model has no files and no results
                pass


def _reasoning(block: ThinkingBlock) -> _Item:
    item_id, _, encrypted = block.signature.partition(":")
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}


def _signature(item: "_OutputItem") -> str:
    """What a reasoning item needs to go back; empty if the provider keeps it to itself."""
    return f"{item.id}:{item.encrypted_content}" if item.encrypted_content else ""


def _result(result: ToolResultBlock, images: Sequence[ImageBlock], contents: Mapping[str, bytes]) -> _Item:
    # The API has no other field for a failure.
    text = f"Error: {result.content}" if result.is_error else result.content
    output: str | list[_Item] = text
    if images:
        shown = [_part(image, contents) for image in images]
        output = [{"type": "input_text", "text": text or "[Images]"}, *shown]
    return {"type": "function_call_output", "call_id": result.tool_use_id, "output": output}


def _images_of(message: ModelMessage, result: ToolResultBlock) -> list[ImageBlock]:
    blocks = (block for block in message.blocks if isinstance(block, ImageBlock))
    return [image for image in blocks if image.tool_use_id == result.tool_use_id]


def _said_by_user(message: ModelMessage, contents: Mapping[str, bytes]) -> str | list[_Item]:
    """The user's texts and files: a text, or a list of parts if there are files."""
    results = {block.tool_use_id for block in message.blocks if isinstance(block, ToolResultBlock)}
    said = [block for block in message.blocks if not _is_of_results(block, results)]
    if any(isinstance(block, FILE_BLOCKS) for block in said):
        return [_part(block, contents) for block in said]
    return "\n\n".join([block.text for block in said if isinstance(block, TextBlock)])


def _is_of_results(block: Block, results: set[str]) -> bool:
    return isinstance(block, ToolResultBlock) or (
        isinstance(block, ImageBlock) and block.tool_use_id in results
    )


def _part(block: Block, contents: Mapping[str, bytes]) -> _Item:
    match block:
        case ImageBlock():
            url = f"data:{image_type(block, contents)};base64,{in_base64(block, contents)}"
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case DocumentBlock(file_name=name):
            data = f"data:{PDF};base64,{in_base64(block, contents)}"
            return {"type": "input_file", "filename": name, "file_data": data}
        case _:
            return {"type": "input_text", "text": cast("TextBlock", block).text}


class _Delta(msgspec.Struct):
    delta: str | None = None


class _ArgumentsDelta(msgspec.Struct):
    output_index: int = 0
    delta: str | None = None


class _Content(msgspec.Struct):
    text: str | None = None
    refusal: str | None = None


class _OutputItem(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    encrypted_content: str | None = None
    content: list[_Content] | None = None


class _ItemEvent(msgspec.Struct):
    item: _OutputItem
    output_index: int = 0


class _SummaryPart(msgspec.Struct):
    summary_index: int = 0


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: Any = None  # an extra that must not break the reply, whatever its shape


class _IncompleteDetails(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    usage: _Usage | None = None
    error: Any = None
    incomplete_details: _IncompleteDetails | None = None


class _ResponseEvent(msgspec.Struct):
    response: _Response


class _Error(msgspec.Struct):
    error: Any = None
    code: Any = None
    message: Any = None


class _Named(msgspec.Struct):
    type: str = ""


_delta = msgspec.json.Decoder(_Delta)
_arguments_delta = msgspec.json.Decoder(_ArgumentsDelta)
_item_event = msgspec.json.Decoder(_ItemEvent)
_summary_part = msgspec.json.Decoder(_SummaryPart)
_response_event = msgspec.json.Decoder(_ResponseEvent)
_error = msgspec.json.Decoder(_Error)
_named = msgspec.json.Decoder(_Named)


class _ReplyReader:
    """One reply, event by event."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._arguments: dict[int, list[str]] = {}
        """What has arrived of each call's arguments."""
        self._has_text = False
        """Whether some text of the current message has arrived."""
        self._has_calls = False
        self._has_refused = False
        self.is_complete = False

    def read(self, event: ServerSentEvent) -> Sequence[ModelEvent]:
        """The meaning of a stream event; unknown kinds mean nothing."""
        data = event.data
        match event.event or _name(data):
            case b"response.output_text.delta":
                return self._read_text(decode(_delta, data).delta)
            case b"response.reasoning_summary_text.delta" | b"response.reasoning_text.delta":
                thought = decode(_delta, data).delta
                return (ThoughtDelta(thought),) if thought else ()
            case b"response.reasoning_summary_part.added":
                is_first = decode(_summary_part, data).summary_index == 0
                return () if is_first else (ThoughtDelta("\n\n"),)
            case b"response.refusal.delta":
                self._has_refused = True
                return self._read_text(decode(_delta, data).delta)
            case b"response.function_call_arguments.delta":
                arguments = decode(_arguments_delta, data)
                self._arguments.setdefault(arguments.output_index, []).append(arguments.delta or "")
                return (UnshownDelta.of(arguments.delta),) if arguments.delta else ()
            case b"response.output_item.done":
                return self._read_item(decode(_item_event, data))
            case b"response.completed" | b"response.incomplete":
                return self._finish(decode(_response_event, data).response)
            case b"response.failed":
                raise stream_error(decode(_response_event, data).response.error, secret=self._secret)
            case b"error":
                error = decode(_error, data)
                fields = {"code": error.code, "message": error.message}
                raise stream_error(error.error or fields, secret=self._secret)
            case _:
                pass
        return ()

    def end(self) -> Sequence[ModelEvent]:
        """The stream may only end after the event that completes the response."""
        raise broke_off()

    def _read_text(self, text: str | None) -> Sequence[ModelEvent]:
        if not text:
            return ()
        self._has_text = True
        return (TextDelta(text),)

    def _read_item(self, event: _ItemEvent) -> Sequence[ModelEvent]:
        """An item that is complete; a message has arrived before, in pieces, unless the server sends none."""
        item = event.item
        match item.type:
            case "function_call":
                self._has_calls = True
                arguments = item.arguments or "".join(self._arguments.pop(event.output_index, ()))
                return (read_tool_use(item.call_id or "", item.name or "", arguments),)
            case "reasoning":
                hidden = item.encrypted_content
                signed = ThoughtSigned(_signature(item))
                return (UnshownDelta.of_base64(hidden), signed) if hidden else (signed,)
            case "message":
                has_text, self._has_text = self._has_text, False
                said = "".join(it.text or it.refusal or "" for it in item.content or ())
                return (TextDelta(said),) if said and not has_text else ()
            case _:
                return ()

    def _finish(self, response: _Response) -> Sequence[ModelEvent]:
        events: list[ModelEvent] = []
        spent = _spent(response.usage or _Usage())
        if spent.input_tokens or spent.output_tokens:
            events.append(spent)
        events.append(ModelStopped(self._stop_reason(response.incomplete_details)))
        self.is_complete = True
        return events

    def _stop_reason(
        self, details: _IncompleteDetails | None
    ) -> Literal["end_turn", "tool_use", "max_tokens", "refusal", "other"]:
        match details and details.reason:
            case None:
                return "tool_use" if self._has_calls else "refusal" if self._has_refused else "end_turn"
            case "max_output_tokens":
                return "max_tokens"
            case "content_filter":
                return "refusal"
            case _:
                return "other"


def _name(data: bytes) -> bytes:
    """An event's name, where the server only writes it into the data."""
    if data.startswith(b"[DONE]"):  # as chat completions end
        return b""
    return decode(_named, data).type.encode()


def _spent(usage: _Usage) -> ModelUsage:
    return ModelUsage(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=count_in(usage.input_tokens_details, "cached_tokens"),
        cache_write_tokens=count_in(usage.input_tokens_details, "cache_write_tokens"),
    )


RESPONSES = ProviderApi(
    name=NAME,
    default_url="https://api.openai.com/v1",
    default_model="gpt-5.6-luna",
    context_tokens=128_000,
    request_url=lambda address: openai_url(address, "responses"),
    headers=openai_headers,
    takes_files=files_of_openai,
    body=responses_body,
    reply_reader=_ReplyReader,
)
