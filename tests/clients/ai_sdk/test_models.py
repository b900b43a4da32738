"""The packages `@ai-sdk/openai` and `@ai-sdk/openai-compatible`, in node, with `turn.openai()`."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import node
from tests.clients.ai_sdk.driver import PACKAGES, Json
from tests.clients.node import Driver
from threadkeep.agents import Turn, agent
from threadkeep.testing import RunningApp, Say, ScriptedModel, Status, Usage, UseTool, running_app
from threadkeep.wire.messages import MessageView

providers = pytest.mark.parametrize("provider", ["openai", "openai-compatible"])
OSLO = '{"name": "Oslo", "people": 700000}'


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    async with node.driving(Path(__file__).with_name("models.mjs"), PACKAGES) as driver:
        yield driver


class Programs:
    """An agent whose step runs a command in node, and what that has returned."""

    def __init__(self, driver: Driver, **options: Any) -> None:
        self._driver = driver
        self._options = options
        self.returned: list[Json] = []

    async def ask(self, command: str, model: ScriptedModel) -> MessageView:
        """The reply of the turn in which the command ran."""

        @agent(visibility="public")
        async def talks(turn: Turn) -> str:
            await turn.step(lambda: self._run(turn, command), name="node", effect="idempotent")
            return "Done."

        async with running_app(model, agents=[talks], listens=True) as app:
            return await asked(app)

    async def _run(self, turn: Turn, command: str) -> Json:
        access = turn.openai()
        given = {"baseURL": access["base_url"], "apiKey": access["api_key"], **self._options}
        self.returned.append(await self._driver.do(command, prompt="How warm is it?", **given))
        return self.returned[-1]


async def asked(app: RunningApp) -> MessageView:
    (id_,) = [it.id async for it in app.client.agents() if it.engine.kind == "code"]
    conversation = await app.client.create_conversation(id_, title="Test")
    return await app.client.ask(conversation.id, "Hello")


@providers
@pytest.mark.parametrize("command", ["generate", "stream"])
async def test_a_program_in_node_streams_text_and_runs_its_own_tools(
    driver: Driver, model: ScriptedModel, provider: str, command: str
):
    programs = Programs(driver, provider=provider)
    model.script(
        [Say("Let me see. "), UseTool("temperature", {"city": "Oslo"}), Usage(9, 1)],
        [Say("It is "), Say("4 degrees."), Usage(12, 3)],
    )
    reply = await programs.ask(command, model)
    (returned,) = programs.returned
    assert returned["text"] == "It is 4 degrees."
    assert returned["calls"] == [["temperature", 4]]
    assert (returned["finishReason"], returned["tokens"]) == ("stop", 25)
    if command == "stream":
        assert len(returned["pieces"]) > 1
        assert "".join(returned["pieces"]) == "Let me see. It is 4 degrees."
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (21, 4)


@providers
@pytest.mark.parametrize("command", ["object", "streamObject"])
async def test_a_structured_output_that_does_not_match_is_repaired_before_node_sees_it(
    driver: Driver, model: ScriptedModel, provider: str, command: str
):
    programs = Programs(driver, provider=provider)
    model.script([Say('{"name": "Oslo"}')], [Say(OSLO)])
    await programs.ask(command, model)
    assert programs.returned == [{"name": "Oslo", "people": 700_000}]


@providers
async def test_a_program_in_node_reads_why_a_call_failed(driver: Driver, model: ScriptedModel, provider: str):
    programs = Programs(driver, provider=provider)
    model.script([Status(400, "The tools are wrong.")])
    await programs.ask("fail", model)
    (returned,) = programs.returned
    assert "The tools are wrong." in returned["message"]
    assert returned["status"] == 502
