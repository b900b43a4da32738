"""What every framework's agent is given of its turn: the files of messages, and tools besides its own."""

import base64
from collections.abc import Iterator
from io import BytesIO
from typing import Any, cast

import pytest
from agents import Agent as SdkAgent
from agents import OpenAIResponsesModel
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from PIL import Image
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel

from tests.frameworks import langgraph_shop, openai_agents_shop, pydantic_ai_shop
from tests.frameworks.scripted import Asked, answering
from threadkeep.agents import Agent, ModelMessageItem, Turn, agent
from threadkeep.agents.langgraph import durable as durable_graph
from threadkeep.agents.langgraph.middleware import AddedTools
from threadkeep.agents.openai_agents import durable as durable_sdk_agent
from threadkeep.agents.pydantic_ai import durable as durable_pydantic_agent
from threadkeep.client import Client, TurnWaiting
from threadkeep.testing import CutOff, Say, ToolServer, UseTool, running_app

responses = OpenAIResponsesModel("scripted", openai_agents_shop.client)
FRAMEWORKS: dict[str, Agent] = {
    "pydantic-ai": durable_pydantic_agent(
        PydanticAgent(OpenAIChatModel("scripted", provider=pydantic_ai_shop.provider), name="looker"),
        files=("images", "pdfs"),
    ),
    "openai-agents": durable_sdk_agent(SdkAgent("Looker", model=responses), files=("images", "pdfs")),
    "langgraph": durable_graph(
        create_agent(langgraph_shop.model, [], middleware=[AddedTools()], name="looker"),
        files=("images", "pdfs"),
    ),
}
every_framework = pytest.mark.parametrize("served", FRAMEWORKS.values(), ids=FRAMEWORKS)


def picture() -> bytes:
    """A small PNG."""
    content = BytesIO()
    Image.effect_noise((64, 64), 90).convert("RGB").save(content, "PNG")
    return content.getvalue()


def addresses(value: Any) -> Iterator[str]:
    """The files in a request, as the addresses that hold them."""
    if isinstance(value, str) and value.startswith("data:"):
        yield value
    if isinstance(value, dict | list):
        whole = cast("Any", value)
        for it in whole.values() if isinstance(value, dict) else whole:
            yield from addresses(it)


async def conversation_with(client: Client) -> str:
    (agent_id,) = [it.id async for it in client.agents() if it.engine.key == "looker"]
    return (await client.create_conversation(agent_id, title="Pictures")).id


@every_framework
async def test_an_image_reaches_the_model_in_its_turn_and_in_later_ones_and_is_kept_once(served: Agent):
    async with running_app(agents=[served], check_agents=True) as app:
        conversation = await conversation_with(app.client)
        image = picture()
        with answering(lambda _: [Say("I see.")]) as asked:
            for text, files in (("Look.", [("cat.png", image)]), ("Again?", []), ("And now?", [])):
                started = await app.client.start(conversation, text, files=files)
                assert (await app.client.reply(started.turn_id)).content == "I see."
        seen = [list(addresses(it.body)) for it in asked]
        assert [len(it) for it in seen] == [1, 1, 1]
        kind, _, content = seen[0][0].removeprefix("data:").partition(";base64,")
        assert kind == "image/png"
        with Image.open(BytesIO(base64.b64decode(content))) as found:
            assert found.size == (64, 64)
        assert seen[0] == seen[1] == seen[2]
        assert len(asked[-1].users) == 3


@every_framework
async def test_a_model_that_takes_no_images_reads_their_names(served: Agent):
    plain = {
        "pydantic-ai": lambda: durable_pydantic_agent(
            PydanticAgent(OpenAIChatModel("scripted", provider=pydantic_ai_shop.provider), name="looker"),
            files=(),
        ),
        "openai-agents": lambda: durable_sdk_agent(SdkAgent("Looker", model=responses), files=()),
        "langgraph": lambda: durable_graph(create_agent(langgraph_shop.model, [], name="looker"), files=()),
    }
    (name,) = [it for it, made in FRAMEWORKS.items() if made is served]
    async with running_app(agents=[plain[name]()]) as app:
        conversation = await conversation_with(app.client)
        with answering(lambda _: [Say("No.")]) as asked:
            started = await app.client.start(conversation, "Look.", files=[("cat.png", picture())])
            await app.client.reply(started.turn_id)
    assert not [*addresses(asked[0].body)]
    assert "[File cat.png: image/png, 64 × 64 pixels" in asked[0].question


@every_framework
async def test_a_reply_that_breaks_off_is_no_reply(served: Agent):
    async with running_app(agents=[served]) as app:
        conversation = await conversation_with(app.client)
        with answering(lambda _: [Say("Half of it"), CutOff()]):
            started = await app.client.start(conversation, "Say it all.")
            await app.client.reply(started.turn_id)
        error = (await app.client.turn(started.turn_id)).error
    assert error is not None
    assert (error.code, error.retryable) == ("AGENTX_ERROR", True)


def forecast(city: str) -> str:
    """Says what the weather will be."""
    return f"Sunny in {city}."


@every_framework
async def test_a_server_that_an_admin_adds_is_offered_and_called_under_its_rules(served: Agent):
    def answer(said: Asked) -> Any:
        match said.results:
            case []:
                return [UseTool("weather__forecast", {"city": "Oslo"}, id="call_1")]
            case [found]:
                return [Say(found)]
            case _:
                raise AssertionError(said.results)

    with ToolServer(forecast) as server:
        async with running_app(agents=[served], agents_pause_after_s=0.05) as app:
            conversation = await conversation_with(app.client)
            (found,) = [it async for it in app.client.agents() if it.engine.key == "looker"]
            settings = {"mcpServers": {"weather": server.settings}, "tools": {"weather.*": {"access": "ask"}}}
            await app.client.update_agent(found.id, {"settings": settings})
            with answering(answer) as asked:
                started = await app.client.start(conversation, "How will it be in Oslo?")
                with pytest.raises(TurnWaiting) as waiting:
                    await app.client.reply(started.turn_id)
                assert server.uses == []
                (request,) = waiting.value.approvals
                await app.client.answer(request.turn_id, request.request_id, "allow")
                reply = await app.client.reply(started.turn_id)
        assert [it.arguments for it in server.uses] == [{"city": "Oslo"}]
    assert asked[0].tools == ["weather__forecast"], "Threadkeep's own tools are not offered"
    assert "Sunny in Oslo." in str(reply.content)
    assert [it.server for it in reply.tool_calls] == ["weather"]


async def test_a_function_reads_the_files_of_its_message_and_nobody_elses():
    read: list[Any] = []

    @agent
    async def reader(turn: Turn) -> str:
        context = await turn.history(as_context=True, files=("images",))
        read.append([await turn.content(it) for it in turn.files])
        read.append(await turn.content("01890000-0000-7000-8000-000000000000"))
        assert isinstance(context[-1], ModelMessageItem)
        return "Read."

    async with running_app(agents=[reader]) as app:
        (agent_id,) = [it.id async for it in app.client.agents() if it.engine.key == "reader"]
        conversation = await app.client.create_conversation(agent_id)
        started = await app.client.start(conversation.id, "Read it.", files=[("a.txt", b"Hello.")])
        assert (await app.client.reply(started.turn_id)).content == "Read."
    assert read == [[b"Hello."], None]
