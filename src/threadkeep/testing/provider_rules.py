"""What the APIs of Anthropic and OpenAI require of a request, by a strict reading of their references.

If a provider is lenient but others with the same API aren't (alternating roles, a system message anywhere),
the strict reading counts: such a request is valid everywhere.
"""

import itertools
import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_IMAGES = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_DOCUMENTS = {"application/pdf": b"%PDF-"}
_ANTHROPIC_BLOCKS = {
    "image": {"source", "cache_control"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "text": {"text", "citations", "cache_control"},
    "tool_use": {"id", "name", "input", "cache_control"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_MOST_CACHE_MARKS = 4

_ANTHROPIC_FIELDS = {
    "model", "max_tokens", "messages", "system", "stream", "temperature", "tools", "tool_choice", "metadata",
    "stop_sequences", "top_k", "top_p", "thinking", "service_tier", "output_config",
}  # fmt: skip
_OPENAI_FIELDS = {
    "model", "messages", "stream", "stream_options", "temperature", "tools", "tool_choice", "max_tokens",
    "max_completion_tokens", "top_p", "stop", "n", "user", "seed", "parallel_tool_calls", "response_format",
    "presence_penalty", "frequency_penalty", "reasoning_effort", "metadata", "prompt_cache_key",
}  # fmt: skip
_OPENAI_MESSAGES = {
    "system": {"content", "name"},
    "user": {"content", "name"},
    "assistant": {"content", "name", "tool_calls"},
    "tool": {"content", "tool_call_id"},
}
_MOST_OPENAI_TOOLS = 128
_MOST_OPENAI_CALLS = 128
_MOST_OPENAI_ID_CHARACTERS = 40
_RESPONSES_FIELDS = {
    "model", "input", "instructions", "stream", "stream_options", "store", "include", "reasoning", "text",
    "temperature", "top_p", "max_output_tokens", "max_tool_calls", "tools", "tool_choice",
    "parallel_tool_calls", "previous_response_id", "prompt_cache_key", "metadata", "user", "service_tier",
    "truncation",
}  # fmt: skip
_RESPONSES_ITEMS = {
    "message": {"role", "content", "id", "status", "phase"},
    "function_call": {"call_id", "name", "arguments", "id", "status"},
    "function_call_output": {"call_id", "output", "id", "status"},
    "reasoning": {"id", "summary", "content", "encrypted_content", "status"},
}
_RESPONSES_PARTS = {
    "input_text": {"text"},
    "input_image": {"image_url", "file_id", "detail"},
    "input_file": {"filename", "file_data", "file_id", "file_url", "detail"},
}
_RESPONSES_SAID = {
    "output_text": {"text", "annotations", "logprobs"},
    "refusal": {"refusal"},
}
_MOST_RESPONSES_ID_CHARACTERS = 64
_LEAST_OUTPUT_TOKENS = 16
_MOST_CACHE_KEY_CHARACTERS = 64

Fields = Mapping[str, Any]


def check_anthropic(body: object) -> None:
    """Raises AssertionError with a sentence if the Messages API would reject the request."""
    problems = check_anthropic_request(body)
    assert not problems, f"Anthropic would refuse the request: {'; '.join(problems)}."


def check_openai(body: object) -> None:
    """Raises AssertionError with a sentence if chat completions would reject the request."""
    problems = check_openai_request(body)
    assert not problems, f"OpenAI would refuse the request: {'; '.join(problems)}."


def check_responses(body: object) -> None:
    """Raises AssertionError with a sentence if the Responses API would reject the request."""
    problems = check_responses_request(body)
    assert not problems, f"OpenAI would refuse the request: {'; '.join(problems)}."


def check_anthropic_request(body: object) -> list[str]:
    """What the Messages API would reject; empty if the request is valid."""
    rules = _AnthropicRules()
    rules.check(body)
    return rules.problems


def check_openai_request(body: object) -> list[str]:
    """What chat completions would reject; empty if the request is valid."""
    rules = _OpenAIRules()
    rules.check(body)
    return rules.problems


def check_responses_request(body: object) -> list[str]:
    """What the Responses API would reject; empty if the request is valid."""
    rules = _ResponsesRules()
    rules.check(body)
    return rules.problems


def _objects(value: object) -> list[Fields]:
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Fields", entry) for entry in entries if isinstance(entry, dict)]


def _blocks(message: Fields, kind: str | None = None) -> list[Fields]:
    """The blocks of a message, or those of one kind."""
    return [block for block in _objects(message.get("content")) if kind in (None, block.get("type"))]


class _Rules:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def require(self, holds: object, problem: str) -> bool:
        if not holds:
            self.problems.append(problem)
        return bool(holds)

    def fields(self, value: object, where: str) -> Fields:
        if self.require(isinstance(value, dict), f"{where}: must be an object"):
            return cast("Fields", value)
        return {}

    def entries(self, value: object, where: str, *, least: int = 1) -> list[Any]:
        if not self.require(isinstance(value, list), f"{where}: must be a list"):
            return []
        found = cast("list[Any]", value)
        self.require(len(found) >= least, f"{where}: must not be empty")
        return found

    def text(self, value: object, where: str) -> None:
        """Checks that a text isn't blank."""
        if self.require(isinstance(value, str), f"{where}: must be a text"):
            self.require(cast("str", value).strip(), f"{where}: text must be non-empty, not only white space")

    def messages(self, body: Fields) -> list[Fields]:
        entries = self.entries(body.get("messages"), "messages")
        return [self.fields(message, f"messages.{at}") for at, message in enumerate(entries)]

    def unknown(self, body: Fields, known: set[str]) -> None:
        for name in body.keys() - known:
            self.problems.append(f"{name}: extra inputs are not permitted")

    def number(self, body: Fields, name: str, least: float, most: float) -> None:
        value = body.get(name)
        if value is not None:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            self.require(is_number and least <= value <= most, f"{name}: must be in {least}..{most}")

    def model(self, body: Fields) -> None:
        self.require(isinstance(body.get("model"), str) and body["model"], "model: field required")
        self.require(isinstance(body.get("stream", False), bool), "stream: must be a boolean")

    def positive(self, value: object, where: str) -> None:
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        self.require(is_count, f"{where}: must be a whole number from 1")

    def file(self, media_type: object, data: object, where: str, kinds: Mapping[str, bytes]) -> None:
        """Checks that a file's type is accepted and matches its content."""
        magic = kinds.get(str(media_type))
        if self.require(magic is not None, f"{where}.media_type: {media_type!r} is not one of {[*kinds]}"):
            with suppress(ValueError):
                if b64decode(str(data), validate=True).startswith(cast("bytes", magic)):
                    return
            self.problems.append(f"{where}: could not process the file")

    def data_url(self, url: object, where: str, kinds: Mapping[str, bytes]) -> None:
        media_type, _, data = str(url).removeprefix("data:").partition(";base64,")
        self.file(media_type, data, where, kinds)

    def id(self, value: object, where: str, *, most: int) -> None:
        fits = isinstance(value, str) and 1 <= len(value) <= most
        self.require(fits, f"{where}: a text of 1 to {most} characters")

    def arguments(self, arguments: object, where: str) -> None:
        try:
            decoded: Any = json.loads(arguments) if isinstance(arguments, str) else None
        except ValueError:
            decoded = None
        self.require(isinstance(decoded, dict), f"{where}: must be a text that holds a JSON object")

    def cache_key(self, body: Fields) -> None:
        if "prompt_cache_key" in body:
            key = body["prompt_cache_key"]
            fits = isinstance(key, str) and len(key) <= _MOST_CACHE_KEY_CHARACTERS
            self.require(fits, f"prompt_cache_key: at most {_MOST_CACHE_KEY_CHARACTERS} characters")

    def functions(self, functions: Sequence[Fields]) -> None:
        """Checks functions as OpenAI wants them."""
        for at, function in enumerate(functions):
            where = f"tools.[{at}]"
            self.require(_NAME.fullmatch(str(function.get("name"))), f"{where}.name: pattern")
            self.require(isinstance(function.get("description", ""), str), f"{where}.description: a text")
            parameters = function.get("parameters")
            self.schema(parameters, f"{where}.parameters")
            has_properties = isinstance(parameters, dict) and "properties" in parameters
            self.require(has_properties, f"{where}.parameters: object schema missing properties")
        self.unique([str(function.get("name")) for function in functions], "tools: names")

    def unique(self, values: Sequence[str], where: str) -> None:
        self.require(len(set(values)) == len(values), f"{where}: must be unique")

    def schema(self, value: object, where: str) -> None:
        schema = self.fields(value, where)
        self.require(schema.get("type") == "object", f"{where}.type: must be 'object'")
        self.require(isinstance(schema.get("properties", {}), dict), f"{where}.properties: must be an object")

    def output(self, value: object, where: str, *, is_strict: bool) -> None:
        """Checks the schema of a reply; a strict one says of every object which properties it has."""
        schema = self.fields(value, where)
        if is_strict and schema.get("type") == "object":
            properties = self.fields(schema.get("properties", {}), f"{where}.properties")
            is_closed = schema.get("additionalProperties") is False
            self.require(is_closed, f"{where}.additionalProperties: must be false")
            has_all = set(schema.get("required", ())) == set(properties)
            self.require(has_all, f"{where}.required: must have every property")
        for name in ("properties", "$defs"):
            for key, part in self.fields(schema.get(name, {}), f"{where}.{name}").items():
                self.output(part, f"{where}.{name}.{key}", is_strict=is_strict)

    def format(self, value: object, where: str) -> None:
        """Checks what OpenAI's APIs hold a reply to."""
        asked = self.fields(value, where)
        kind = asked.get("type")
        self.require(kind in ("text", "json_object", "json_schema"), f"{where}.type: unknown")
        if kind == "json_schema":
            described = self.fields(asked.get("json_schema", asked), where)
            self.require(_NAME.fullmatch(str(described.get("name"))), f"{where}.name: pattern")
            self.output(described.get("schema"), f"{where}.schema", is_strict=bool(described.get("strict")))


class _AnthropicRules(_Rules):
    def check(self, value: object) -> None:
        body = self.fields(value, "body")
        self.unknown(body, _ANTHROPIC_FIELDS)
        if "output_config" in body:
            asked = self.fields(self.fields(body["output_config"], "output_config").get("format"), "format")
            self.require(set(asked) == {"type", "schema"}, "output_config.format: a type and a schema")
            self.output(asked.get("schema"), "output_config.format.schema", is_strict=True)
        self.model(body)
        self.positive(body.get("max_tokens"), "max_tokens")
        self.number(body, "temperature", 0, 1)
        if "system" in body:
            self._system(body["system"])
        messages = self.messages(body)
        self._messages(messages)
        if "tools" in body:
            self._tools(self.entries(body["tools"], "tools"))
        elif any(_blocks(message, "tool_use") for message in messages):
            self.problems.append("tools: requests with tool blocks must define tools")
        self._cache_marks(body, messages)

    def _cache_marks(self, body: Fields, messages: list[Fields]) -> None:
        said = [block for message in messages for block in _blocks(message)]
        blocks = [*_objects(body.get("tools")), *_objects(body.get("system")), *said]
        marks = [block["cache_control"] for block in blocks if "cache_control" in block]
        most = f"cache_control: at most {_MOST_CACHE_MARKS} blocks may have it"
        self.require(len(marks) <= _MOST_CACHE_MARKS, most)
        for mark in marks:
            fields = self.fields(mark, "cache_control")
            self.require(fields.get("type") == "ephemeral", "cache_control.type: must be 'ephemeral'")
            self.require(fields.get("ttl", "5m") in ("5m", "1h"), "cache_control.ttl: must be '5m' or '1h'")
            self.require(fields.keys() <= {"type", "ttl"}, "cache_control: extra inputs are not permitted")

    def _system(self, system: object) -> None:
        if isinstance(system, list):
            for at, value in enumerate(self.entries(cast("object", system), "system")):
                block, where = self.fields(value, f"system.{at}"), f"system.{at}"
                self.require(block.get("type") == "text", f"{where}.type: must be 'text'")
                self.require(block.keys() - {"type"} <= _ANTHROPIC_BLOCKS["text"], f"{where}: extra inputs")
                self.text(block.get("text"), where)
        else:
            self.text(system, "system")

    def _messages(self, messages: list[Fields]) -> None:
        for at, message in enumerate(messages):
            where = f"messages.{at}"
            wanted = "user" if at % 2 == 0 else "assistant"
            self.require(message.get("role") == wanted, f"{where}.role: roles must alternate, `user` first")
            self.require(message.keys() <= {"role", "content"}, f"{where}: extra inputs are not permitted")
            content = message.get("content")
            if isinstance(content, str):
                self.text(content, where)
                continue
            for number, block in enumerate(self.entries(content, f"{where}.content")):
                self._block(self.fields(block, where), str(message.get("role")), f"{where}.content.{number}")
        if messages:
            self.require(messages[-1].get("role") == "user", "messages: the last one must be the user's")
        ids = [str(use.get("id")) for message in messages for use in _blocks(message, "tool_use")]
        self.unique(ids, "messages: tool_use ids")
        self._pairs(messages)

    def _block(self, block: Fields, role: str, where: str) -> None:
        kind = block.get("type")
        extra = block.keys() - {"type"} - _ANTHROPIC_BLOCKS.get(str(kind), set())
        self.require(not extra, f"{where}: extra inputs are not permitted: {extra}")
        if kind == "text":
            self.text(block.get("text"), where)
        elif kind in ("image", "document"):
            self.require(role == "user", f"{where}: {kind} is the user's")
            source = self.fields(block.get("source"), f"{where}.source")
            self.require(source.get("type") == "base64", f"{where}.source.type: must be 'base64'")
            kinds = _IMAGES if kind == "image" else _DOCUMENTS
            self.file(source.get("media_type"), source.get("data"), f"{where}.source", kinds)
        elif kind == "tool_use":
            self.require(role == "assistant", f"{where}: tool_use is the assistant's")
            self.require(_ANTHROPIC_ID.fullmatch(str(block.get("id"))), f"{where}.id: pattern")
            self.require(_NAME.fullmatch(str(block.get("name"))), f"{where}.name: pattern")
            self.require(isinstance(block.get("input"), dict), f"{where}.input: must be an object")
        elif kind == "tool_result":
            self.require(role == "user", f"{where}: tool_result is the user's")
            self.require(isinstance(block.get("is_error", False), bool), f"{where}.is_error: boolean")
            taken = ("text",) if block.get("is_error") else ("text", "image")
            self._result_content(block.get("content", ""), where, taken)
        elif kind == "thinking":
            self.require(role == "assistant", f"{where}: thinking is the assistant's")
            self.require(isinstance(block.get("thinking"), str), f"{where}.thinking: field required")
            self.require(isinstance(block.get("signature"), str) and block["signature"], f"{where}.signature")
        elif kind == "redacted_thinking":
            self.require(role == "assistant", f"{where}: redacted_thinking is the assistant's")
            self.require(isinstance(block.get("data"), str) and block["data"], f"{where}.data: required")
        else:
            self.problems.append(f"{where}.type: unknown {kind!r}")

    def _result_content(self, content: object, where: str, taken: tuple[str, ...]) -> None:
        if isinstance(content, list):
            for inner in self.entries(cast("object", content), where, least=0):
                block = self.fields(inner, where)
                self.require(block.get("type") in taken, f"{where}.content: {' or '.join(taken)}")
                self._block(block, "user", where)
        else:
            self.require(isinstance(content, str), f"{where}.content: must be a text")

    def _pairs(self, messages: list[Fields]) -> None:
        """Checks that the very next message answers every call, and nothing else."""
        asked: list[str] = []
        for at, message in enumerate(messages):
            answered = [str(result.get("tool_use_id")) for result in _blocks(message, "tool_result")]
            missing, extra = set(asked) - set(answered), set(answered) - set(asked)
            self.require(not missing, f"messages.{at}: tool_use without tool_result in it: {missing}")
            self.require(not extra, f"messages.{at}: tool_result without tool_use before it: {extra}")
            self.unique(answered, f"messages.{at}: tool_result ids")
            are_results = [block.get("type") == "tool_result" for block in _blocks(message)]
            in_order = are_results == sorted(are_results, reverse=True)
            self.require(in_order, f"messages.{at}: tool_result blocks come first")
            asked = [str(use.get("id")) for use in _blocks(message, "tool_use")]
        self.require(not asked, "messages: the last message asks for tools that are not answered")

    def _tools(self, tools: Sequence[Any]) -> None:
        names: list[str] = []
        for at, value in enumerate(tools):
            tool, where = self.fields(value, f"tools.{at}"), f"tools.{at}"
            names.append(str(tool.get("name")))
            self.require(_NAME.fullmatch(names[-1]), f"{where}.name: pattern")
            self.require(isinstance(tool.get("description", ""), str), f"{where}.description: must be a text")
            extra = tool.keys() - {"type", "name", "description", "input_schema", "cache_control"}
            self.require(not extra, f"{where}: extra inputs are not permitted: {extra}")
            self.schema(tool.get("input_schema"), f"{where}.input_schema")
        self.unique(names, "tools: names")


class _OpenAIRules(_Rules):
    def check(self, value: object) -> None:
        body = self.fields(value, "body")
        self.unknown(body, _OPENAI_FIELDS)
        self.model(body)
        self.number(body, "temperature", 0, 2)
        for name in ("max_tokens", "max_completion_tokens"):
            if body.get(name) is not None:
                self.positive(body[name], name)
        both = "max_tokens" in body and "max_completion_tokens" in body
        self.require(not both, "max_tokens: not together with max_completion_tokens")
        if body.get("stream_options") is not None:
            self.require(body.get("stream"), "stream_options: only allowed when `stream` is on")
            self.fields(body["stream_options"], "stream_options")
        self.cache_key(body)
        if "response_format" in body:
            self.format(body["response_format"], "response_format")
        self._messages(self.messages(body))
        if "tools" in body:
            self._tools(self.entries(body["tools"], "tools"))

    def _messages(self, messages: list[Fields]) -> None:
        checks: dict[str, Callable[[Fields, str], None]] = {
            "system": self._said,
            "user": self._said,
            "assistant": self._assistant,
            "tool": self._tool_message,
        }
        for at, message in enumerate(messages):
            where, role = f"messages.[{at}]", str(message.get("role"))
            if self.require(role in checks, f"{where}.role: {role!r} is not one of {[*checks]}"):
                checks[role](message, where)
                if "name" in message:
                    self.text(message["name"], f"{where}.name")
                extra = message.keys() - {"role"} - _OPENAI_MESSAGES[role]
                self.require(not extra, f"{where}: extra inputs are not permitted: {extra}")
            if role == "system":
                self.require(at == 0, f"{where}: the system message must stand first")
        self._order([str(message.get("role")) for message in messages])
        self._pairs(messages)

    def _order(self, roles: list[str]) -> None:
        spoken = [role for role in roles if role in ("user", "assistant", "tool")]
        self.require(spoken[:1] == ["user"], "messages: the first one must be the user's")
        self.require(spoken[-1:] != ["assistant"], "messages: the last one must not be the assistant's")
        for before, role in itertools.pairwise(spoken):
            fits = role == "tool" or before != role
            self.require(fits, f"messages: roles must alternate, not {before} {role}")

    def _said(self, message: Fields, where: str) -> None:
        content = message.get("content")
        if isinstance(content, list):
            for value in self.entries(cast("object", content), f"{where}.content"):
                self._part(self.fields(value, where), str(message.get("role")), where)
        else:
            self.text(content, f"{where}.content")

    def _part(self, part: Fields, role: str, where: str) -> None:
        match part.get("type"):
            case "image_url":
                self.require(role == "user", f"{where}: image_url is the user's")
                url = self.fields(part.get("image_url"), f"{where}.image_url").get("url")
                self.data_url(url, f"{where}.image_url", _IMAGES)
            case "file":
                self.require(role == "user", f"{where}: file is the user's")
                file = self.fields(part.get("file"), f"{where}.file")
                self.text(file.get("filename"), f"{where}.file.filename")
                self.data_url(file.get("file_data"), f"{where}.file", _DOCUMENTS)
            case _:
                self.text(part.get("text"), where)

    def _assistant(self, message: Fields, where: str) -> None:
        content = message.get("content")
        if content is not None or "tool_calls" not in message:
            self._said(message, where)
        if "tool_calls" not in message:
            return
        calls = self.entries(message["tool_calls"], f"{where}.tool_calls")
        self.require(len(calls) <= _MOST_OPENAI_CALLS, f"{where}.tool_calls: at most {_MOST_OPENAI_CALLS}")
        for value in calls:
            call = self.fields(value, where)
            function = self.fields(call.get("function"), f"{where}.function")
            self.id(call.get("id"), f"{where}.id", most=_MOST_OPENAI_ID_CHARACTERS)
            self.require(call.get("type") == "function", f"{where}.type: must be 'function'")
            self.require(_NAME.fullmatch(str(function.get("name"))), f"{where}.name: pattern")
            self.arguments(function.get("arguments"), f"{where}.arguments")

    def _tool_message(self, message: Fields, where: str) -> None:
        self.id(message.get("tool_call_id"), f"{where}.tool_call_id", most=_MOST_OPENAI_ID_CHARACTERS)
        self.require(isinstance(message.get("content"), str), f"{where}.content: required")

    def _pairs(self, messages: list[Fields]) -> None:
        """Checks that every call is answered before any other message, and nothing else is answered."""
        every: list[str] = []
        waiting: list[str] = []
        for at, message in enumerate(messages):
            where = f"messages.[{at}]"
            if message.get("role") == "tool":
                call_id = str(message.get("tool_call_id"))
                if self.require(call_id in waiting, f"{where}: no preceding tool_calls with {call_id}"):
                    waiting.remove(call_id)
                continue
            self.require(not waiting, f"{where}: tool_calls must be followed by tool messages: {waiting}")
            waiting = [str(call.get("id")) for call in _objects(message.get("tool_calls"))]
            every.extend(waiting)
        self.require(not waiting, f"messages: tool_calls must be followed by tool messages: {waiting}")
        self.unique(every, "messages: tool call ids")

    def _tools(self, tools: Sequence[Any]) -> None:
        self.require(len(tools) <= _MOST_OPENAI_TOOLS, f"tools: at most {_MOST_OPENAI_TOOLS}")
        functions: list[Fields] = []
        for at, value in enumerate(tools):
            tool, where = self.fields(value, f"tools.[{at}]"), f"tools.[{at}]"
            self.require(tool.get("type") == "function", f"{where}.type: must be 'function'")
            functions.append(self.fields(tool.get("function"), f"{where}.function"))
        self.functions(functions)


class _ResponsesRules(_Rules):
    def check(self, value: object) -> None:
        body = self.fields(value, "body")
        self.unknown(body, _RESPONSES_FIELDS)
        self.model(body)
        self.require(isinstance(body.get("store", True), bool), "store: must be a boolean")
        self.number(body, "temperature", 0, 2)
        if body.get("max_output_tokens") is not None:
            self.positive(body["max_output_tokens"], "max_output_tokens")
            self.number(body, "max_output_tokens", _LEAST_OUTPUT_TOKENS, float("inf"))
        if "instructions" in body:
            self.text(body["instructions"], "instructions")
        for name in self.entries(body.get("include", []), "include", least=0):
            self.require(name == "reasoning.encrypted_content", f"include: unknown {name!r}")
        if "text" in body:
            text = self.fields(body["text"], "text")
            if "format" in text:
                self.format(text["format"], "text.format")
        reasoning = self.fields(body.get("reasoning", {}), "reasoning")
        self.require(reasoning.keys() <= {"effort", "summary"}, "reasoning: extra inputs are not permitted")
        self.cache_key(body)
        self._input(self.entries(body.get("input"), "input"), is_stored=body.get("store", True))
        if "tools" in body:
            self._tools(self.entries(body["tools"], "tools", least=0))  # the SDKs send an empty list

    def _input(self, values: Sequence[Any], *, is_stored: object) -> None:
        checks: dict[str, Callable[[Fields, str], None]] = {
            "message": self._message,
            "function_call": self._call,
            "function_call_output": self._output,
            "reasoning": self._reasoning,
        }
        items = [self.fields(value, f"input[{at}]") for at, value in enumerate(values)]
        for at, item in enumerate(items):
            where, kind = f"input[{at}]", _item_kind(item)
            if self.require(kind in checks, f"{where}.type: {kind!r} is not one of {[*checks]}"):
                checks[kind](item, where)
                extra = item.keys() - {"type"} - _RESPONSES_ITEMS[kind]
                self.require(not extra, f"{where}: extra inputs are not permitted: {extra}")
            if kind == "reasoning" and not is_stored:
                is_whole = isinstance(item.get("encrypted_content"), str) and item["encrypted_content"]
                self.require(is_whole, f"{where}: item not found, as nothing is stored: {item.get('id')}")
        self._order(items)
        self._pairs(items)

    def _order(self, items: list[Fields]) -> None:
        speakers = [_speaker(item) for item in items]
        self.require(speakers[:1] == ["user"], "input: the first item must be the user's")
        self.require(speakers[-1:] != ["assistant"], "input: the last item must not be the assistant's")
        kinds = [_item_kind(item) for item in items]
        for (before, kind), role in zip(itertools.pairwise(kinds), speakers[1:], strict=True):
            if before == "reasoning":
                follows = kind == "reasoning" or role == "assistant"
                self.require(follows, "input: reasoning was provided without its required following item")
        said = [_speaker(item) if _item_kind(item) == "message" else "" for item in items]
        in_a_row = any(one == other == "user" for one, other in itertools.pairwise(said))
        self.require(not in_a_row, "input: two messages of the user in a row")
        ids = [str(item.get("id")) for item in items if _item_kind(item) == "reasoning"]
        self.unique(ids, "input: reasoning ids")

    def _pairs(self, items: list[Fields]) -> None:
        """Checks that every call has its output before anybody speaks again, and nothing else has one."""
        every: list[str] = []
        waiting: list[str] = []
        for at, item in enumerate(items):
            call_id = str(item.get("call_id"))
            match _item_kind(item):
                case "function_call":
                    every.append(call_id)
                    waiting.append(call_id)
                case "function_call_output":
                    if self.require(call_id in waiting, f"input[{at}]: no tool call found for {call_id}"):
                        waiting.remove(call_id)
                case "message" if item.get("role") == "user":
                    self.require(not waiting, f"input[{at}]: no tool output found for {waiting}")
                case _:
                    pass
        self.require(not waiting, f"input: no tool output found for {waiting}")
        self.unique(every, "input: call ids")

    def _message(self, message: Fields, where: str) -> None:
        role, content = message.get("role"), cast("object", message.get("content"))
        self.require(role in ("user", "assistant"), f"{where}.role: {role!r}")
        if isinstance(content, list) and role == "user":
            self._parts(cast("object", content), where)
        elif isinstance(content, list):
            self._said(cast("object", content), where)
        else:
            self.text(content, f"{where}.content")

    def _said(self, parts: object, where: str) -> None:
        """Checks what a model said, as it comes back."""
        for value in self.entries(parts, f"{where}.content"):
            part = self.fields(value, where)
            kind = str(part.get("type"))
            if self.require(kind in _RESPONSES_SAID, f"{where}.type: unknown {kind!r}"):
                extra = part.keys() - {"type"} - _RESPONSES_SAID[kind]
                self.require(not extra, f"{where}: extra inputs are not permitted: {extra}")

    def _parts(self, parts: object, where: str) -> None:
        for value in self.entries(parts, f"{where}.content"):
            part = self.fields(value, where)
            kind = str(part.get("type"))
            if not self.require(kind in _RESPONSES_PARTS, f"{where}.type: unknown {kind!r}"):
                continue
            extra = part.keys() - {"type"} - _RESPONSES_PARTS[kind]
            self.require(not extra, f"{where}: extra inputs are not permitted: {extra}")
            if kind == "input_text":
                self.text(part.get("text"), where)
            elif kind == "input_image":
                known = ("auto", "low", "high", "original")
                self.require(part.get("detail", "auto") in known, f"{where}.detail: one of {known}")
                self.data_url(part.get("image_url"), where, _IMAGES)
            else:
                self.text(part.get("filename"), f"{where}.filename")
                self.data_url(part.get("file_data"), where, _DOCUMENTS)

    def _call(self, call: Fields, where: str) -> None:
        self.id(call.get("call_id"), f"{where}.call_id", most=_MOST_RESPONSES_ID_CHARACTERS)
        self.require(_NAME.fullmatch(str(call.get("name"))), f"{where}.name: pattern")
        self.arguments(call.get("arguments"), f"{where}.arguments")
        if "id" in call:
            self.require(str(call["id"]).startswith("fc"), f"{where}.id: must begin with 'fc'")

    def _output(self, result: Fields, where: str) -> None:
        self.id(result.get("call_id"), f"{where}.call_id", most=_MOST_RESPONSES_ID_CHARACTERS)
        output = result.get("output")
        if isinstance(output, list):
            self._parts(cast("object", output), where)
        else:
            self.require(isinstance(output, str), f"{where}.output: must be a text or a list")

    def _reasoning(self, item: Fields, where: str) -> None:
        self.require(str(item.get("id")).startswith("rs"), f"{where}.id: must begin with 'rs'")
        for value in self.entries(item.get("summary"), f"{where}.summary", least=0):
            part = self.fields(value, where)
            self.require({*part} == {"type", "text"}, f"{where}.summary: type and text")
            self.require(part.get("type") == "summary_text", f"{where}.summary.type: must be 'summary_text'")
            self.require(isinstance(part.get("text"), str), f"{where}.summary.text: must be a text")

    def _tools(self, tools: Sequence[Any]) -> None:
        functions = [self.fields(value, f"tools[{at}]") for at, value in enumerate(tools)]
        for at, function in enumerate(functions):
            self.require(function.get("type") == "function", f"tools[{at}].type: must be 'function'")
            self.require(isinstance(function.get("strict"), bool), f"tools[{at}].strict: required")
            extra = function.keys() - {"type", "name", "description", "parameters", "strict"}
            self.require(not extra, f"tools[{at}]: extra inputs are not permitted: {extra}")
        self.functions(functions)


def _item_kind(item: Fields) -> str:
    """An item's type, which a message need not name."""
    return str(item.get("type", "message"))


def _speaker(item: Fields) -> str:
    """Whose item it is."""
    kind = _item_kind(item)
    if kind == "message":
        return str(item.get("role"))
    return "user" if kind == "function_call_output" else "assistant"
