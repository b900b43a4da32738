"""Servers that speak a provider's wire in their own way."""

import json
from typing import Any

import pytest

from tests.gateways.asking import Heard, ask, heard, make_gateway
from threadkeep.ports.gateway import (
    ModelStopped,
    ModelUsage,
    TextDelta,
    ThoughtDelta,
    ThoughtSigned,
    ToolUse,
)
from threadkeep.testing import NoUsage, Raw, Say, ScriptedModel, UseTool

DONE = Raw(b"data: [DONE]\n\n")


def chunk(delta: dict[str, Any] | None = None, **fields: Any) -> Raw:
    """A chunk with only what is given."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, **fields}]
    return Raw(f"data: {json.dumps({'choices': choices})}\n\n".encode())


def calls(*pieces: dict[str, Any]) -> Raw:
    return chunk({"tool_calls": list(pieces)})


def call(arguments: Any = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"name": name, "arguments": arguments}}


async def listen(wire: str, *steps: Raw) -> Heard:
    with ScriptedModel(list(steps)) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None, error
    return heard(events)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                calls(call("", "add", index=0)),
                calls(call('{"a"', index=0, id="x")),
                calls(call(": 1}", index=0)),
            ],
            id="late id",
        ),
        pytest.param(
            [calls(call('{"a"', "add", index=0, id="x")), calls(call(": 1}", "add", index=0, id="x"))],
            id="everything repeated",
        ),
        pytest.param([calls(call('{"a": 1}', "add", id="x"))], id="no index"),
        pytest.param([calls(call('{"a"', "add", id="x")), calls(call(": 1}"))], id="no index, pieces"),
        pytest.param([calls(call({"a": 1}, "add", index=0, id="x"))], id="arguments as an object"),
        pytest.param(
            [calls(call('{"a": 1}', "a", index=0, id="x")), calls(call(None, "dd", index=0))],
            id="name in pieces",
        ),
    ],
)
async def test_tool_call_is_put_together_however_it_comes(pieces: list[Raw]):
    reply = await listen("openai", *pieces, chunk({}, finish_reason="tool_calls"), DONE)
    assert reply.tools == [("x", "add", {"a": 1})]
    assert reply.stop_reason == "tool_use"


async def test_calls_that_share_an_index_are_told_apart_by_their_ids():
    reply = await listen(
        "openai",
        calls(call('{"a": 1}', "add", index=0, id="x")),
        calls(call('{"a": 2}', "add", index=0, id="y")),
        chunk({}, finish_reason="stop"),
        DONE,
    )
    assert reply.tools == [("x", "add", {"a": 1}), ("y", "add", {"a": 2})]
    assert reply.stop_reason == "tool_use"


async def test_calls_that_come_at_once_and_interleaved_are_told_apart():
    reply = await listen(
        "openai",
        calls(call("", "add", index=0, id="x"), call("", "now", index=1, id="y")),
        calls(call('{"z"', index=1), call('{"a"', index=0)),
        calls(call(":1}", index=0), call(":2}", index=1)),
        chunk({}, finish_reason="tool_calls"),
    )
    assert reply.tools == [("x", "add", {"a": 1}), ("y", "now", {"z": 2})]


@pytest.mark.parametrize("indexes", [({"index": 0}, {"index": 1}), ({}, {})], ids=["index", "no index"])
async def test_calls_without_ids_are_told_apart(indexes: tuple[dict[str, int], dict[str, int]]):
    pieces = [calls(call("{}", name, **index)) for name, index in zip(("add", "now"), indexes, strict=True)]
    reply = await listen("openai", *pieces, DONE)
    assert reply.tools == [("", "add", {}), ("", "now", {})]


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
@pytest.mark.parametrize("use_id", ["", "call_1", "x" * 41, "functions.add:0", "x\x00"])
async def test_ids_of_calls_are_passed_on_as_the_model_gave_them(wire: str, use_id: str):
    with ScriptedModel([UseTool("add", id=use_id), UseTool("now", id=use_id)]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    assert heard(events).tools == [(use_id, "add", {}), (use_id, "now", {})]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_has_two_names(name: str):
    reply = await listen("openai", chunk({name: "Hm"}), chunk({"content": "Yes", name: None}), DONE)
    assert (reply.thought, reply.text) == ("Hm", "Yes")


async def test_reasoning_under_both_names_is_heard_once():
    reply = await listen(
        "openai", chunk({"reasoning_content": "Hm", "reasoning": "Hm", "content": "Y"}), DONE
    )
    assert (reply.thought, reply.text) == ("Hm", "Y")


async def test_chunks_without_anything_are_skipped():
    reply = await listen(
        "openai",
        chunk(),
        Raw(b'data: {"choices": null}\n\ndata:\n\n: OPENROUTER PROCESSING\n\ndata: {"prompt_filter": 1}\n\n'),
        chunk({"content": None, "role": "assistant", "tool_calls": None}),
        chunk({"content": "Yes"}, finish_reason=None, logprobs=None),
        chunk({"content": ""}, finish_reason="stop"),
    )
    assert reply == Heard(text="Yes", stop_reason="end_turn")


async def test_usage_may_come_with_every_chunk_and_the_last_counts():
    pieces = [
        Raw(b'data: {"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 9}}\n\n'),
        Raw(b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}\n\n'),
        Raw(b'data: {"choices": [], "usage": null}\n\n'),
    ]
    assert (await listen("openai", *pieces, DONE)).usage == ModelUsage(9, 3)


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ('{"cached_tokens": 5}', 5),
        ('{"cached_tokens": -5}', 0),
        ('{"cached_tokens": 50}', 9),
        ('{"cached_tokens": null}', 0),
        ('{"cached_tokens": "5"}', 0),
        ("{}", 0),
        ("null", 0),
        ("[5]", 0),
    ],
)
async def test_openai_cached_tokens_of_any_shape_do_not_cost_the_reply(details: str, cached: int):
    usage = f'{{"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {details}}}'
    reply = await listen("openai", Raw(f'data: {{"usage": {usage}}}\n\n'.encode()), DONE)
    assert reply.usage
    assert reply.usage.plausible() == ModelUsage(9, 3, cached)


@pytest.mark.parametrize(
    ("read", "written", "spent"),
    [
        (40, 50, ModelUsage(100, 3, 40, 50)),
        (0, None, ModelUsage(10, 3)),
        (-40, -1, ModelUsage(10, 3)),
        (10**12, 0, None),
    ],
)
async def test_anthropic_cached_tokens_are_part_of_the_input(
    read: int, written: int | None, spent: ModelUsage | None
):
    usage = {"input_tokens": 10, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    reply = await listen(
        "anthropic",
        event("message_start", message={"usage": usage}),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}),
        event("message_stop"),
    )
    assert reply.usage
    assert reply.usage.plausible() == spent


async def test_refusal_in_words_is_text():
    reply = await listen("openai", chunk({"refusal": "No."}, finish_reason="content_filter"), DONE)
    assert (reply.text, reply.stop_reason) == ("No.", "refusal")


async def test_last_event_needs_no_empty_line():
    assert (await listen("openai", chunk({"content": "a"}), Raw(b"data: [DONE]"))).text == "a"


async def test_nothing_after_the_end_is_heard():
    assert (await listen("openai", chunk({"content": "a"}), DONE, chunk({"content": "b"}))).text == "a"


@pytest.mark.parametrize(
    ("data", "message", "retryable"),
    [
        (b'{"error": "plain words"}', "The model provider failed: plain words.", True),
        (b'{"error": {"message": "Crash.", "code": 500}}', "The model provider failed: Crash.", True),
        (
            b'{"error": {"code": 400, "message": "Too long."}}',
            "The model provider failed: Too long.",
            False,
        ),
        (b'{"object": "error", "message": "vLLM"}', "The model provider failed: vLLM.", True),
        (
            b'{"error": {"message": "Slow.", "code": "rate_limit_exceeded"}}',
            "The model provider failed: Slow.",
            True,
        ),
        (b'{"error": {"code": 401}}', "The model provider rejected the API key.", False),
        (b'{"error": {}, "object": "error"}', "The model provider failed.", True),
    ],
)
async def test_errors_in_the_stream_have_many_shapes(data: bytes, message: str, retryable: bool):
    with ScriptedModel([chunk({"content": "a"}), Raw(b"data: %b\n\n" % data)]) as model:
        events, error = await ask(make_gateway("openai", model.url))
    assert error
    assert (error.message, error.retryable) == (message, retryable)
    assert events == [TextDelta("a")]


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
async def test_usage_that_is_not_given_is_not_made_up(wire: str):
    with ScriptedModel([Say("a"), NoUsage()]) as model:
        events, _ = await ask(make_gateway(wire, model.url))
    assert events == [TextDelta("a"), ModelStopped("end_turn")]


def event(kind: str, **fields: Any) -> Raw:
    return Raw(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())


async def test_anthropic_block_may_come_whole_at_its_start():
    with ScriptedModel(
        [
            event("message_start", message={"usage": {"input_tokens": 0, "output_tokens": 0}}),
            event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "Hm"}),
            event("content_block_stop", index=0),
            event("content_block_start", index=1, content_block={"type": "text", "text": "Yes"}),
            event("content_block_stop", index=1),
            event("content_block_start", index=2, content_block={"type": "server_tool_use", "id": "s"}),
            event("content_block_stop", index=2),
            event("content_block_stop", index=7),
            event(
                "content_block_start",
                index=3,
                content_block={"type": "tool_use", "id": "x", "name": "add", "input": {"a": 1}},
            ),
            event("content_block_delta", index=3, delta={"type": "news_delta", "news": 1}),
            event("content_block_delta", index=9, delta={"type": "input_json_delta", "partial_json": "{"}),
            event("message_delta", delta={"stop_reason": "pause_turn"}),
            event("message_delta", delta={}, usage={"input_tokens": 4, "output_tokens": 2}),
            event("message_stop"),
        ]
    ) as model:
        events, error = await ask(make_gateway("anthropic", model.url))
    assert error is None
    assert events[:3] == [ThoughtDelta("Hm"), ThoughtSigned(""), TextDelta("Yes")]
    assert events[3] == ToolUse("x", "add", {"a": 1})
    assert heard(events).usage == ModelUsage(4, 2)
    assert events[-1] == ModelStopped("other")


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("tool_use", "tool_use"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("something new", "other"),
        (None, "other"),
    ],
)
async def test_anthropic_reasons_for_stopping_have_our_names(reason: str | None, ours: str):
    reply = await listen(
        "anthropic", event("message_delta", delta={"stop_reason": reason}), event("message_stop")
    )
    assert reply.stop_reason == ours


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("content_filter", "refusal"),
        ("something new", "other"),
        (None, "end_turn"),
    ],
)
async def test_openai_reasons_for_stopping_have_our_names(reason: str | None, ours: str):
    assert (await listen("openai", chunk({}, finish_reason=reason), DONE)).stop_reason == ours
