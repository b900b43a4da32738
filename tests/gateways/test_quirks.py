"""Servers that speak a provider's wire in their own way."""

import json
from typing import Any

import pytest

from tests.gateways.asking import WIRES, Heard, ask, heard, make_gateway
from threadkeep.ports.gateway import (
    ModelStopped,
    ModelUsage,
    TextDelta,
    ThoughtDelta,
    ThoughtSigned,
    ToolUse,
)
from threadkeep.testing import NoUsage, Pause, Raw, Say, ScriptedModel, Step, UseTool

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


@pytest.mark.parametrize("wire", WIRES)
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
        ('{"cached_tokens": 5, "cache_write_tokens": "4"}', 5),
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


async def test_openai_says_what_it_has_written_to_the_cache():
    details = '{"cached_tokens": 5, "cache_write_tokens": 2}'
    usage = f'{{"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {details}}}'
    reply = await listen("openai", Raw(f'data: {{"usage": {usage}}}\n\n'.encode()), DONE)
    assert reply.usage == ModelUsage(9, 3, 5, 2)


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


@pytest.mark.parametrize("wire", WIRES)
async def test_usage_that_is_not_given_is_not_made_up(wire: str):
    with ScriptedModel([Say("a"), NoUsage()]) as model:
        events, _ = await ask(make_gateway(wire, model.url))
    assert events == [TextDelta("a"), ModelStopped("end_turn")]


async def test_usage_long_after_the_reason_for_stopping_is_heard():
    late = Raw(b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}\n\n')
    for end in ([DONE], []):
        steps: list[Step] = [chunk({"content": "a"}), chunk({}, finish_reason="stop"), Pause(0.3), late, *end]
        with ScriptedModel(steps) as model:
            events, error = await ask(make_gateway("openai", model.url))
        assert error is None
        assert heard(events).usage == ModelUsage(9, 3)


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


# The Responses API


def response(kind: str, **fields: Any) -> Raw:
    return event(f"response.{kind}", response=fields)


def item(kind: str, **fields: Any) -> Raw:
    return event("response.output_item.done", output_index=0, item={"type": kind, **fields})


async def test_parts_of_a_summary_are_paragraphs_and_reasoning_in_words_is_heard():
    reply = await listen(
        "responses",
        event("response.reasoning_summary_part.added", summary_index=0),
        event("response.reasoning_summary_text.delta", delta="First."),
        event("response.reasoning_summary_part.added", summary_index=1),
        event("response.reasoning_summary_text.delta", delta="Then."),
        item("reasoning", id="rs_1", encrypted_content="abc"),
        event("response.reasoning_text.delta", delta=" Aloud."),
        item("reasoning", id="rs_2", encrypted_content=None),
        response("completed"),
    )
    assert reply.thought == "First.\n\nThen. Aloud."
    assert reply.signatures == ["rs_1:abc", ""]


async def test_responses_refusal_in_words_is_text():
    reply = await listen(
        "responses",
        event("response.refusal.delta", delta="No."),
        item("message", content=[{"type": "refusal", "refusal": "No."}]),
        response("completed"),
    )
    assert (reply.text, reply.stop_reason) == ("No.", "refusal")


async def test_responses_items_may_come_whole():
    reply = await listen(
        "responses",
        item("message", content=[{"type": "output_text", "text": "Yes"}]),
        item("web_search_call", id="ws_1"),
        item("function_call", id="fc_1", call_id="x", name="add", arguments='{"a": 1}'),
        response("completed", usage={"input_tokens": 4, "output_tokens": 2}),
    )
    assert reply == Heard(
        "Yes", tools=[("x", "add", {"a": 1})], usage=ModelUsage(4, 2), stop_reason="tool_use"
    )


async def test_responses_arguments_may_come_only_in_pieces():
    reply = await listen(
        "responses",
        event("response.function_call_arguments.delta", output_index=0, delta='{"a"'),
        event("response.function_call_arguments.delta", output_index=0, delta=": 1}"),
        item("function_call", id="fc_1", call_id="x", name="add"),
        response("completed"),
    )
    assert reply.tools == [("x", "add", {"a": 1})]


async def test_responses_events_may_have_their_name_in_the_data_only():
    lines = [
        b'{"type": "response.output_text.delta", "delta": "Yes"}',
        b'{"type": "response.completed", "response": {"usage": {"input_tokens": 4, "output_tokens": 2}}}',
        b"[DONE]",
    ]
    reply = await listen("responses", *(Raw(b"data: %b\n\n" % line) for line in lines))
    assert reply == Heard("Yes", usage=ModelUsage(4, 2), stop_reason="end_turn")


@pytest.mark.parametrize(
    ("details", "cached", "written"),
    [
        ({"cached_tokens": 5, "cache_write_tokens": 2}, 5, 2),
        ({"cached_tokens": None}, 0, 0),
        ({"cached_tokens": "5"}, 0, 0),
        (None, 0, 0),
        ([5], 0, 0),
    ],
)
async def test_responses_cached_tokens_of_any_shape_do_not_cost_the_reply(
    details: object, cached: int, written: int
):
    usage = {"input_tokens": 9, "output_tokens": 3, "input_tokens_details": details}
    early = response("in_progress", usage={"input_tokens": 1, "output_tokens": 1})
    reply = await listen("responses", early, response("completed", usage=usage))
    assert reply.usage == ModelUsage(9, 3, cached, written)


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "refusal"),
        ("something new", "other"),
        (None, "end_turn"),
    ],
)
async def test_responses_reasons_for_stopping_have_our_names(reason: str | None, ours: str):
    reply = await listen("responses", response("incomplete", incomplete_details={"reason": reason}))
    assert reply.stop_reason == ours


@pytest.mark.parametrize(
    ("failure", "message", "retryable"),
    [
        (
            response("failed", error={"code": "server_error", "message": "Crash."}),
            "The model provider failed: Crash.",
            True,
        ),
        (
            response("failed", error={"code": "rate_limit_exceeded", "message": "Slow."}),
            "The model provider failed: Slow.",
            True,
        ),
        (
            response("failed", error={"code": "invalid_prompt", "message": "No."}),
            "The model provider failed: No.",
            False,
        ),
        (response("failed", error=None), "The model provider failed.", True),
        (event("error", code="server_error", message="Crash."), "The model provider failed: Crash.", True),
        (
            event("error", error={"type": "invalid_request_error", "message": "Too long."}),
            "The model provider failed: Too long.",
            False,
        ),
        (event("error", error={"code": 401}), "The model provider rejected the API key.", False),
    ],
)
async def test_responses_errors_in_the_stream_have_many_shapes(failure: Raw, message: str, retryable: bool):
    with ScriptedModel([event("response.output_text.delta", delta="a"), failure]) as model:
        events, error = await ask(make_gateway("responses", model.url))
    assert error
    assert (error.message, error.retryable) == (message, retryable)
    assert events == [TextDelta("a")]
