"""What goes out, as either provider wants it."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from tests.gateways.asking import (
    ADD,
    AFTER_A_TOOL,
    MODEL,
    QUESTION,
    WIRES,
    ask,
    make_gateway,
    text_of,
)
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.model import ListedModel
from threadkeep.domain.money import FREE
from threadkeep.engine.model_call import ModelCall
from threadkeep.gateways.anthropic import ANTHROPIC, anthropic_body
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.endpoint import Endpoint, Taken
from threadkeep.gateways.openai import OPENAI, openai_body
from threadkeep.gateways.outputs import is_strict
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.gateways.quirks import ProviderQuirks
from threadkeep.gateways.responses import RESPONSES, responses_body
from threadkeep.ports.gateway import (
    Block,
    DocumentBlock,
    Gateway,
    ImageBlock,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
    ToolUseBlock,
)
from threadkeep.testing import (
    Fail,
    Gate,
    Say,
    ScriptedModel,
    Status,
    Think,
    ThinkUnseen,
    UseTool,
    Wait,
)
from threadkeep.testing.provider_rules import (
    check_anthropic,
    check_openai,
    check_responses,
)


def test_anthropic_gets_the_system_prompt_apart_and_tools_as_blocks():
    assert anthropic_body(AFTER_A_TOOL, "default") == {
        "model": MODEL,
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "You are brief."}],
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
    assert openai_body(AFTER_A_TOOL, "default") == {
        "model": MODEL,
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


def test_responses_gets_instructions_apart_and_everything_else_as_items():
    function = {"name": "add", "description": "Adds numbers.", "parameters": ADD.input_schema}
    assert responses_body(AFTER_A_TOOL, "default") == {
        "model": MODEL,
        "instructions": "You are brief.",
        "input": [
            {"type": "message", "role": "user", "content": "你好, how are you?"},
            {"type": "message", "role": "assistant", "content": "One moment."},
            {"type": "function_call", "call_id": "t1", "name": "add", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": "t1", "output": "Error: no numbers"},
        ],
        "tools": [{"type": "function", **function, "strict": False}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }


def test_openai_gets_at_most_128_calls_a_message_each_with_its_results():
    ids = [f"t{number}" for number in range(300)]
    uses = (ToolUseBlock(id_, "add", {}) for id_ in ids)
    results = (ToolResultBlock(id_, id_, is_error=False) for id_ in ids)
    asked = ModelMessage("assistant", (TextBlock("All at once."), *uses))
    heard = ModelMessage("user", (*results, TextBlock("And?")))
    body = openai_body(
        replace(QUESTION, messages=(*QUESTION.messages, asked, heard)), "default", ProviderQuirks()
    )
    check_openai(body)
    said = [it for it in body["messages"] if it["role"] == "assistant"]
    assert [len(it["tool_calls"]) for it in said] == [128, 128, 44]
    assert [it["content"] for it in said] == ["All at once.", None, None]
    answered = [it for it in body["messages"] if it["role"] == "tool"]
    assert [it["tool_call_id"] for it in answered] == [it["content"] for it in answered] == ids
    assert body["messages"][-1] == {"role": "user", "content": "And?"}


IMAGE = b"\x89PNG\r\n\x1a\nand so on"
WITH_IMAGE = ModelRequest(
    model=MODEL,
    system="",
    messages=(
        ModelMessage("user", (ImageBlock("i1", "dog.png", 400), TextBlock("What is this?"))),
        ModelMessage("assistant", (TextBlock("A dog."),)),
        ModelMessage("user", (TextBlock("Sure?"),)),
    ),
    contents={"i1": IMAGE},
)


def test_anthropic_gets_images_as_blocks():
    body = anthropic_body(WITH_IMAGE, "anthropic/m")
    image, question = body["messages"][0]["content"]
    data = b64encode(IMAGE).decode()
    assert image == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    assert question == {"type": "text", "text": "What is this?"}


def test_openai_gets_images_as_parts_and_plain_messages_as_text():
    body = openai_body(WITH_IMAGE, "m")
    url = f"data:image/png;base64,{b64encode(IMAGE).decode()}"
    assert [message["content"] for message in body["messages"]] == [
        [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is this?"}],
        "A dog.",
        "Sure?",
    ]


PDF = b"%PDF-1.7 and so on"


def test_responses_gets_files_as_parts_and_a_tool_s_images_in_its_result():
    used = ModelMessage("assistant", (ToolUseBlock("t1", "draw", {}),))
    seen = ModelMessage(
        "user",
        (
            ToolResultBlock("t1", "", is_error=False),
            ImageBlock("i1", "drawn.png", 400, tool_use_id="t1"),
            TextBlock("Like this:"),
            DocumentBlock("d1", "plan.pdf", 400),
            ImageBlock("i1", "dog.png", 400),
        ),
    )
    request = replace(WITH_IMAGE, messages=(used, seen), contents={"i1": IMAGE, "d1": PDF})
    url = f"data:image/png;base64,{b64encode(IMAGE).decode()}"
    image = {"type": "input_image", "image_url": url, "detail": "auto"}
    data = f"data:application/pdf;base64,{b64encode(PDF).decode()}"
    assert responses_body(request, "responses/m")["input"][1:] == [
        {
            "type": "function_call_output",
            "call_id": "t1",
            "output": [{"type": "input_text", "text": "[Images]"}, image],
        },
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Like this:"},
                {"type": "input_file", "filename": "plan.pdf", "file_data": data},
                image,
            ],
        },
    ]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4-5", True),
        ("gpt-4o-mini", True),
        ("qwen2.5-vl-7b", True),
        ("o3", True),
        ("o3-mini", False),
        ("o3-mini-2025-01-31", False),
        ("deepseek-flash", True),
        ("deepseek-v4-pro", False),
    ],
)
def test_families_of_models_that_take_images_are_known_and_the_operator_knows_better(
    model: str, expected: bool
):
    settings: dict[Taken, bool] = {"auto": expected, "on": True, "off": False}
    for setting, taken in settings.items():
        gateway = ProviderGateway(OPENAI, Endpoint(url="http://x", images=setting))
        assert (gateway.describe(model).images is not None) is taken
    said = {model: ListedModel(name=model, takes_images=not expected)}
    gateway = ProviderGateway(OPENAI, Endpoint(url="http://x", models=said))
    assert (gateway.describe(model).images is not None) is not expected


def test_what_the_agent_sets_is_sent():
    request = replace(QUESTION, model="other", temperature=1.5, max_tokens=77)
    body = anthropic_body(request, "default")
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("other", 1.0, 77)
    body = openai_body(request, "default")
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("other", 1.5, 77)
    body = responses_body(request, "default")
    assert (body["model"], body["temperature"], body["max_output_tokens"]) == ("other", 1.5, 77)
    assert responses_body(replace(request, max_tokens=1), "m")["max_output_tokens"] == 16  # the API's least


@pytest.mark.parametrize("wire", WIRES)
async def test_request_without_extras_has_none(wire: str):
    bare = ModelRequest(MODEL, "", QUESTION.messages)
    with ScriptedModel() as model:
        _, error = await ask(make_gateway(wire, model.url), bare)
    assert error is None
    body = model.requests[0].body
    assert not {"system", "instructions", "tools", "temperature"} & body.keys()
    assert [message["role"] for message in body.get("messages") or body["input"]] == ["user"]


SIGNER = f"anthropic/{MODEL}"

ODD: tuple[tuple[Block, ...], ...] = (
    (ToolUseBlock("t1", "made up: 工具!" * 30, MappingProxyType({"a": MappingProxyType({"b": 1})})),),
    (ToolUseBlock("t1", "", {}), ToolUseBlock("t2", "add", {})),
    (
        ThinkingBlock("Hm.", "signed", SIGNER),
        ThinkingBlock("", "redacted_thinking:data", SIGNER),
        ToolUseBlock("t1", "add", {}),
    ),
    (ThinkingBlock("Hm.", "signed", "elsewhere/m"), ToolUseBlock("t1", "add", {})),
    (ThinkingBlock("Hm.", "", SIGNER), TextBlock(" \n"), ToolUseBlock("t1", "add", {})),
    (ToolUseBlock("t1", "add", {}), TextBlock("and"), ThinkingBlock("Hm.", "s", SIGNER), TextBlock("so")),
    (ThinkingBlock("Hm.", "signed", SIGNER),),
    (ThinkingBlock("Hm.", "signed", "elsewhere/m"), TextBlock("")),
)


@pytest.mark.parametrize("said", ODD)
@pytest.mark.parametrize("wire", WIRES)
async def test_odd_replies_of_a_model_can_be_sent_back(wire: str, said: tuple[Block, ...]):
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
            ThinkingBlock(seen.text, signed.signature, SIGNER),
            ThinkingBlock("", hidden.signature, SIGNER),
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


async def test_encrypted_reasoning_goes_back_in_its_order_until_the_provider_refuses_it():
    """Each reasoning item, with or without a summary, before what followed it."""
    reply = [
        Think("Hm", signature="one"),
        Say("Look:"),
        ThinkUnseen("two"),
        UseTool("add", {"a": 1}, id="t1"),
        UseTool("add", {"a": 2}, id="t2"),
    ]
    broken = "The encrypted content gAAA… could not be verified."
    with ScriptedModel(reply, [Say("3.")], [Status(400, broken)]) as model:
        gateway = make_gateway("responses", model.url)
        first = [event async for event in gateway.stream(QUESTION)]
        request = replace(QUESTION, messages=(*QUESTION.messages, *exchange(first, "responses")))
        for _ in range(3):
            assert text_of([event async for event in gateway.stream(request)]) in ("3.", "OK.")
        await gateway.close()
    assert not model.refused

    def sent(number: int) -> list[tuple[str, ...]]:
        names = {"reasoning": "encrypted_content", "message": "content", "function_call": "call_id"}
        items = model.requests[number].body["input"][1:]
        return [(it["type"], it[names[it["type"]]]) for it in items if it["type"] in names]

    said = [("message", "Look:"), ("function_call", "t1"), ("function_call", "t2")]
    with_reasoning = [("reasoning", "one"), said[0], ("reasoning", "two"), *said[1:]]
    assert [sent(number) for number in range(1, 5)] == [with_reasoning, with_reasoning, said, said]
    assert model.requests[1].body["input"][1]["summary"] == [{"type": "summary_text", "text": "Hm"}]
    assert ["include" in it.body for it in model.requests] == [True, True, True, False, False]


def exchange(events: list[ModelEvent], gateway: str) -> tuple[ModelMessage, ModelMessage]:
    """A model call and its results, as the engine sends them back."""
    call = ModelCall(f"{gateway}/{MODEL}")
    for event in events:
        match event:
            case TextDelta(text):
                call.add_text(text)
            case ThoughtDelta(text):
                call.add_thought(text)
            case ThoughtSigned(signature):
                call.end_thought(signature)
            case ToolUse():
                call.add_tool_use(event)
            case _:
                pass
    finished = call.finished(1)
    results = [(ToolResultBlock(use.id, "2", is_error=False),) for use in finished.tool_uses]
    return finished.with_results(results, as_blocks=True)


@pytest.mark.parametrize(
    ("refusal", "field"),
    [
        ("Unsupported parameter: 'reasoning.summary' is not supported with this model.", "reasoning"),
        ("Your organization must be verified to generate reasoning summaries.", "reasoning"),
        ("Encrypted content is not supported with this model.", "include"),
    ],
)
async def test_model_that_does_not_reason_is_asked_without_it_from_then_on(refusal: str, field: str):
    with ScriptedModel([Status(400, refusal)]) as model:
        gateway = make_gateway("responses", model.url)
        for _ in range(2):
            assert text_of([event async for event in gateway.stream(QUESTION)]) == "OK."
        await gateway.close()
    assert [field in it.body for it in model.requests] == [True, False, False]


async def test_model_that_calls_tools_only_without_reasoning_does_not_reason_over_chat_completions():
    refusal = "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions."
    with ScriptedModel([Status(400, refusal)]) as model:
        gateway = make_gateway("openai", model.url)
        for request in (QUESTION, QUESTION, replace(QUESTION, tools=())):
            assert text_of([event async for event in gateway.stream(request)]) == "OK."
        await gateway.close()
    assert [it.body.get("reasoning_effort") for it in model.requests] == [None, "none", "none", None]


def conversation(*said: Block) -> ModelRequest:
    """A history with a reply in it, and a further question."""
    messages = (*QUESTION.messages, ModelMessage("assistant", said), asked("And?"))
    return replace(QUESTION, messages=messages)


def asked(text: str) -> ModelMessage:
    return ModelMessage("user", (TextBlock(text),))


@pytest.mark.parametrize("signed_by", ["openai/m", "responses/m", "anthropic/other", "anthropic/m2", "m", ""])
def test_reasoning_goes_back_only_to_the_gateway_and_model_that_signed_it(signed_by: str):
    thought, text = ThinkingBlock("Hm.", "signed", signed_by), {"type": "text", "text": "Yes."}
    request = conversation(thought, TextBlock("Yes."), ThinkingBlock("So.", "signed", "anthropic/m"))
    own = {"type": "thinking", "thinking": "So.", "signature": "signed"}
    assert anthropic_body(request, "anthropic/m")["messages"][1]["content"] == [text, own]
    assert anthropic_body(request, "anthropic/m3")["messages"][1]["content"] == [text]
    said = openai_body(request, "anthropic/m")["messages"]
    assert [message["content"] for message in said[1:]] == ["你好, how are you?", "Yes.", "And?"]
    items = [item["type"] for item in responses_body(request, "responses/m")["input"]]
    assert items == ["message", *["reasoning"] * (signed_by == "responses/m"), "message", "message"]


def test_blocks_keep_their_order_on_the_wire():
    request = conversation(
        TextBlock("First."),
        ThinkingBlock("Hm.", "s1", "anthropic/m"),
        TextBlock("Then."),
        ThinkingBlock("", "redacted_thinking:data", "anthropic/m"),
        TextBlock("Last."),
    )
    assert anthropic_body(request, "anthropic/m")["messages"][1]["content"] == [
        {"type": "text", "text": "First."},
        {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
        {"type": "text", "text": "Then."},
        {"type": "redacted_thinking", "data": "data"},
        {"type": "text", "text": "Last."},
    ]


def test_questions_around_a_reply_of_which_nothing_is_left_become_one():
    request = conversation(ThinkingBlock("Hm.", "signed", "elsewhere/m"), TextBlock(" "))
    (message,) = anthropic_body(request, "anthropic/m")["messages"]
    assert [block["text"] for block in message["content"]] == ["你好, how are you?", "And?"]
    _, message = openai_body(request, "m")["messages"]
    assert message == {"role": "user", "content": "你好, how are you?\n\nAnd?"}


@pytest.mark.parametrize("wire", WIRES)
async def test_same_request_gives_the_same_bytes(wire: str):
    with ScriptedModel() as model:
        for _ in range(2):
            await ask(make_gateway(wire, model.url), AFTER_A_TOOL)
    assert model.requests[0].content == model.requests[1].content


def test_longer_history_begins_with_the_same_bytes():
    talk = replace(LONG_TALK, cache_key=None)
    shorter = replace(talk, messages=talk.messages[:5])
    for before, after in (
        (encode(anthropic_body(shorter, "anthropic/m")), encode(anthropic_body(talk, "anthropic/m"))),
        (
            encode(openai_body(shorter, "m")),
            encode(openai_body(talk, "m")),
        ),
        (encode(responses_body(shorter, "responses/m")), encode(responses_body(talk, "responses/m"))),
    ):
        assert after.startswith(before.removesuffix(b"]}"))


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


@pytest.mark.parametrize("wire", WIRES)
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
def test_address_that_is_none_is_refused(wire: str, url: str):
    with pytest.raises(SettingsError) as refused:
        make_gateway(wire, url)
    assert "secret" not in str(refused.value)


async def test_gateway_says_what_it_is():
    small = ListedModel(name="m", context_tokens=4096, supports_tools=False, price=FREE)
    gateways = [
        ProviderGateway(ANTHROPIC, Endpoint(url="http://x"), name="default"),
        ProviderGateway(OPENAI, Endpoint(url="http://x"), name="home"),
        ProviderGateway(RESPONSES, Endpoint(url="http://x"), name="new"),
        ProviderGateway(OPENAI, Endpoint(url="http://x", models={"m": small}), name="work"),
    ]
    models = [gateway.describe("m") for gateway in gateways]
    assert [model.id for model in models] == ["default/m", "home/m", "new/m", "work/m"]
    assert [model.context_tokens for model in models] == [200_000, 128_000, 128_000, 4096]
    assert [model.supports_tools for model in models] == [True, True, True, False]
    assert [model.price for model in models] == [None, None, None, FREE]
    # As before there were several gateways, so that stored reasoning stays valid.
    assert [gateway.signer("m") for gateway in gateways] == ["anthropic/m", "home/m", "new/m", "work/m"]
    for gateway in gateways:
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


async def test_refusal_in_the_middle_of_a_reply_is_not_asked_again():
    fail = Fail("stream_options", "invalid_request_error")
    with ScriptedModel([Say("Hel"), fail]) as model:
        events, error = await ask(make_gateway("openai", model.url))
    assert error
    assert (text_of(events), len(model.requests)) == ("Hel", 1)


@pytest.mark.parametrize("wire", WIRES)
async def test_model_that_takes_no_temperature_is_asked_without_it_from_then_on(wire: str):
    refusal = Status(400, "`temperature` is deprecated for this model.")
    with ScriptedModel([refusal]) as model:
        gateway = make_gateway(wire, model.url)
        for name in (MODEL, MODEL, "other"):
            request = replace(QUESTION, temperature=0.5, model=name)
            assert [event async for event in gateway.stream(request)]
        await gateway.close()
    assert ["temperature" in request.body for request in model.requests] == [True, False, False, True]


# Prompt caches.


EPHEMERAL = {"type": "ephemeral"}
LONG_TALK = replace(
    AFTER_A_TOOL,
    messages=(
        *AFTER_A_TOOL.messages,
        ModelMessage("assistant", (TextBlock("Three."),)),
        asked("And four?"),
        ModelMessage(
            "assistant",
            (ToolUseBlock("t2", "add", {}), TextBlock("and"), ToolUseBlock("t3", "add", {})),
        ),
        ModelMessage(
            "user",
            (ToolResultBlock("t2", "4", is_error=False), ToolResultBlock("t3", "", is_error=False)),
        ),
    ),
    tools=(ADD, replace(ADD, name="now")),
    cache_key="c1",
)


def marked(body: Mapping[str, Any]) -> list[str]:
    """Where the marks are."""
    places = {"tools": body.get("tools", []), "system": body.get("system", [])}
    places |= {f"messages.{at}": message["content"] for at, message in enumerate(body["messages"])}
    return [
        f"{place}.{at}"
        for place, blocks in places.items()
        for at, block in enumerate(blocks)
        if block.get("cache_control") == EPHEMERAL
    ]


def test_anthropic_is_told_what_to_keep_for_the_next_request():
    assert marked(anthropic_body(LONG_TALK, "anthropic/m")) == [
        "tools.1",
        "system.0",
        "messages.4.0",
        "messages.6.1",
    ]


def test_each_request_is_also_marked_where_the_one_before_it_ended():
    ends: list[str] = []
    for length in (1, 3, 5, 7):
        body = anthropic_body(replace(LONG_TALK, messages=LONG_TALK.messages[:length]), "m")
        *before, end = marked(body)
        assert before[2:] == ends[-1:]
        ends.append(end)


def test_nothing_that_is_missing_is_marked():
    assert marked(anthropic_body(replace(QUESTION, tools=(), system="", cache_key="c1"), "m")) == [
        "messages.0.0"
    ]


def test_single_request_is_not_kept():
    request = replace(LONG_TALK, cache_key=None)
    assert marked(anthropic_body(request, "anthropic/m")) == []
    assert "prompt_cache_key" not in openai_body(request, "m")


def test_marks_do_not_change_what_is_sent():
    bare = anthropic_body(replace(LONG_TALK, cache_key=None), "m")
    body = anthropic_body(LONG_TALK, "anthropic/m")
    for blocks in (body["tools"], body["system"], *(message["content"] for message in body["messages"])):
        for block in blocks:
            block.pop("cache_control", None)
    assert body == bare


@pytest.mark.parametrize("wire", ["openai", "responses"])
async def test_openai_is_told_which_requests_begin_alike(wire: str):
    with ScriptedModel() as model:
        _, error = await ask(make_gateway(wire, model.url), LONG_TALK)
    assert error is None
    assert model.requests[0].body["prompt_cache_key"] == "c1"


REFUSALS = {
    "anthropic": "messages.4.content.0.text.cache_control: Extra inputs are not permitted",
    "openai": "Unrecognized request argument supplied: prompt_cache_key",
    "responses": "Unknown parameter: 'prompt_cache_key'.",
}


@pytest.mark.parametrize("wire", WIRES)
async def test_server_that_knows_no_prompt_cache_is_asked_without_it_from_then_on(wire: str):
    with ScriptedModel([Status(400, REFUSALS[wire])]) as model:
        gateway = make_gateway(wire, model.url)
        for name in (MODEL, MODEL, "other"):
            events = [event async for event in gateway.stream(replace(LONG_TALK, model=name))]
            assert text_of(events) == "OK."
        await gateway.close()
    asks = [b"cache_control" in it.content or b"prompt_cache_key" in it.content for it in model.requests]
    assert asks == [True, False, False, True]


@pytest.mark.parametrize("wire", WIRES)
async def test_requests_that_are_refused_at_the_same_time_are_all_asked_again(wire: str):
    gates = [Gate() for _ in range(3)]
    refusal = Status(400, REFUSALS[wire])
    with ScriptedModel(*([Wait(gate), refusal] for gate in gates)) as model:
        gateway = make_gateway(wire, model.url)
        asking = [asyncio.create_task(collect(gateway)) for _ in gates]
        for gate in gates:
            await gate.reached()
        for gate in gates:
            gate.open()
        assert [text_of(events) for events in await asyncio.gather(*asking)] == ["OK."] * 3
        await gateway.close()


async def collect(gateway: Gateway) -> list[ModelEvent]:
    return [event async for event in gateway.stream(LONG_TALK)]


STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/City"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["city", "tags"],
    "additionalProperties": False,
    "$defs": {
        "City": {
            "type": "object",
            "properties": {"name": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: list[dict[str, Any]] = [STRICT, {"type": "object"}, {"type": "array", "items": {}}]
SHAPES = [
    QUESTION,
    AFTER_A_TOOL,
    LONG_TALK,
    WITH_IMAGE,
    replace(LONG_TALK, max_tokens=5, model="other"),
    ModelRequest(MODEL, "", QUESTION.messages),
    replace(QUESTION, tools=(ToolSpec("now", "", {"type": "object"}),)),
    *(replace(QUESTION, output=it) for it in SCHEMAS),
    *(conversation(*said) for said in ODD if not any(isinstance(it, ToolUseBlock) for it in said)),
]


@pytest.mark.parametrize("request_", SHAPES)
def test_bodies_follow_the_rules(request_: ModelRequest):
    body: object = json.loads(encode(anthropic_body(request_, MODEL)))
    check_anthropic(body)
    for quirks in (ProviderQuirks(), ProviderQuirks(takes_max_tokens=False)):
        body = json.loads(encode(openai_body(request_, MODEL, quirks)))
        check_openai(body)
    for quirks in (ProviderQuirks(), ProviderQuirks(takes_encrypted_reasoning=False)):
        check_responses(json.loads(encode(responses_body(request_, MODEL, quirks))))


def test_only_schemas_that_every_provider_takes_are_strict():
    assert is_strict(STRICT) and not is_strict(STRICT, may_refer=False)
    for loose in (
        {"type": "array", "items": {"type": "string"}},
        {**STRICT, "additionalProperties": True},
        {**STRICT, "required": ["city"]},
        {**STRICT, "properties": {**STRICT["properties"], "tags": {"type": "array", "maxItems": 9}}},
        {**STRICT, "$defs": {"City": {"type": "object"}}},
    ):
        assert not is_strict(loose), loose
    incomplete: dict[str, Any] = {**STRICT, "required": []}
    sent = [
        openai_body(replace(QUESTION, output=it), MODEL)["response_format"] for it in (STRICT, incomplete)
    ]
    assert [it["json_schema"]["strict"] for it in sent] == [True, False]
    assert "output_config" not in anthropic_body(replace(QUESTION, output=incomplete), MODEL)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_server_that_refuses_the_schema_is_asked_without_it(wire: str):
    """Once more for a schema that it refuses; never again with any if it knows none."""
    asked = replace(QUESTION, tools=(), output=STRICT)
    with ScriptedModel() as model:
        gateway = make_gateway(wire, model.url)
        names = {"anthropic": "output_config", "openai": "response_format", "responses": "text"}
        for refused in (
            f"Invalid schema for {names[wire]}.",
            f"Unknown parameter: {names[wire]}.format",
            None,
        ):
            model.script(*([[Status(400, refused)]] if refused else []), [Say("OK.")])
            assert text_of([it async for it in gateway.stream(asked)]) == "OK."
        sent = [names[wire] in it.body for it in model.requests]
        await gateway.close()
    assert sent == [True, False, True, False, False]
