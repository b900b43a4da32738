"""What goes out, as either provider wants it."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from tests.gateways.asking import ADD, AFTER_A_TOOL, KEY, QUESTION, WIRES, ask, make_gateway
from threadkeep.domain.errors import SettingsError
from threadkeep.gateways.anthropic import AnthropicGateway, anthropic_body
from threadkeep.gateways.openai import Habits, OpenAIGateway, openai_body
from threadkeep.ports.gateway import (
    Block,
    Gateway,
    ModelMessage,
    ModelRequest,
    TextBlock,
    ThinkingBlock,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
    ToolUseBlock,
)
from threadkeep.testing import Say, ScriptedModel, Status, Think, ThinkUnseen, UseTool
from threadkeep.testing.provider_rules import check_anthropic_request, check_openai_request


def test_anthropic_gets_the_system_prompt_apart_and_tools_as_blocks():
    assert anthropic_body(AFTER_A_TOOL, "default") == {
        "model": "default",
        "max_tokens": 4096,
        "system": "You are brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "你好, how are you?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "One moment."},
                    {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "no numbers", "is_error": True}
                ],
            },
        ],
        "tools": [{"name": "add", "description": "Adds numbers.", "input_schema": ADD.input_schema}],
        "stream": True,
    }


def test_openai_gets_the_system_prompt_first_and_tools_as_messages():
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    function = {"name": "add", "description": "Adds numbers.", "parameters": ADD.input_schema}
    assert openai_body(AFTER_A_TOOL, "default", Habits()) == {
        "model": "default",
        "messages": [
            {"role": "system", "content": "You are brief."},
            {"role": "user", "content": "你好, how are you?"},
            {"role": "assistant", "content": "One moment.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": "Error: no numbers"},
        ],
        "tools": [{"type": "function", "function": function}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_what_the_agent_sets_is_sent():
    request = replace(QUESTION, model="other", temperature=1.5, max_tokens=77)
    body = anthropic_body(request, "default")
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("other", 1.0, 77)
    body = openai_body(request, "default", Habits())
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("other", 1.5, 77)


@pytest.mark.parametrize("wire", WIRES)
async def test_request_without_extras_has_none(wire: str):
    bare = ModelRequest(None, "", QUESTION.messages)
    with ScriptedModel() as model:
        _, error = await ask(make_gateway(wire, model.url), bare)
    assert error is None
    assert not {"system", "tools", "temperature"} & model.requests[0].body.keys()
    assert [message["role"] for message in model.requests[0].body["messages"]] == ["user"]


ODD: tuple[tuple[Block, ...], ...] = (
    (ToolUseBlock("t1", "made up: 工具!" * 30, MappingProxyType({"a": MappingProxyType({"b": 1})})),),
    (ToolUseBlock("t1", "", {}), ToolUseBlock("t2", "add", {})),
    (
        ThinkingBlock("Hm.", "signed"),
        ThinkingBlock("", "redacted_thinking:data"),
        ToolUseBlock("t1", "add", {}),
    ),
)


@pytest.mark.parametrize("said", ODD)
@pytest.mark.parametrize("wire", WIRES)
async def test_odd_answers_of_a_model_can_be_sent_back(wire: str, said: tuple[Block, ...]):
    results = tuple(
        ToolResultBlock(block.id, "", is_error=False) for block in said if isinstance(block, ToolUseBlock)
    )
    messages = (
        *QUESTION.messages,
        ModelMessage("assistant", said),
        ModelMessage("user", (*results, TextBlock("And?"))),
    )
    with ScriptedModel() as model:
        _, error = await ask(make_gateway(wire, model.url), replace(QUESTION, messages=messages))
    assert error is None, error
    assert not model.refused


@pytest.mark.parametrize("wire", WIRES)
async def test_tool_without_parameters_is_taken_by_everybody(wire: str):
    request = replace(QUESTION, tools=(ToolSpec("now", "", {"type": "object"}),))
    with ScriptedModel() as model:
        _, error = await ask(make_gateway(wire, model.url), request)
    assert error is None


async def test_reasoning_goes_back_as_it_came():
    reply = [Think("Hm", signature="sig"), ThinkUnseen("data"), UseTool("add", {"a": 1}, id="t1")]
    with ScriptedModel(reply) as model:
        events, _ = await ask(make_gateway("anthropic", model.url))
        seen, signed, hidden, use = events[:4]
        assert isinstance(seen, ThoughtDelta)
        assert isinstance(signed, ThoughtSigned)
        assert isinstance(hidden, ThoughtSigned)
        assert isinstance(use, ToolUse)
        blocks = (
            ThinkingBlock(seen.text, signed.signature),
            ThinkingBlock("", hidden.signature),
            ToolUseBlock(use.id, use.name, use.arguments),
        )
        answer = ModelMessage("user", (ToolResultBlock(use.id, "2", is_error=False),))
        request = replace(QUESTION, messages=(*QUESTION.messages, ModelMessage("assistant", blocks), answer))
        _, error = await ask(make_gateway("anthropic", model.url), request)
    assert error is None
    assert model.requests[1].body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "data"},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
    ]


@pytest.mark.parametrize("wire", WIRES)
async def test_id_that_the_turn_has_already_is_replaced(wire: str):
    reply = [UseTool("add", id="t1"), UseTool("add", id="t2"), UseTool("add", id="t2")]
    with ScriptedModel(reply) as model:
        events, _ = await ask(make_gateway(wire, model.url), AFTER_A_TOOL)
    ids = [event.id for event in events if isinstance(event, ToolUse)]
    assert len({"t1", *ids}) == 4
    assert ids[1] == "t2"


@pytest.mark.parametrize("wire", WIRES)
async def test_same_request_gives_the_same_bytes(wire: str):
    with ScriptedModel() as model:
        for _ in range(2):
            await ask(make_gateway(wire, model.url), AFTER_A_TOOL)
    assert model.requests[0].content == model.requests[1].content


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("{}", "/v1/chat/completions"),
        ("{}/", "/v1/chat/completions"),
        ("{}/v1", "/v1/chat/completions"),
        ("{}/v1/", "/v1/chat/completions"),
        ("{}/api/v1", "/api/v1/chat/completions"),
        ("{}/v1beta/openai/", "/v1beta/openai/chat/completions"),
    ],
)
async def test_openai_address_may_be_a_bare_host_or_have_a_path(url: str, path: str):
    with ScriptedModel(otherwise=[Say("x")]) as model:
        _, error = await ask(make_gateway("openai", url.format(model.url)))
    assert model.paths == [path]
    assert (error is None) == (path == "/v1/chat/completions")


@pytest.mark.parametrize("url", ["{}", "{}/", "{}/v1", " {}/v1/ "])
async def test_anthropic_address_may_have_the_version(url: str):
    with ScriptedModel() as model:
        _, error = await ask(make_gateway("anthropic", url.format(model.url)))
    assert error is None


@pytest.mark.parametrize("kind", [AnthropicGateway, OpenAIGateway])
@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://x",
        "http://",
        "http://[::1",
        "http://a:b:c",
        "http://user:secret@host",
        "http://host/v1?key=secret",
    ],
)
def test_address_that_is_none_is_refused(kind: type[AnthropicGateway | OpenAIGateway], url: str):
    with pytest.raises(SettingsError) as refused:
        kind(url, KEY, "m")
    assert "secret" not in str(refused.value)


async def test_gateway_says_what_it_is():
    gateways: list[Gateway] = [
        AnthropicGateway("http://x", "", "m"),
        OpenAIGateway("http://x", "", "m"),
        OpenAIGateway("http://x", "", "m", context_tokens=4096),
    ]
    assert [gateway.name for gateway in gateways] == ["anthropic", "openai", "openai"]
    assert [gateway.context_tokens for gateway in gateways] == [200_000, 128_000, 4096]
    for gateway in gateways:
        assert (gateway.default_model, gateway.supports_tools) == ("m", True)
        await gateway.close()


async def test_server_that_knows_no_stream_options_is_asked_without_them_from_then_on():
    refusal = Status(400, "Unrecognized request argument supplied: stream_options")
    with ScriptedModel([refusal], [Say("a")], [Say("b")]) as model:
        gateway = make_gateway("openai", model.url)
        for _ in range(2):
            assert [event async for event in gateway.stream(QUESTION)]
        await gateway.close()
    assert ["stream_options" in request.body for request in model.requests] == [True, False, False]


async def test_server_that_refuses_for_the_same_reason_again_is_not_asked_for_ever():
    with ScriptedModel(otherwise=[Status(400, "stream_options")]) as model:
        _, error = await ask(make_gateway("openai", model.url))
    assert error
    assert len(model.requests) == 2


async def test_server_that_wants_the_new_name_of_the_limit_gets_it():
    refusal = Status(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with ScriptedModel([refusal]) as model:
        _, error = await ask(make_gateway("openai", model.url), replace(QUESTION, max_tokens=5))
    assert error is None
    assert model.requests[1].body["max_completion_tokens"] == 5
    assert "max_tokens" not in model.requests[1].body


def test_bodies_follow_the_rules():
    assert check_anthropic_request(anthropic_body(AFTER_A_TOOL, "m")) == []
    assert check_openai_request(openai_body(AFTER_A_TOOL, "m", Habits())) == []
