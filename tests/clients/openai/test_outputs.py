"""Structured output for the `openai` package: `parse` of both APIs, stored or not, streamed or not."""

from typing import Any

import openai as sdk
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.clients.openai.conftest import agent
from tests.clients.openai.test_completions import HI, LOCATE
from tests.clients.openai.test_responses import note
from tests.conftest import ONLY_SQLITE
from tests.talking import Talk
from threadkeep.testing import Say, ScriptedModel, Stop, ToolServer, Usage, UseTool

pytestmark = ONLY_SQLITE


class City(BaseModel):
    """A city, as an application wants it."""

    name: str
    people: int


OSLO = '{"name": "Oslo", "people": 700000}'
FENCED = f"```json\n{OSLO}\n```"


async def asked(openai: AsyncOpenAI, how: str) -> City | None:
    """What the agent replies in one of the ways to ask it."""
    if how == "completion":
        whole = await openai.chat.completions.parse(model="Advisor", messages=HI, response_format=City)
        return whole.choices[0].message.parsed
    if how == "completion streamed":
        async with openai.chat.completions.stream(
            model="Advisor", messages=HI, response_format=City
        ) as events:
            return (await events.get_final_completion()).choices[0].message.parsed
    store = "stored" in how
    if "streamed" in how:
        async with openai.responses.stream(
            model="Advisor", input="Hi", text_format=City, store=store
        ) as stream:
            return (await stream.get_final_response()).output_parsed
    return (
        await openai.responses.parse(model="Advisor", input="Hi", text_format=City, store=store)
    ).output_parsed


WAYS = ["completion", "completion streamed", "response", "response streamed", "stored", "stored streamed"]


@pytest.mark.parametrize("how", WAYS)
async def test_a_reply_is_repaired_before_its_client_sees_it(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel, how: str
):
    await agent(talk)
    model.script([Say('{"name": '), Say('"Oslo"}'), Usage(5, 1)], [Say(FENCED), Usage(6, 2)])
    assert await asked(openai, how) == City(name="Oslo", people=700_000)
    first, again = model.requests
    assert "JSON schema" in str(first.body["messages"][0]["content"])
    assert "people" in str(again.body["messages"][-1]["content"])
    rows = (await talk.client.get("/api/usage?by=purpose")).json()["items"]
    assert [(it["calls"], it["inputTokens"]) for it in rows] == [(2, 11)]


@pytest.mark.parametrize("how", ["completion", "response", "stored streamed"])
async def test_a_reply_that_never_fits_is_an_error_that_says_why(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel, how: str
):
    await agent(talk)
    model.script([Say("Oslo.")], [Say('{"name": "Oslo", "people": "many"}')])
    if how == "response":  # it fails; it doesn't become an error
        assert await asked(openai, how) is None
    else:
        expected = "people" if how == "completion" else "response.completed"
        with pytest.raises((sdk.APIError, RuntimeError), match=expected):
            await asked(openai, how)
    assert len(model.requests) == 2
    conversations = (await talk.client.get("/api/conversations")).json()["items"]
    assert len(conversations) == ("stored" in how)
    for it in conversations:
        (_, reply) = (await talk.client.get(f"/api/conversations/{it['id']}/messages")).json()["items"]
        assert (reply["status"], reply["error"]["code"]) == ("FAILED", "OUTPUT_INVALID")
        assert "people" in reply["error"]["message"] and "output" not in reply


async def test_only_the_last_reply_is_checked_and_only_that_is_sent(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    """What the model says before it calls tools is no JSON: the page shows it, these clients don't."""
    model.script([Say("Let me look."), UseTool("web__note", {"text": "Oslo"})], [Say(OSLO)])
    with ToolServer(note) as server:
        await agent(talk, mcpServers={"web": {"url": server.url}})
        response = await openai.responses.parse(model="Advisor", input="Hi", text_format=City)
    assert response.output_parsed == City(name="Oslo", people=700_000)
    assert [it.type for it in response.output] == ["mcp_call", "message"]
    again = await openai.responses.retrieve(response.id)
    assert again.output_text == response.output_text == OSLO
    assert (
        again.text is not None and again.text.format is not None and again.text.format.type == "json_schema"
    )
    turns = (await talk.client.get("/api/conversations")).json()["items"]
    (_, reply) = (await talk.client.get(f"/api/conversations/{turns[0]['id']}/messages")).json()["items"]
    assert reply["output"] == {"name": "Oslo", "people": 700_000}
    assert reply["content"] == f"Let me look.\n\n{OSLO}"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_no_json_and_no_error(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel, stream: bool
):
    await agent(talk)
    model.script(*([[Say("I can't do that."), Stop("refusal")]] * 2))
    if stream:
        async with openai.chat.completions.stream(
            model="Advisor", messages=HI, response_format=City
        ) as events:
            completion = await events.get_final_completion()
        async with openai.responses.stream(model="Advisor", input="Hi", text_format=City) as answer:
            response = await answer.get_final_response()
    else:
        completion = await openai.chat.completions.parse(model="Advisor", messages=HI, response_format=City)
        response = await openai.responses.parse(model="Advisor", input="Hi", text_format=City)
    message = completion.choices[0].message
    assert (message.refusal, message.parsed) == ("I can't do that.", None)
    assert response.output_parsed is None
    assert "I can't do that." in response.model_dump_json()


async def test_json_object_is_any_object(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    model.script([Say("[1]")], [Say('{"a": 1}')])
    completion = await openai.chat.completions.create(
        model="Advisor", messages=HI, response_format={"type": "json_object"}
    )
    assert completion.choices[0].message.content == '{"a": 1}'


async def test_the_first_model_call_makes_the_call_that_the_client_wants(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    await agent(talk)
    flat: Any = {"type": "function", **LOCATE["function"]}
    named: Any = {"type": "function", "function": {"name": "locate"}}
    model.script(*([[UseTool("locate", {})]] * 3))
    create = openai.chat.completions.create
    await create(model="Advisor", messages=HI, tools=[LOCATE], tool_choice="required")
    await create(model="Advisor", messages=HI, tools=[LOCATE], tool_choice=named)
    respond = openai.responses.create
    waiting = await respond(
        model="Advisor", input="Where?", tools=[flat], tool_choice={"type": "function", "name": "locate"}
    )
    assert waiting.tool_choice.model_dump() == {"type": "function", "name": "locate"}  # type: ignore[union-attr]
    (call,) = [it for it in waiting.output if it.type == "function_call"]
    model.script([Say("Oslo.")])
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "Oslo"}
    await respond(input=[output], previous_response_id=waiting.id)
    sent = [it.body.get("tool_choice") for it in model.requests]
    assert sent == ["required", named, named, None]
