"""The rules that a scripted model holds requests to: what they take and find."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from threadkeep.testing.provider_rules import (
    check_anthropic,
    check_openai,
    check_responses,
)

Body = dict[str, Any]


def anthropic() -> Body:
    use: Body = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "2", "is_error": False}
    thinking = {"type": "thinking", "thinking": "", "signature": "s"}
    return {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "x"}, use]},
            {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
        ],
        "tools": [{"name": "add", "input_schema": {"type": "object"}}],
        "stream": True,
    }


def openai() -> Body:
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    schema: Body = {"type": "object", "properties": {}}
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": ""},
            {"role": "user", "content": [{"type": "text", "text": "And?"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": schema}}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def responses() -> Body:
    png = "data:image/png;base64,iVBORw0KGgo="
    reasoning: Body = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}
    schema: Body = {"type": "object", "properties": {}}
    parts = [
        {"type": "input_text", "text": "And?"},
        {"type": "input_image", "image_url": png, "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
    ]
    return {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": "Hello"},
            reasoning | {"summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "t1", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t1", "output": ""},
            {"type": "message", "role": "user", "content": parts},
        ],
        "tools": [{"type": "function", "name": "add", "parameters": schema, "strict": False}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }


def put(*path: str | int, value: Any) -> Callable[[Body], object]:
    def change(body: Body) -> None:
        inner: Any = body
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[Body], object]:
    def change(body: Body) -> None:
        inner: Any = body
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]

    return change


def twice(*path: str | int) -> Callable[[Body], object]:
    def change(body: Body) -> None:
        inner: Any = body
        for key in path[:-1]:
            inner = inner[key]
        inner.insert(path[-1], copy.deepcopy(inner[path[-1]]))

    return change


M = "messages"

ANTHROPIC_BREACHES: list[Callable[[Body], object]] = [
    drop("model"),
    drop("max_tokens"),
    drop(M),
    drop("tools"),
    put("max_tokens", value=0),
    put("temperature", value=1.5),
    put("stream_options", value={}),
    put("system", value=" \n"),
    put("system", value=[]),
    put("system", 0, "text", value=""),
    put("system", 0, "type", value="image"),
    put("system", 0, "extra", value=1),
    put("system", 0, "cache_control", value={"type": "for ever"}),
    put("system", 0, "cache_control", value={"type": "ephemeral", "ttl": "1d"}),
    put("system", 0, "cache_control", value={"type": "ephemeral", "extra": 1}),
    put("system", 0, "cache_control", value=None),
    put("system", value=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5),
    put(M, 1, "content", 0, "cache_control", value={"type": "ephemeral"}),
    put(M, 2, "content", 1, "index", value=0),
    put(M, value=[]),
    put(M, 0, "role", value="system"),
    put(M, 0, "role", value="assistant"),
    put(M, 0, "content", value=""),
    put(M, 0, "content", value=[]),
    put(M, 0, "content", value=[{"type": "text", "text": "\t"}]),
    put(M, 0, "content", value=[{"type": "video"}]),
    put(M, 0, "name", value="x"),
    put(M, 1, "content", 0, "signature", value=""),
    put(M, 1, "content", 2, "id", value="a b"),
    put(M, 1, "content", 2, "name", value="a.b"),
    put(M, 1, "content", 2, "input", value="{}"),
    put(M, 2, "content", 0, "tool_use_id", value="t2"),
    put(M, 2, "content", 0, "content", value=None),
    drop(M, 0),
    drop(M, 2),
    drop(M, 1),
    drop(M, 2, "content", 0),
    drop(M, 1, "content", 2),
    twice(M, 0),
    twice(M, 1, "content", 2),
    twice(M, 2, "content", 0),
    lambda body: body[M][2]["content"].reverse(),
    lambda body: body[M].append({"role": "assistant", "content": "x"}),
    twice("tools", 0),
    put("tools", value=[]),
    put("tools", 0, "strictly", value=True),
    put("tools", 0, "name", value="a b"),
    put("tools", 0, "input_schema", value={}),
    drop("tools", 0, "input_schema"),
]

OPENAI_BREACHES: list[Callable[[Body], object]] = [
    drop("model"),
    drop(M),
    put("temperature", value=2.5),
    put("max_tokens", value=0),
    put("system", value="x"),
    put("stream", value=False),
    put("prompt_cache_key", value="x" * 65),
    put("prompt_cache_key", value=None),
    lambda body: body.update(max_tokens=1, max_completion_tokens=1),
    put(M, value=[]),
    put(M, 0, "role", value="narrator"),
    lambda body: body[M].append({"role": "system", "content": "x"}),
    drop(M, 1),
    put(M, 1, "content", value=""),
    put(M, 1, "content", value=None),
    drop(M, 2),
    drop(M, 2, "tool_calls"),
    put(M, 2, "tool_calls", value=[]),
    put(M, 2, "tool_calls", 0, "id", value="t2"),
    put(M, 2, "tool_calls", 0, "id", value=""),
    put(M, 2, "thinking", value="x"),
    lambda body: body[M][2]["tool_calls"][0].update(id="x" * 41) or body[M][3].update(tool_call_id="x" * 41),
    put(M, 2, "tool_calls", 0, "type", value="tool"),
    put(M, 2, "tool_calls", 0, "function", "name", value="a.b"),
    put(M, 2, "tool_calls", 0, "function", "arguments", value="{"),
    put(M, 2, "tool_calls", 0, "function", "arguments", value={}),
    twice(M, 2, "tool_calls", 0),
    drop(M, 3),
    drop(M, 3, "tool_call_id"),
    put(M, 3, "content", value=None),
    twice(M, 3),
    twice(M, 4),
    lambda body: body[M].append({"role": "assistant", "content": "x"}),
    put("tools", value=[]),
    twice("tools", 0),
    put("tools", 0, "type", value="x"),
    put("tools", 0, "function", "name", value="x" * 65),
    drop("tools", 0, "function", "parameters"),
    drop("tools", 0, "function", "parameters", "properties"),
]

I = "input"  # noqa: E741

RESPONSES_BREACHES: list[Callable[[Body], object]] = [
    drop("model"),
    drop(I),
    put("messages", value=[]),
    put("max_tokens", value=100),
    put("max_output_tokens", value=15),
    put("max_output_tokens", value=1.5),
    put("temperature", value=2.5),
    put("store", value="no"),
    put("instructions", value=""),
    put("include", value=["everything"]),
    put("reasoning", value={"depth": 1}),
    put("prompt_cache_key", value="x" * 65),
    put(I, value=[]),
    put(I, 0, "role", value="narrator"),
    put(I, 0, "type", value="note"),
    put(I, 0, "name", value="x"),
    put(I, 0, "content", value=" "),
    put(I, 0, "content", value=[]),
    put(I, 0, "content", value=[{"type": "text", "text": "Hello"}]),
    drop(I, 0),
    twice(I, 0),
    put(I, 1, "id", value="fc_1"),
    put(I, 1, "signature", value="x"),
    put(I, 1, "summary", 0, "type", value="text"),
    drop(I, 1, "summary"),
    drop(I, 1, "encrypted_content"),  # without it, the provider would need to have stored the item
    put(I, 1, "encrypted_content", value=""),
    twice(I, 1),
    drop(I, 2),  # reasoning without what followed it, and a result without a call
    put(I, 2, "call_id", value="t2"),
    put(I, 2, "id", value="call_1"),
    put(I, 2, "name", value="a.b"),
    put(I, 2, "arguments", value="{"),
    put(I, 2, "arguments", value={}),
    lambda body: body[I][2].update(call_id="x" * 65) or body[I][3].update(call_id="x" * 65),
    twice(I, 2),
    drop(I, 3),
    drop(I, 3, "call_id"),
    put(I, 3, "output", value=None),
    put(I, 3, "output", value=[]),
    put(I, 3, "is_error", value=True),
    twice(I, 3),
    lambda body: body[I].insert(1, body[I].pop(3)),  # a result before its call
    lambda body: body[I].insert(3, {"role": "user", "content": "Wait"}),  # somebody speaks before the result
    put(I, 4, "content", 1, "image_url", value="data:image/tiff;base64,iVBORw0KGgo="),
    put(I, 4, "content", 1, "detail", value="huge"),
    put(I, 4, "content", 1, "text", value="x"),
    put(I, 4, "content", 2, "filename", value=""),
    put(I, 4, "content", 2, "file_data", value="data:application/pdf;base64,iVBORw0KGgo="),
    twice(I, 4),
    lambda body: body[I].append({"role": "assistant", "content": "x"}),
    twice("tools", 0),
    put("tools", 0, "type", value="x"),
    put("tools", 0, "function", value={}),
    put("tools", 0, "name", value="x" * 65),
    drop("tools", 0, "strict"),
    drop("tools", 0, "parameters"),
    drop("tools", 0, "parameters", "properties"),
]

NO_REQUESTS: list[object] = [None, [], "x", {}, {"messages": 1}, {"messages": [1, None]}]


def test_valid_requests_are_taken():
    check_anthropic(anthropic())
    check_openai(openai())
    check_responses(responses())


def test_what_a_model_said_comes_back_to_the_responses_api_as_parts():
    body = responses()
    at = next(at for at, it in enumerate(body[I]) if it.get("type") == "reasoning") + 1
    said: Body = {"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]}
    body[I].insert(at, said)
    check_responses(body)
    put(I, at, "content", 0, "type", value="input_text")(body)
    with pytest.raises(AssertionError, match="unknown 'input_text'"):
        check_responses(body)


@pytest.mark.parametrize("breach", ANTHROPIC_BREACHES)
def test_anthropic_breach_is_found(breach: Callable[[Body], object]):
    body = anthropic()
    breach(body)
    with pytest.raises(AssertionError, match=r"Anthropic would refuse the request: .+\."):
        check_anthropic(body)


@pytest.mark.parametrize("breach", OPENAI_BREACHES)
def test_openai_breach_is_found(breach: Callable[[Body], object]):
    body = openai()
    breach(body)
    with pytest.raises(AssertionError, match=r"OpenAI would refuse the request: .+\."):
        check_openai(body)


@pytest.mark.parametrize("breach", RESPONSES_BREACHES)
def test_responses_breach_is_found(breach: Callable[[Body], object]):
    body = responses()
    breach(body)
    with pytest.raises(AssertionError, match=r"OpenAI would refuse the request: .+\."):
        check_responses(body)


@pytest.mark.parametrize("body", NO_REQUESTS)
@pytest.mark.parametrize("check", [check_anthropic, check_openai, check_responses])
def test_what_is_no_request_at_all_is_found(check: Callable[[object], None], body: object):
    with pytest.raises(AssertionError):
        check(body)
