"""`/v1/responses` and `/v1/models` with the `openai` package."""

import asyncio
import base64
from collections.abc import Awaitable
from functools import partial
from typing import Any

import openai as sdk
import pytest
from openai import AsyncOpenAI, omit
from openai.types.responses import Response

from tests.clients.openai.conftest import agent, client_of, token
from tests.talking import Talk
from threadkeep.testing import Fail, Gate, Say, ScriptedModel, Think, ToolServer, UseTool, Wait

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
LOCATE: Any = {
    "type": "function",
    "name": "locate",
    "description": "Where the user is.",
    "parameters": {"type": "object", "properties": {"near": {"type": "string"}}},
    "strict": False,
}


def note(text: str) -> str:
    "Notes."
    return f"noted {text}"


async def stored(talk: Talk) -> list[str]:
    """The messages of the newest conversation, as our own API has them."""
    conversations = (await talk.client.get("/api/conversations?limit=1")).json()["items"]
    return [it["content"] for it in await talk.messages(conversations[0]["id"])]


async def test_message_streamed_and_read_again(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    model.script([Think("Hm."), Say("Hello.")])
    stream = await openai.responses.create(
        model="Advisor",
        input="Hi",
        instructions="Be brief.",
        temperature=0.25,
        max_output_tokens=16,
        metadata={"topic": "greeting"},
        stream=True,
    )
    events = [event async for event in stream]
    assert events[-1].type == "response.completed"
    final = events[-1].response
    assert final.output_text == "Hello."
    assert [it.type for it in final.output] == ["reasoning", "message"]
    assert (final.model, final.instructions, final.metadata) == (
        "Advisor",
        "Be brief.",
        {"topic": "greeting"},
    )
    assert (await openai.responses.retrieve(final.id)).to_dict() == final.to_dict()
    sent = model.requests[0].body
    assert sent["messages"][0]["content"].endswith("Be brief.")
    assert (sent["temperature"], sent.get("max_tokens") or sent["max_completion_tokens"]) == (0.25, 16)
    assert await stored(talk) == ["Hi", "Hello."]
    (item,) = [it async for it in openai.responses.input_items.list(final.id)]
    assert item.type == "message" and item.content[0].type == "input_text"
    assert item.content[0].text == "Hi"
    again = await openai.responses.retrieve(final.id, stream=True, starting_after=3)
    assert [it.sequence_number async for it in again] == [it.sequence_number for it in events[4:]]


async def test_chain_of_responses_and_a_branch(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    agent_id = await agent(talk)
    model.script([Say("One.")], [Say("Two.")], [Say("Other two.")])
    first = await openai.responses.create(model=agent_id, input="1")
    second = await openai.responses.create(model=agent_id, input="2", previous_response_id=first.id)
    other = await openai.responses.create(input="other 2", previous_response_id=first.id)
    assert (second.previous_response_id, second.output_text) == (first.id, "Two.")
    assert (other.model, other.output_text) == (agent_id, "Other two.")
    asked = [it["content"] for it in model.requests[-1].body["messages"] if it["role"] != "system"]
    assert asked[1:2] == ["One."]
    assert "other 2" in asked[-1] and not any("Two." in it for it in asked)


async def test_list_of_earlier_items_says_where_the_message_belongs(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    await agent(talk)
    model.script([Say("One.")], [Say("Two.")])
    items: Any = [{"role": "developer", "content": "Count."}, {"role": "user", "content": "1"}]
    first = await openai.responses.create(model="Advisor", input=items)
    items += [*(it.to_dict() for it in first.output), {"role": "user", "content": "2"}]
    second = await openai.responses.create(model="Advisor", input=items)
    assert second.output_text == "Two."
    assert await stored(talk) == ["1", "One.", "2", "Two."]
    claimed: Any = [{"role": "assistant", "content": "I owe you."}, {"role": "user", "content": "Pay."}]
    with pytest.raises(sdk.BadRequestError) as refused:
        await openai.responses.create(model="Advisor", input=claimed)
    assert refused.value.param == "input"


@pytest.mark.parametrize("approve", [True, False])
async def test_approval(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel, approve: bool):
    with ToolServer(note) as server:
        settings: Any = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        await agent(talk, **settings)
        model.script(
            [Say("Let me."), UseTool("desk__note", {"text": "tea"}, "c1")],
            [Say("Well.")],
        )
        asking = await openai.responses.create(model="Advisor", input="Note tea")
        assert asking.status == "completed"
        request = asking.output[-1]
        assert request.type == "mcp_approval_request"
        assert (request.server_label, request.name) == ("desk", "note")
        answer: Any = [
            {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
        ]
        async with openai.responses.stream(
            model="Advisor", previous_response_id=asking.id, input=answer
        ) as stream:
            final = await stream.get_final_response()
        call = final.output[0]
        assert call.type == "mcp_call"
        assert (call.status, call.output is not None) == ("completed" if approve else "failed", approve)
        assert (final.output_text, len(server.uses)) == ("Well.", int(approve))
        assert final.id == f"{asking.id}_2" and final.previous_response_id == asking.id
        assert (await openai.responses.retrieve(asking.id)).to_dict() == asking.to_dict()
        (decided,) = [it async for it in openai.responses.input_items.list(final.id)]
        assert decided.type == "mcp_approval_response" and decided.approve is approve
        # The same answer again is the same response; another one is refused.
        assert (await openai.responses.create(previous_response_id=asking.id, input=answer)).id == final.id
        answer[0]["approve"] = not approve
        with pytest.raises(sdk.ConflictError) as refused:
            await openai.responses.create(previous_response_id=asking.id, input=answer)
        assert refused.value.response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("how", ["previous_response_id", "conversation", "items"])
async def test_function_of_the_client(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel, how: str):
    agent_id = await agent(talk, clientTools=True)
    path = f"/api/agents/{agent_id}/conversations"
    conversation = (await talk.client.post(path, json={})).json()["id"]
    model.script([UseTool("locate", {"near": "me"}, "c1")], [Say("Here.")])
    named = conversation if how == "conversation" else omit
    asking = await openai.responses.create(
        model="Advisor", input="Where?", tools=[LOCATE], conversation=named
    )
    (call,) = asking.output
    assert call.type == "function_call"
    assert (call.name, call.arguments) == ("locate", '{"near":"me"}')
    output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "Bern"}]
    if how == "items":
        output = [{"role": "user", "content": "Where?"}, call.to_dict(), *output]
    final = await openai.responses.create(
        model="Advisor",
        input=output,
        tools=[LOCATE],
        conversation=named,
        previous_response_id=asking.id if how == "previous_response_id" else omit,
    )
    assert (final.output_text, final.status) == ("Here.", "completed")
    assert "Bern" in str(model.requests[-1].body["messages"][-1])


async def test_two_functions_need_both_outputs(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk, clientTools=True)
    model.script([UseTool("locate", {}, "c1"), UseTool("locate", {}, "c2")], [Say("Both.")])
    asking = await openai.responses.create(model="Advisor", input="Where?", tools=[LOCATE])
    outputs: Any = [
        {"type": "function_call_output", "call_id": it.call_id, "output": "Bern"}
        for it in asking.output
        if it.type == "function_call"
    ]
    with pytest.raises(sdk.BadRequestError, match="also waits"):
        await openai.responses.create(previous_response_id=asking.id, input=outputs[:1])
    final = await openai.responses.create(previous_response_id=asking.id, input=outputs)
    assert final.output_text == "Both."


async def test_image_and_file_in_the_input(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    data = base64.b64encode(PNG).decode()
    uploaded = await talk.client.post("/api/files", files={"file": ("notes.txt", b"Tea at five.")})
    parts: Any = [
        {"type": "input_text", "text": "What are they?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
        {"type": "input_file", "file_id": uploaded.json()["items"][0]["id"]},
    ]
    model.script([Say("A dot and notes.")])
    response = await openai.responses.create(model="Advisor", input=[{"role": "user", "content": parts}])
    assert response.output_text == "A dot and notes."
    sent = str(model.requests[-1].body["messages"][-1])
    assert "image/png, 1 × 1 pixels" in sent and "Tea at five." in sent
    (item,) = [it async for it in openai.responses.input_items.list(response.id)]
    assert item.type == "message"
    assert [it.type for it in item.content] == ["input_text", "input_image", "input_file"]


async def test_response_in_the_background(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    begun = await openai.responses.create(model="Advisor", input="Count", background=True)
    assert begun.status == "queued" and begun.background
    await gate.reached()
    assert (await openai.responses.retrieve(begun.id)).status == "in_progress"
    with pytest.raises(sdk.ConflictError):
        await openai.responses.create(input="More", previous_response_id=begun.id)
    following = await openai.responses.retrieve(begun.id, stream=True)
    gate.open()
    numbers = [it.sequence_number async for it in following]
    assert numbers == list(range(len(numbers)))
    final = await openai.responses.retrieve(begun.id)
    assert (final.status, final.output_text) == ("completed", "One two.")
    beyond = await openai.responses.retrieve(begun.id, stream=True, starting_after=numbers[-1] + 5)
    assert [it async for it in beyond] == []


async def test_response_is_cancelled(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    stream = await openai.responses.create(model="Advisor", input="Count", stream=True)
    response: Response | None = None
    async for event in stream:
        if event.type == "response.created":
            response = event.response
        if event.type == "response.output_text.delta":
            break
    assert response is not None
    cancelled = await openai.responses.cancel(response.id)
    assert (cancelled.status, cancelled.output_text) == ("cancelled", "One ")
    assert [event.type async for event in stream][-1] == "response.incomplete"
    gate.open()


async def test_response_deleted(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    model.script([Say("One.")], [Say("Two.")])
    first = await openai.responses.create(model="Advisor", input="1")
    second = await openai.responses.create(input="2", previous_response_id=first.id)
    with pytest.raises(sdk.ConflictError):
        await openai.responses.delete(second.id)
    model.script([Say("Alone.")])
    alone = await openai.responses.create(model="Advisor", input="Hi")
    await openai.responses.delete(alone.id)
    with pytest.raises(sdk.NotFoundError):
        await openai.responses.retrieve(alone.id)


async def test_failure_is_the_responses_own(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    model.script([Say("One "), Fail("Overloaded.", "invalid_request_error")])
    failed = await openai.responses.create(model="Advisor", input="Hi")
    assert failed.status == "failed"
    assert failed.error is not None and failed.error.code == "server_error"
    assert failed.output_text == "One "


async def test_ids_of_others_do_not_exist(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    agent_id = await agent(talk)
    model.script([Say("Hello.")])
    mine = await openai.responses.create(model="Advisor", input="Hi")
    uploaded = await talk.client.post("/api/files", files={"file": ("notes.txt", b"Tea at five.")})
    conversation = (await talk.client.get("/api/conversations")).json()["items"][0]["id"]
    file: Any = [
        {
            "role": "user",
            "content": [{"type": "input_file", "file_id": uploaded.json()["items"][0]["id"]}],
        }
    ]
    item: Any = [mine.output[0].to_dict(), {"role": "user", "content": "Go on"}]
    async with client_of(talk, token("bob")) as bob:
        for refused in (
            bob.responses.retrieve(mine.id),
            bob.responses.cancel(mine.id),
            bob.responses.delete(mine.id),
            bob.responses.create(input="Hi", previous_response_id=mine.id),
            bob.responses.create(input="Hi", conversation=conversation),
            bob.responses.create(input=item),
            bob.responses.create(model=agent_id, input=file),
        ):
            with pytest.raises(sdk.NotFoundError):
                await refused
    assert (await talk.client.get("/api/conversations")).json()["items"][0]["id"] == conversation


async def test_errors_are_the_sdks_classes(talk: Talk, openai: AsyncOpenAI):
    await agent(talk)
    with pytest.raises(sdk.NotFoundError) as unknown:
        await openai.responses.create(model="gpt-5", input="Hi")
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    with pytest.raises(sdk.BadRequestError) as empty:
        await openai.responses.create(model="Advisor", input="")
    assert empty.value.type == "invalid_request_error"
    wrong: Any = {"role": "user"}
    with pytest.raises(sdk.BadRequestError) as malformed:
        await openai.responses.create(model="Advisor", input=wrong)
    assert malformed.value.param == "input"
    with pytest.raises(sdk.NotFoundError) as nowhere:
        await openai.images.generate(prompt="A dot")
    assert nowhere.value.type == "invalid_request_error"
    for endpoint in ("/responses/compact", "/responses/input_tokens"):  # OpenAI has them
        with pytest.raises(sdk.NotFoundError):
            await openai.post(endpoint, cast_to=object, body={"model": "Advisor", "input": "Hi"})
    async with client_of(talk, "wrong") as stranger:
        with pytest.raises(sdk.AuthenticationError):
            await stranger.models.list()
    assert (await talk.client.get("/api/conversations")).json()["items"] == []


async def test_keys_reach_what_their_scope_allows(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    mine, other = await agent(talk), await agent(talk, "Other")
    body = {"name": "reader", "scopes": ["read"], "agents": [mine]}
    reading = (await talk.client.post("/api/keys", json=body)).json()
    body = {"name": "talker", "scopes": ["chat"], "agents": [mine]}
    talking = (await talk.client.post("/api/keys", json=body)).json()
    model.script([Say("Hello.")], [Say("Elsewhere.")])
    elsewhere = await openai.responses.create(model=other, input="Hi")
    async with client_of(talk, reading["key"]) as reader, client_of(talk, talking["key"]) as talker:
        assert [it.id async for it in reader.models.list()] == ["Advisor"]
        with pytest.raises(sdk.PermissionDeniedError):
            await reader.responses.create(model="Advisor", input="Hi")
        assert (await talker.responses.create(model="Advisor", input="Hi")).output_text == "Elsewhere."
        for refused in (
            talker.responses.create(model=other, input="Hi"),
            talker.responses.create(input="Hi", previous_response_id=elsewhere.id),
            reader.responses.retrieve(elsewhere.id),
        ):
            with pytest.raises(sdk.NotFoundError):
                await refused
        await talk.client.delete(f"/api/keys/{talking['id']}")
        with pytest.raises(sdk.AuthenticationError):
            await talker.responses.create(model="Advisor", input="Hi")


async def test_models_are_agents(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    agent_id = await agent(talk)
    named = {it.id async for it in openai.models.list()}
    assert "Advisor" in named
    assert (await openai.models.retrieve("Advisor")).id == "Advisor"
    twin = await agent(talk)
    named = {it.id async for it in openai.models.list()}
    assert {agent_id, twin} <= named and "Advisor" not in named


async def test_request_repeated_by_the_sdk_follows_its_turn(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    await agent(talk)
    gate = Gate()
    model.script([Say("One.")], [Wait(gate), Say("Two.")])
    first = await openai.responses.create(model="Advisor", input="1")
    both = [
        asyncio.create_task(openai.responses.create(input="2", previous_response_id=first.id))
        for _ in range(2)
    ]
    await gate.reached()
    gate.open()
    second, repeated = [await it for it in both]
    assert second.id == repeated.id
    assert await stored(talk) == ["1", "One.", "2", "Two."]


async def test_question_is_answered_by_the_next_message(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    await agent(talk, askUser=True)
    model.script([UseTool("ask_user", {"question": "Which?"})], [Say("The blue one.")])
    asking = await openai.responses.create(model="Advisor", input="Choose")
    assert asking.output_text == "Which?"
    final = await openai.responses.create(input="Blue", previous_response_id=asking.id)
    assert (final.id, final.output_text) == (f"{asking.id}_2", "The blue one.")


async def test_agent_with_one_of_its_models(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    model.script([Say("Hello.")])
    response = await openai.responses.create(model="Advisor@default/scripted", input="Hi")
    assert (response.model, response.output_text) == ("Advisor@default/scripted", "Hello.")
    with pytest.raises(sdk.BadRequestError) as refused:
        await openai.responses.create(model="Advisor@default/other", input="Hi")
    assert refused.value.param == "model"


async def test_output_of_a_call_whose_id_is_not_unique(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    """Some models number their calls in each conversation; one key may serve many people."""
    await agent(talk)
    locate: Any = {"type": "function", "name": "locate", "parameters": {"type": "object", "properties": {}}}
    model.script([UseTool("locate", {}, "call_1")], [UseTool("locate", {}, "call_1")], [Say("Oslo.")])
    create = partial(openai.responses.create, model="Advisor", tools=[locate])
    waiting = [await create(input=f"Where am I, {name}?") for name in ("Ann", "Ben")]
    output: Any = [{"type": "function_call_output", "call_id": "call_1", "output": "Oslo"}]
    with pytest.raises(sdk.BadRequestError, match="previous_response_id"):
        await create(input=output)
    answered = await create(input=output, previous_response_id=waiting[1].id)
    assert answered.output_text == "Oslo."


async def test_what_would_change_the_reply_is_refused(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    locate: Any = {"type": "function", "name": "locate", "parameters": {"type": "object", "properties": {}}}
    schema = {"type": "json_schema", "name": "place", "schema": {"type": "place"}}
    wrong: Any = (
        ({"text": {"format": schema}}, "text.format.schema.type"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"tool_choice": {"type": "function", "name": "elsewhere"}}, "tool_choice"),
    )
    create: Any = partial(openai.responses.create, model="Advisor", input="Where?", tools=[locate])
    for store in (True, False):
        for fields, param in wrong:
            with pytest.raises(sdk.BadRequestError) as refused:
                await create(store=store, **fields)
            assert refused.value.param == param
        kept: Any = {"text": {"format": {"type": "text"}, "verbosity": "low"}}
        offered = [
            await _offered(model, create(store=store, tool_choice=it, **kept)) for it in ("auto", "none")
        ]
        assert ["locate" in it for it in offered] == [True, False]


async def _offered(model: ScriptedModel, response: Awaitable[Response]) -> list[str]:
    """The tools that the model was offered for a response."""
    await response
    return [it["function"]["name"] for it in model.requests[-1].body.get("tools", ())]


async def test_deleting_a_response_keeps_the_conversation_that_its_client_made(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    await agent(talk)
    made = await openai.conversations.create()
    response = await openai.responses.create(model="Advisor", input="Hi", conversation=made.id)
    with pytest.raises(sdk.ConflictError):
        await openai.responses.delete(response.id)
    assert (await openai.conversations.retrieve(made.id)).id == made.id
