"""A scripted reply as the bytes that the providers send."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

import msgspec

from threadkeep.testing.script import (
    BrokenJson,
    Fail,
    NoEnd,
    NoUsage,
    Ping,
    Raw,
    Reply,
    Say,
    Step,
    Stop,
    StopReason,
    Think,
    ThinkUnseen,
    UnknownEvent,
    Usage,
    UseTool,
)

WireName = Literal["anthropic", "openai", "responses"]

_BROKEN = b'{"type": "content_block_delta", "index": 0, "delta": {"ty'


class Wire(Protocol):
    """One provider's format of a reply."""

    def begin(self) -> bytes:
        """The bytes before everything else."""
        ...

    def write(self, step: Step) -> bytes:
        """The bytes of one step; empty for steps that send nothing themselves."""
        ...

    def end(self) -> bytes:
        """The bytes after everything else."""
        ...


def open_wire(name: WireName, request: Mapping[str, Any], number: int, reply: Reply) -> Wire:
    """The provider's format for this reply to this request."""
    model = str(request.get("model", ""))
    if name == "anthropic":
        return AnthropicWire(model, number, reply)
    if name == "responses":
        return ResponsesWire(model, number, reply)
    options: Mapping[str, Any] = request.get("stream_options") or {}
    return OpenAIWire(model, number, reply, with_usage=bool(options.get("include_usage")))


