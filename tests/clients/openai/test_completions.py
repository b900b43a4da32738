"""`/v1/chat/completions` with the `openai` package."""

import base64
from typing import Any

import openai as sdk
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from tests.clients.openai.conftest import agent, client_of, token
from tests.clients.openai.test_responses import PNG, note, stored
from tests.http.api.test_budgets import PRICED, with_prices
from tests.talking import Talk, talking
from threadkeep import Settings
from threadkeep.testing import (
    Fail,
    Gate,
    Say,
    ScriptedModel,
    Status,
    Stop,
    Think,
    ToolServer,
    Usage,
    UseTool,
    Wait,
    until,
)

HI: Any = [{"role": "user", "content": "Hi"}]
LOCATE: Any = {
    "type": "function",
    "function": {
        "name": "locate",
        "description": "Where the user is.",
        "parameters": {"type": "object", "properties": {"near": {"type": "string"}}},
    },
}


async def spent(talk: Talk) -> list[tuple[str, int, int]]:
    """What the ledger has of alice: for each purpose, its calls and their input tokens."""
    rows = (await talk.client.get("/api/usage?by=purpose")).json()["items"]
    return [(it["purpose"], it["calls"], it["inputTokens"]) for it in rows]


async def test_reply_is_streamed_and_only_its_cost_is_stored(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    await agent(talk)
    model.script([Think("Hm."), Say("Hel"), Say("lo."), Usage(12, 3)])
    stream = await openai.chat.completions.create(
        model="Advisor", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert len({(it.id, it.created, it.model) for it in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(text_of(it) for it in chunks) == "Hello."
    thoughts = [getattr(it.choices[0].delta, "reasoning_content", None) for it in chunks[:-1]]
    assert "Hm." in thoughts
    assert [it.choices[0].finish_reason for it in chunks[:-1]][-1] == "stop"
    usage = chunks[-1].usage
    assert not chunks[-1].choices and usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (12, 3)
    assert (await talk.client.get("/api/conversations")).json()["items"] == []
    assert await spent(talk) == [("completion", 1, 12)]


def text_of(chunk: ChatCompletionChunk) -> str:
    """The piece of text in a chunk."""
    return chunk.choices[0].delta.content or "" if chunk.choices else ""


async def test_model_gets_the_history_as_given(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    made = {"name": "Advisor", "systemPrompt": "You advise.", "settings": {"temperature": 1, "maxTokens": 50}}
    assert (await talk.client.post("/api/agents", json=made)).status_code == 201
    model.script([Think("Hm."), Say("Cut o"), Stop("max_tokens")])
    messages: Any = [
        {"role": "developer", "content": "Be brief. " + "x" * 30_000},
        {"role": "assistant", "content": "Welcome."},
        {"role": "user", "content": [{"type": "text", "text": "One"}]},
        {"role": "assistant", "content": "1."},
        {"role": "user", "content": "Two"},
        {"role": "user", "content": "or three?"},
    ]
    reply = await openai.chat.completions.create(
        model="advisor", messages=messages, temperature=0.5, max_tokens=80, seed=1, user="someone"
    )
    (choice,) = reply.choices
    assert (choice.message.content, choice.finish_reason) == ("Cut o", "length")
    assert getattr(choice.message, "reasoning_content", None) == "Hm."
    assert (reply.object, reply.model) == ("chat.completion", "advisor")
    body = model.requests[0].body
    system, *said = body["messages"]
    assert system["content"].index("You advise.") < system["content"].index("Be brief.")
    assert system["content"].endswith("x" * 30_000)
    assert [it["role"] for it in said] == ["user", "assistant", "user", "assistant", "user"]
    assert "Two" in str(said[-1]) and "or three?" in str(said[-1])
    assert (
        body["temperature"],
        body["max_completion_tokens" if "max_tokens" not in body else "max_tokens"],
    ) == (
        0.5,
        50,
    )


async def test_tools_of_the_agent_run_unseen_and_those_that_ask_are_denied(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    def look(where: str) -> str:
        "Looks."
        return f"tea at {where}"

    with ToolServer(note, look) as server:
        settings: Any = {
            "mcpServers": {"desk": {**server.settings, "scope": "conversation"}},
            "tools": {"desk.note": {"access": "ask"}},
            "askUser": True,
        }
        await agent(talk, **settings)
        model.script(
            [
                Say("Let me."),
                UseTool("desk__note", {"text": "tea"}, "c1"),
                UseTool("desk__look", {"where": "five"}, "c2"),
            ],
            [Say("Well.")],
        )
        reply = await openai.chat.completions.create(model="Advisor", messages=HI)
    message = reply.choices[0].message
    assert (message.content, message.tool_calls) == ("Let me.\n\nWell.", None)
    offered = {it["function"]["name"] for it in model.requests[0].body["tools"]}
    assert offered == {"desk__note", "desk__look", "promptx_action", "promptx_recall"}
    heard = {it["tool_call_id"]: it["content"] for it in model.requests[1].body["messages"][-2:]}
    assert "nobody can give it here" in heard["c1"] and "tea at five" in heard["c2"]
    assert not model.refused


@pytest.mark.parametrize("how", ["streamed", "whole"])
async def test_function_of_the_client(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel, how: str):
    await agent(talk)
    near = "x" * 20_000  # too large for a row
    calls = [UseTool("locate", {"near": near}, "c1"), UseTool("locate", {"near": "b"}, "c2")]
    model.script([Say("Where?"), *calls], [Say("Oslo.")])
    messages = list(HI)
    if how == "streamed":
        async with openai.chat.completions.stream(model="Advisor", messages=messages, tools=[LOCATE]) as live:
            reply: Any = await live.get_final_completion()
    else:
        reply = await openai.chat.completions.create(model="Advisor", messages=messages, tools=[LOCATE])
    (choice,) = reply.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Where?")
    assert [it.id for it in choice.message.tool_calls] == ["c1", "c2"]
    function = choice.message.tool_calls[0].function
    assert (function.name, function.arguments) == ("locate", f'{{"near":"{near}"}}')
    messages += [
        choice.message.to_dict(),
        {"role": "tool", "tool_call_id": "c2", "content": "Bergen"},
        {"role": "tool", "tool_call_id": "c1", "content": "Oslo"},
    ]
    reply = await openai.chat.completions.create(model="Advisor", messages=messages, tools=[LOCATE])
    assert reply.choices[0].message.content == "Oslo."
    asked, called, *results = model.requests[1].body["messages"][1:]
    assert (asked["content"], called["content"]) == ("Hi", "Where?")
    assert [it["id"] for it in called["tool_calls"]] == ["c1", "c2"]
    assert [(it["tool_call_id"], it["content"]) for it in results] == [("c1", "Oslo"), ("c2", "Bergen")]
    assert not model.refused
    none = await openai.chat.completions.create(
        model="Advisor", messages=messages, tools=[LOCATE], tool_choice="none"
    )
    assert none.choices[0].finish_reason == "stop"
    assert "locate" not in str(model.requests[2].body["tools"])


async def test_images_and_files(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    uploaded = await openai.files.create(file=("more.txt", b"Milk first."), purpose="user_data")
    data = base64.b64encode(b"Tea at five.").decode()
    parts: Any = [
        {"type": "text", "text": "When?"},
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
        },
        {"type": "file", "file": {"filename": "tea.txt", "file_data": f"data:text/plain;base64,{data}"}},
        {"type": "file", "file": {"file_id": uploaded.id}},
    ]
    await openai.chat.completions.create(model="Advisor", messages=[{"role": "user", "content": parts}])
    asked = str(model.requests[0].body["messages"][-1])
    assert "Tea at five." in asked and "Milk first." in asked and "When?" in asked
    assert "image" in asked
    elsewhere: Any = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    with pytest.raises(sdk.BadRequestError, match="doesn't fetch"):
        await openai.chat.completions.create(
            model="Advisor", messages=[{"role": "user", "content": elsewhere}]
        )
    async with client_of(talk, token("bob")) as bob:
        with pytest.raises(sdk.NotFoundError):
            await bob.chat.completions.create(
                model="Advisor", messages=[{"role": "user", "content": parts[-1:]}]
            )


CALL: Any = {"id": "c1", "type": "function", "function": {"name": "locate", "arguments": "{}"}}
RESULT: Any = {"role": "tool", "tool_call_id": "c1", "content": "Oslo"}
REFUSED: list[tuple[Any, str]] = [
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "wizard", "content": "Hi"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": ""}]}, "content"),
    ({"messages": [*HI, RESULT]}, "messages[1].tool_call_id"),
    ({"messages": [RESULT]}, "messages[0].tool_call_id"),
    ({"messages": [*HI, {"role": "assistant", "tool_calls": [CALL]}, *HI]}, "messages[1].tool_calls"),
    ({"messages": [*HI, {"role": "assistant", "content": "Hello."}]}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content"),
    ({"n": 2}, "n"),
    ({"logprobs": True}, "logprobs"),
    ({"modalities": ["text", "audio"]}, "modalities"),
    ({"response_format": {"type": "grammar"}}, "response_format"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
    ({"stop": ["."]}, "stop"),
    ({"tools": [LOCATE], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools"),
    ({"temperature": 3}, "temperature"),
]


async def test_odd_histories(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    """An image without a word, a call without arguments or question, and instructions at the end."""
    await agent(talk)
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    look: Any = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    call = {"id": "c1", "type": "function", "function": {"name": "locate", "arguments": ""}}
    called: Any = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Oslo"},
    ]
    brief: Any = {"role": "system", "content": "Be brief."}
    histories: Any = ([look], [look, *called], called, [look, *called, brief], [*HI, brief])
    for messages in histories:
        replied = await openai.chat.completions.create(model="Advisor", messages=messages, tools=[LOCATE])
        assert replied.choices[0].message.content == "OK."
    sent = model.requests[1].body["messages"]
    (use,) = next(it["tool_calls"] for it in sent if it.get("tool_calls"))
    assert use["function"]["arguments"] == "{}"
    unstored: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]
    response = await openai.responses.create(model="Advisor", input=unstored, store=False)
    assert response.output_text == "OK."
    wrong: Any = ({"max_output_tokens": -1}, {"temperature": 3})
    for it in wrong:
        with pytest.raises(sdk.BadRequestError):
            await openai.responses.create(model="Advisor", input="Hi", store=False, **it)
    assert not model.refused


async def test_ten_thousand_messages(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    roles = ("user", "assistant")
    messages: Any = [{"role": roles[at % 2], "content": f"{at} {'word ' * 20}"} for at in range(10_001)]
    reply = await openai.chat.completions.create(model="Advisor", messages=messages)
    assert reply.choices[0].message.content == "OK."
    sent = model.requests[0].body["messages"][1:]
    assert sent[-1]["content"].startswith("10000 ") and sent[0]["role"] == "user"
    assert len(sent) < len(messages)


async def test_errors_are_the_sdks_classes(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    create = openai.chat.completions.create
    with pytest.raises(sdk.NotFoundError) as unknown:
        await create(model="Nobody", messages=HI)
    assert unknown.value.code == "model_not_found"
    for changes, param in REFUSED:
        fields: Any = {"model": "Advisor", "messages": HI, **changes}
        with pytest.raises(sdk.BadRequestError) as refused:
            await create(**fields)
        assert refused.value.param == param
    assert not model.requests
    model.script([Say("One "), Fail("Overloaded.", "invalid_request_error")])
    said = ""
    with pytest.raises(sdk.APIError) as broken:
        async for chunk in await create(model="Advisor", messages=HI, stream=True):
            said += text_of(chunk)
    assert said == "One " and "Overloaded." in broken.value.message
    model.script([Status(400, "No such thing.")])
    with pytest.raises(sdk.InternalServerError) as failed:
        await create(model="Advisor", messages=HI)
    assert failed.value.response.headers["x-should-retry"] == "false"
    key = {"name": "reader", "scopes": ["read"]}
    reading = (await talk.client.post("/api/keys", json=key)).json()["key"]
    elsewhere = await agent(talk, "Other")
    key = {"name": "talker", "scopes": ["chat"], "agents": [elsewhere]}
    narrow = (await talk.client.post("/api/keys", json=key)).json()["key"]
    async with client_of(talk, reading) as reader, client_of(talk, narrow) as talker:
        with pytest.raises(sdk.PermissionDeniedError):
            await reader.chat.completions.create(model="Advisor", messages=HI)
        with pytest.raises(sdk.NotFoundError):
            await talker.chat.completions.create(model="Advisor", messages=HI)
        await talker.chat.completions.create(model="Other", messages=HI)


@pytest.mark.parametrize("streams", [True, False])
async def test_leaving_ends_the_model_call_which_is_charged(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel, streams: bool
):
    await agent(talk)
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    if streams:
        stream: Any = await openai.chat.completions.create(model="Advisor", messages=HI, stream=True)
        async for chunk in stream:
            if text_of(chunk):
                break
        await stream.close()
    else:
        with pytest.raises(sdk.APITimeoutError):
            await openai.with_options(timeout=1).chat.completions.create(model="Advisor", messages=HI)
    assert await model.requests[0].until_over() == "disconnected"

    async def is_charged() -> bool:
        return [it[:2] for it in await spent(talk)] == [("completion", 1)]

    await until(is_charged)


async def test_shutdown_breaks_the_stream(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    gate = Gate()
    model.script([Say("One "), Wait(gate)])
    stream = await openai.chat.completions.create(model="Advisor", messages=HI, stream=True)
    said = ""
    with pytest.raises(sdk.APIConnectionError):
        async for chunk in stream:
            said += text_of(chunk)
            if said == "One ":
                await (await talk.app.services()).drain(0)
    assert said == "One "
    with pytest.raises(sdk.InternalServerError):
        await openai.chat.completions.create(model="Advisor", messages=HI)


async def test_conversation_is_stored(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk, askUser=True)
    made = await openai.conversations.create(extra_body={"model": "Advisor"})
    extra = {"conversation": made.id}
    model.script([Say("One.")], [Say("Where?"), UseTool("locate", {}, "c1")], [Say("Oslo.")])
    create = openai.chat.completions.create
    first = await create(model="Advisor", messages=HI, extra_body=extra)
    messages: Any = [{"role": "user", "content": "Not mine"}, {"role": "assistant", "content": "I owe you."}]
    messages += [{"role": "user", "content": "Two"}]
    async with openai.chat.completions.stream(
        model="Advisor", messages=messages, tools=[LOCATE], extra_body=extra
    ) as live:
        second = await live.get_final_completion()
    assert second.choices[0].finish_reason == "tool_calls"
    messages += [{"role": "assistant", "tool_calls": [CALL]}, RESULT]
    third = await create(model="Advisor", messages=messages, tools=[LOCATE], extra_body=extra)
    assert third.choices[0].message.content == "Oslo."
    assert len({first.id, second.id, third.id}) == 3
    assert await stored(talk) == ["Hi", "One.", "Two", "Where?\n\nOslo."]
    model.script([UseTool("ask_user", {"question": "Milk?"}, "c2")], [Say("With milk.")])
    asking = await create(model="Advisor", messages=[{"role": "user", "content": "Tea"}], extra_body=extra)
    assert (asking.choices[0].message.content, asking.choices[0].finish_reason) == ("Milk?", "stop")
    answered = await create(model="Advisor", messages=[{"role": "user", "content": "Yes"}], extra_body=extra)
    assert answered.choices[0].message.content == "With milk."
    async with client_of(talk, token("bob")) as bob:
        with pytest.raises(sdk.NotFoundError):
            await bob.chat.completions.create(model="Advisor", messages=HI, extra_body=extra)


async def test_response_that_is_not_stored(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    function: Any = {"type": "function", "strict": False, **LOCATE["function"]}
    with ToolServer(note) as server:
        settings: Any = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        await agent(talk, **settings)
        asks = UseTool("desk__note", {"text": "tea"}, "c0")
        model.script([asks], [Say("Where?"), UseTool("locate", {}, "c1")], [Say("Oslo.")])
        items: Any = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Where am I?"},
        ]
        async with openai.responses.stream(
            model="Advisor", input=items, tools=[function], store=False
        ) as stream:
            first = await stream.get_final_response()
    assert [it.type for it in first.output] == ["mcp_call", "message", "function_call"]
    assert (first.status, first.to_dict()["store"]) == ("completed", False)
    items += [it.to_dict() for it in first.output]
    items += [{"type": "function_call_output", "call_id": "c1", "output": "Oslo"}]
    second = await openai.responses.create(model="Advisor", input=items, tools=[function], store=False)
    assert second.output_text == "Oslo."
    said = model.requests[-1].body["messages"]
    assert said[0]["content"].endswith("Be brief.")
    assert [it["role"] for it in said[1:]] == ["user", "assistant", "user", "assistant", "tool"]
    assert (await talk.client.get("/api/conversations")).json()["items"] == []
    with pytest.raises(sdk.NotFoundError):
        await openai.responses.retrieve(second.id)
    refused: list[Any] = [
        {"input": items[:-1]},
        {"input": items[-1:]},
        {"input": items[:3]},
        {"input": "Hi", "background": True},
        {"input": "Hi", "previous_response_id": first.id},
    ]
    for fields in refused:
        with pytest.raises(sdk.BadRequestError):
            await openai.responses.create(model="Advisor", store=False, **fields)


async def test_user_has_one_completion_at_a_time(talk_settings: Settings, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One."), Wait(gate)])
    async with talking(with_prices(talk_settings, model, user_running_turns=1)) as talk:
        talk.client.headers["authorization"] = f"Bearer {token('alice')}"
        assert (await talk.client.post("/api/agents", json={"name": "Advisor", **PRICED})).status_code == 201
        async with client_of(talk, token("alice")) as openai:
            create = openai.chat.completions.create
            stream = await create(model="Advisor", messages=HI, stream=True)
            with pytest.raises(sdk.RateLimitError) as busy:
                await create(model="Advisor", messages=HI)
            assert busy.value.code == "rate_limit_exceeded"
            gate.open()
            assert "".join([text_of(it) async for it in stream]) == "One."


async def test_completion_over_budget(talk_settings: Settings, model: ScriptedModel):
    model.script([Say("One."), Usage(5, 100)])
    async with talking(with_prices(talk_settings, model, user_budget_month="0.01")) as talk:
        talk.client.headers["authorization"] = f"Bearer {token('alice')}"
        assert (await talk.client.post("/api/agents", json={"name": "Advisor", **PRICED})).status_code == 201
        async with client_of(talk, token("alice")) as openai:
            create = openai.chat.completions.create
            assert (await create(model="Advisor", messages=HI)).choices[0].message.content == "One."
            with pytest.raises(sdk.RateLimitError) as used_up:
                await create(model="Advisor", messages=HI, stream=True)
            assert used_up.value.code == "insufficient_quota"
            assert used_up.value.response.headers["x-should-retry"] == "false"
        assert len(model.requests) == 1