def error_body(name: WireName, status: int, message: str) -> bytes:
    """An error in the provider's format."""
    if name == "anthropic":
        kinds = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
        kinds |= {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error"}
        kind = kinds.get(status, "overloaded_error" if status == 529 else "api_error")
        error: dict[str, Any] = {"type": kind, "message": message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": "req_scripted"})
    kind = (
        "invalid_request_error" if status < 429 else "rate_limit_error" if status == 429 else "server_error"
    )
    error = {"message": message, "type": kind, "param": None, "code": None}
    return msgspec.json.encode({"error": error})


def _usage(reply: Reply) -> Usage | None:
    """The reply's usage: as scripted, or one token per piece."""
    for step in reply:
        match step:
            case Usage():
                return step
            case NoUsage():
                return None
            case _:
                pass
    return Usage(12, sum(isinstance(step, Say | Think | UseTool) for step in reply))


def _stop_reason(reply: Reply) -> StopReason:
    for step in reply:
        if isinstance(step, Stop):
            return step.reason
    return "tool_use" if any(isinstance(step, UseTool) for step in reply) else "end_turn"


def _pieces(use: UseTool) -> Iterator[str]:
    """The arguments of a call, as a model writes them: in two pieces."""
    text = use.arguments if isinstance(use.arguments, str) else msgspec.json.encode(use.arguments).decode()
    half = len(text) // 2
    yield from (piece for piece in (text[:half], text[half:]) if piece)


class AnthropicWire:
    """The Messages API's stream."""

    def __init__(self, model: str, number: int, reply: Reply) -> None:
        self._model = model
        self._number = number
        self._usage = _usage(reply)
        self._stop_reason = _stop_reason(reply)
        self._has_end = not any(isinstance(step, NoEnd) for step in reply)
        self._index = -1
        self._open: str | None = None  # the kind of the open block
        self._tools = 0

    def begin(self) -> bytes:
        usage: dict[str, Any] = {}
        if self._usage:
            usage = {
                "input_tokens": self._usage.input_tokens,
                "output_tokens": 1,
                "cache_creation_input_tokens": self._usage.cache_write,
                "cache_read_input_tokens": self._usage.cache_read,
            }
        message: dict[str, Any] = {
            "id": f"msg_{self._number:04}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        return self._event("message_start", message=message)

    def write(self, step: Step) -> bytes:
        match step:
            case Say(text):
                return self._enter("text", text="", citations=None) + self._delta("text_delta", text=text)
            case Think(text, signature):
                written = self._enter("thinking", thinking="", signature="")
                if text:
                    written += self._delta("thinking_delta", thinking=text)
                if signature:
                    written += self._delta("signature_delta", signature=signature) + self._leave()
                return written
            case ThinkUnseen(data):
                return self._leave() + self._enter("redacted_thinking", data=data) + self._leave()
            case UseTool():
                return self._leave() + self._tool(step) + self._leave()
            case Ping():
                return self._event("ping")
            case UnknownEvent():
                return self._event("weather_report", index="tomorrow", delta=["rain"])
            case BrokenJson():
                return b"event: content_block_delta\ndata: " + _BROKEN + b"\n\n"
            case Fail(message, kind):
                return self._event("error", error={"type": kind, "message": message})
            case Raw(data):
                return data
            case _:
                return b""

    def end(self) -> bytes:
        usage: dict[str, Any] = {} if self._usage is None else {"output_tokens": self._usage.output_tokens}
        delta = {"stop_reason": self._stop_reason, "stop_sequence": None}
        written = self._leave() + self._event("message_delta", delta=delta, usage=usage)
        return written + self._event("message_stop") if self._has_end else written

    def _tool(self, use: UseTool) -> bytes:
        self._tools += 1
        use_id = f"toolu_{self._number:04}_{self._tools}" if use.id is None else use.id
        written = self._enter("tool_use", id=use_id, name=use.name, input={})
        written += self._delta("input_json_delta", partial_json="")
        return written + b"".join(
            self._delta("input_json_delta", partial_json=piece) for piece in _pieces(use)
        )

    def _enter(self, kind: str, **fields: Any) -> bytes:
        if self._open == kind:
            return b""
        left = self._leave()
        self._open = kind
        self._index += 1
        block = {"type": kind, **fields}
        return left + self._event("content_block_start", index=self._index, content_block=block)

    def _leave(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return self._event("content_block_stop", index=self._index)

    def _delta(self, kind: str, **fields: Any) -> bytes:
        return self._event("content_block_delta", index=self._index, delta={"type": kind, **fields})

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = msgspec.json.encode({"type": kind, **fields})
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)


class OpenAIWire:
    """The stream of chat completions."""

    _REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}  # noqa: RUF012

    def __init__(self, model: str, number: int, reply: Reply, *, with_usage: bool) -> None:
        self._model = model
        self._number = number
        self._usage = _usage(reply) if with_usage else None
        self._stop_reason = _stop_reason(reply)
        self._has_end = not any(isinstance(step, NoEnd) for step in reply)
        self._tools = 0

    def begin(self) -> bytes:
        return self._delta(role="assistant", content="")

    def write(self, step: Step) -> bytes:
        match step:
            case Say(text):
                return self._delta(content=text)
            case Think(text):
                return self._delta(content=None, reasoning_content=text)
            case UseTool():
                return self._tool(step)
            case Ping():
                return b": ping\n\n"
            case UnknownEvent():
                return self._chunk(object="weather.report", choices=[])
            case BrokenJson():
                return b"data: " + _BROKEN + b"\n\n"
            case Fail(message, kind):
                return self._data({"error": {"message": message, "type": kind, "code": None}})
            case Raw(data):
                return data
            case _:
                return b""

    def end(self) -> bytes:
        reason = self._REASONS.get(self._stop_reason, "content_filter")
        written = self._chunk(choices=[{"index": 0, "delta": {}, "finish_reason": reason}])
        if self._usage:
            sent = self._usage.input_tokens + self._usage.cache_read + self._usage.cache_write
            received = self._usage.output_tokens
            usage = {
                "prompt_tokens": sent,
                "completion_tokens": received,
                "total_tokens": sent + received,
                "prompt_tokens_details": {"cached_tokens": self._usage.cache_read},
            }
            written += self._chunk(choices=[], usage=usage)
        return written + b"data: [DONE]\n\n" if self._has_end else written

    def _tool(self, use: UseTool) -> bytes:
        index = self._tools
        self._tools += 1
        use_id = f"call_{self._number:04}_{self._tools}" if use.id is None else use.id
        head = {"index": index, "id": use_id, "type": "function"}
        written = self._delta(tool_calls=[{**head, "function": {"name": use.name, "arguments": ""}}])
        return written + b"".join(
            self._delta(tool_calls=[{"index": index, "function": {"arguments": piece}}])
            for piece in _pieces(use)
        )

    def _delta(self, **fields: Any) -> bytes:
        return self._chunk(choices=[{"index": 0, "delta": fields, "finish_reason": None}])

    def _chunk(self, **fields: Any) -> bytes:
        head = {"id": f"chatcmpl-{self._number:04}", "object": "chat.completion.chunk"}
        return self._data({**head, "created": 1_800_000_000, "model": self._model, **fields})

    def _data(self, value: Mapping[str, Any]) -> bytes:
        return b"data: %s\n\n" % msgspec.json.encode(value)


class ResponsesWire:
    """The stream of the Responses API."""

    _INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}  # noqa: RUF012

    def __init__(self, model: str, number: int, reply: Reply) -> None:
        self._model = model
        self._number = number
        self._usage = _usage(reply)
        self._stop_reason = _stop_reason(reply)
        self._has_end = not any(isinstance(step, NoEnd) for step in reply)
        self._events = 0
        self._output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        """The item that has not ended yet, which is the last of the output."""
        self._tools = 0

    def begin(self) -> bytes:
        return self._lifecycle("created", "in_progress") + self._lifecycle("in_progress", "in_progress")

    def write(self, step: Step) -> bytes:
        match step:
            case Say(text):
                return self._say(text)
            case Think(text, signature):
                return self._think(text) + (self._leave(encrypted=signature) if signature else b"")
            case ThinkUnseen(data):
                return (
                    self._leave() + self._enter("reasoning", "rs", summary=[]) + self._leave(encrypted=data)
                )
            case UseTool():
                return self._leave() + self._tool(step)
            case Ping():
                return b": ping\n\n"
            case UnknownEvent():
                return self._event("response.weather_report", delta=["rain"])
            case BrokenJson():
                return b"event: response.output_text.delta\ndata: " + _BROKEN + b"\n\n"
            case Fail(message, kind):
                return self._event("error", code=kind, message=message, param=None)
            case Raw(data):
                return data
            case _:
                return b""

    def end(self) -> bytes:
        written = self._leave()
        if not self._has_end:
            return written
        if reason := self._INCOMPLETE.get(self._stop_reason):
            return written + self._lifecycle(
                "incomplete", "incomplete", incomplete_details={"reason": reason}
            )
        return written + self._lifecycle("completed", "completed")

    def _say(self, text: str) -> bytes:
        written = b""
        if self._open is None or self._open["type"] != "message":
            written = self._leave() + self._enter("message", "msg", role="assistant", content=[])
            written += self._part("content_part.added", content_index=0, part=_output_text(""))
            self._item["content"].append(_output_text(""))
        self._item["content"][0]["text"] += text
        return written + self._part("output_text.delta", content_index=0, delta=text, logprobs=[])

    def _think(self, text: str) -> bytes:
        written = b""
        if self._open is None or self._open["type"] != "reasoning":
            written = self._leave() + self._enter("reasoning", "rs", summary=[])
        if not text:
            return written
        if not self._item["summary"]:
            written += self._part("reasoning_summary_part.added", summary_index=0, part=_summary_text(""))
            self._item["summary"].append(_summary_text(""))
        self._item["summary"][0]["text"] += text
        return written + self._part("reasoning_summary_text.delta", summary_index=0, delta=text)

    def _tool(self, use: UseTool) -> bytes:
        self._tools += 1
        call_id = f"call_{self._number:04}_{self._tools}" if use.id is None else use.id
        written = self._enter("function_call", "fc", call_id=call_id, name=use.name, arguments="")
        for piece in _pieces(use):
            self._item["arguments"] += piece
            written += self._part("function_call_arguments.delta", delta=piece)
        return written + self._leave()

    @property
    def _item(self) -> dict[str, Any]:
        assert self._open is not None
        return self._open

    def _enter(self, kind: str, prefix: str, **fields: Any) -> bytes:
        item_id = f"{prefix}_{self._number:04}_{len(self._output)}"
        status = {} if kind == "reasoning" else {"status": "in_progress"}
        self._open = {"id": item_id, "type": kind, **status, **fields}
        self._output.append(self._open)
        at = len(self._output) - 1
        return self._event("response.output_item.added", output_index=at, item=self._open)

    def _leave(self, *, encrypted: str = "") -> bytes:
        """The end of the open item: each of its parts, then the whole."""
        if self._open is None:
            return b""
        item, written = self._open, b""
        match item["type"]:
            case "message":
                text = item["content"][0]["text"]
                written += self._part("output_text.done", content_index=0, text=text, logprobs=[])
                written += self._part("content_part.done", content_index=0, part=item["content"][0])
            case "reasoning":
                for part in item["summary"]:
                    written += self._part("reasoning_summary_text.done", summary_index=0, text=part["text"])
                    written += self._part("reasoning_summary_part.done", summary_index=0, part=part)
                item["encrypted_content"] = encrypted or None
            case _:
                done = {"name": item["name"], "arguments": item["arguments"]}
                written += self._part("function_call_arguments.done", **done)
        if "status" in item:
            item["status"] = "completed"
        at = len(self._output) - 1
        written += self._event("response.output_item.done", output_index=at, item=item)
        self._open = None
        return written

    def _part(self, kind: str, **fields: Any) -> bytes:
        place = {"item_id": self._item["id"], "output_index": len(self._output) - 1}
        return self._event(f"response.{kind}", **place, **fields)

    def _lifecycle(self, kind: str, status: str, **fields: Any) -> bytes:
        response: dict[str, Any] = {
            "id": f"resp_{self._number:04}",
            "object": "response",
            "created_at": 1_800_000_000,
            "model": self._model,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "output": self._output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": None if status == "in_progress" else self._spent(),
            **fields,
        }
        return self._event(f"response.{kind}", response=response)

    def _spent(self) -> dict[str, Any] | None:
        if self._usage is None:
            return None
        sent = self._usage.input_tokens + self._usage.cache_read + self._usage.cache_write
        cached = {"cached_tokens": self._usage.cache_read, "cache_write_tokens": self._usage.cache_write}
        return {
            "input_tokens": sent,
            "input_tokens_details": cached,
            "output_tokens": self._usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + self._usage.output_tokens,
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = msgspec.json.encode({"type": kind, "sequence_number": self._events, **fields})
        self._events += 1
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary_text(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}
