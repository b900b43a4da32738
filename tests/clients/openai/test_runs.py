"""`turn.openai()`: the server's models for the SDKs that a program uses in its steps."""

import asyncio
import gc
from collections.abc import Awaitable
from typing import Any

import httpx
import openai as sdk
import pytest
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.conftest import TEMPLATE
from tests.postgres import Postgres
from threadkeep.agents import Agent, BlockingTurn, NotInAStep, Turn, agent
from threadkeep.domain.ledger import UsageFilter
from threadkeep.services.completions import run_replies
from threadkeep.settings.models import GatewayTable, ModelTable, PriceTable
from threadkeep.testing import (
    Gate,
    RunningApp,
    Say,
    ScriptedModel,
    Status,
    Usage,
    UseTool,
    Wait,
    running_app,
    until,
)
from threadkeep.wire.messages import MessageView

HI: Any = [{"role": "user", "content": "Hi"}]
LOCATE: Any = {
    "type": "function",
    "function": {
        "name": "locate",
        "description": "Where the user is.",
        "parameters": {"type": "object", "properties": {"near": {"type": "string"}}},
    },
}


async def asked(app: RunningApp, text: str = "Hello") -> MessageView:
    """What the program replies to a message."""
    (id_,) = [it.id async for it in app.client.agents() if it.engine.kind == "code"]
    conversation = await app.client.create_conversation(id_, title="Test")
    return await app.client.ask(conversation.id, text)


def of(function: Any, model: str | None = None) -> Agent:
    """An agent of a test's function."""
    return agent(visibility="public", model=model)(function)


async def test_a_step_asks_a_model_with_the_openai_package_unchanged(model: ScriptedModel):
    async def talks(turn: Turn) -> str:
        async def complete() -> str:
            async with AsyncOpenAI(**turn.openai()) as client:
                whole = await client.chat.completions.create(model="default", messages=HI)
                return f"{whole.choices[0].message.content} {whole.usage and whole.usage.total_tokens}"

        return await turn.step(complete, effect="idempotent")

    model.script([Say("Hello."), Usage(12, 3)])
    async with running_app(model, agents=[of(talks)], listens=True) as app:
        reply = await asked(app)
        assert reply.content == "Hello. 15"
        assert reply.usage is not None and reply.usage.input_tokens == 12


async def test_a_blocking_client_streams_text_and_calls_of_its_own_tools(model: ScriptedModel):
    def talks(turn: BlockingTurn) -> str:
        def stream() -> str:
            client = OpenAI(**turn.openai())
            said, called, ended = "", "", None
            messages: Any = [{"role": "system", "content": "Be kind."}, *HI]
            for chunk in client.chat.completions.create(
                model="scripted", messages=messages, tools=[LOCATE], stream=True
            ):
                for choice in chunk.choices:
                    said += choice.delta.content or ""
                    for call in choice.delta.tool_calls or ():
                        assert call.function is not None
                        called += f"{call.function.name}{call.function.arguments}"
                    ended = choice.finish_reason
            return f"{said}|{called}|{ended}"

        return turn.step(stream, effect="idempotent")

    model.script([Say("Let me "), Say("see."), UseTool("locate", {"near": "Oslo"})])
    async with running_app(model, agents=[of(talks)], listens=True) as app:
        assert (await asked(app)).content == 'Let me see.|locate{"near":"Oslo"}|tool_calls'
    (sent,) = model.requests
    assert sent.body["messages"][0] == {"role": "system", "content": "Be kind."}
    assert [it["function"]["name"] for it in sent.body["tools"]] == ["locate"]


async def test_outside_a_step_there_is_no_token(model: ScriptedModel):
    async def talks(turn: Turn) -> str:
        with pytest.raises(NotInAStep):
            turn.openai()
        return "No."

    async with running_app(model, agents=[of(talks)], listens=True) as app:
        assert (await asked(app)).content == "No."


class Leaked:
    """A program that hands its token out, and stays in its step until the test lets it end."""

    def __init__(self, model: str | None = None) -> None:
        self.model = model
        self.options: dict[str, Any] = {}
        self.leave = asyncio.Event()

    @property
    def agent(self) -> Agent:
        """The program."""

        async def leaks(turn: Turn) -> str:
            async def hand_out() -> None:
                self.options = turn.openai()
                while not self.leave.is_set():  # noqa: ASYNC110 - the event is of another loop
                    await asyncio.sleep(0.01)

            await turn.step(hand_out, effect="idempotent")
            return "Done."

        return of(leaks, self.model)

    def client(self) -> AsyncOpenAI:
        """What anybody who has the token can use, while the program runs."""
        return AsyncOpenAI(**self.options, max_retries=0)


async def begun(app: RunningApp, leaked: Leaked) -> str:
    """The turn, once its step runs."""
    (id_,) = [it.id async for it in app.client.agents() if it.engine.kind == "code"]
    conversation = await app.client.create_conversation(id_, title="Test")
    turn_id = (await app.client.start(conversation.id, "Hello")).turn_id
    await until(lambda: bool(leaked.options))
    return turn_id


async def test_a_token_ends_with_its_run_and_opens_nothing_else(model: ScriptedModel):
    leaked = Leaked()
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        turn_id = await begun(app, leaked)
        async with leaked.client() as client, httpx.AsyncClient() as other:
            first = await client.chat.completions.create(model="default", messages=HI)
            assert first.choices[0].message.content == "OK."
            own = leaked.options["base_url"].replace("/api/runs/v1", "/api/me")
            for headers in (
                {"Authorization": f"Bearer {leaked.options['api_key']}"},
                {"x-api-key": leaked.options["api_key"]},
            ):
                refused = await other.get(own, headers=headers)
                assert refused.status_code == 401
                assert "opens only" in refused.json()["error"]["message"]
            leaked.leave.set()
            reply = await app.client.reply(turn_id)
            assert reply.usage is not None and reply.usage.input_tokens > 0
            with pytest.raises(sdk.AuthenticationError, match="has ended"):
                await client.chat.completions.create(model="default", messages=HI)


@pytest.mark.parametrize("spoilt", ["tkr_", "tkr_nonsense", "cut", "changed", "tk_key", "a.jwt.token"])
async def test_a_forged_token_is_refused(model: ScriptedModel, spoilt: str):
    leaked = Leaked()
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        await begun(app, leaked)
        token = leaked.options["api_key"]
        forged = {"cut": token[:-4], "changed": f"{token[:20]}{'A' if token[20] != 'A' else 'B'}{token[21:]}"}
        async with AsyncOpenAI(
            base_url=leaked.options["base_url"], api_key=forged.get(spoilt, spoilt), max_retries=0
        ) as client:
            with pytest.raises(sdk.AuthenticationError, match="isn't the token of a run"):
                await client.chat.completions.create(model="default", messages=HI)
        leaked.leave.set()


async def test_stopping_the_turn_ends_its_calls_and_what_they_used_is_charged(model: ScriptedModel):
    leaked, gate = Leaked(), Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        turn_id = await begun(app, leaked)
        async with leaked.client() as client:
            stream = await client.chat.completions.create(model="default", messages=HI, stream=True)
            said = ""

            async def read() -> None:
                nonlocal said
                async for chunk in stream:
                    said += chunk.choices[0].delta.content or "" if chunk.choices else ""

            reading = asyncio.create_task(read())
            await until(lambda: said == "One ")
            await app.client.abort((await app.client.turn(turn_id)).conversation_id)
            with pytest.raises((sdk.APIError, httpx.HTTPError)):
                await reading
        services = await app.app.services()

        async def is_charged() -> bool:
            return bool(await usage_of(services))

        await until(is_charged)
        gate.open()


async def usage_of(services: Any) -> list[tuple[str, int]]:
    """What the ledger has: models and calls."""
    found = await services.store.ledger.usage(UsageFilter("0000", "9999", None), {"model"})
    return [(it.group["model"], it.calls) for it in found]


async def test_a_client_that_leaves_in_the_middle_is_charged_once(model: ScriptedModel):
    leaked, gate = Leaked(), Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        turn_id = await begun(app, leaked)
        async with leaked.client() as client:
            stream = await client.chat.completions.create(model="default", messages=HI, stream=True)
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
            await stream.close()
        assert await (await model.until_requests(1))[0].until_over() == "disconnected"
        leaked.leave.set()
        reply = await app.client.reply(turn_id)
        assert reply.usage is not None and reply.usage.estimated
        assert await usage_of(await app.app.services()) == [("default/scripted", 1)]


async def test_a_request_that_is_too_large_or_names_a_foreign_model_is_refused(model: ScriptedModel):
    leaked = Leaked()
    limits: Any = {"max_body_bytes": 50_000, "max_upload_bytes": 10_000}
    async with running_app(model, agents=[leaked.agent], listens=True, **limits) as app:
        await begun(app, leaked)
        async with leaked.client() as client:
            with pytest.raises(sdk.BadRequestError, match="gpt-9"):
                await client.chat.completions.create(model="gpt-9", messages=HI)
            with pytest.raises(sdk.BadRequestError, match="n` can only be 1"):
                await client.chat.completions.create(model="default", messages=HI, n=2)
            with pytest.raises(sdk.APIStatusError) as refused:
                await client.chat.completions.create(
                    model="default", messages=[{"role": "user", "content": "x" * 200_000}]
                )
            assert refused.value.status_code == 413
        leaked.leave.set()
    assert not model.requests


async def test_a_run_can_make_only_so_many_calls_at_once_and_a_minute(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_replies, "MOST_OUTSIDE_CALLS", 2)
    monkeypatch.setattr(run_replies, "MOST_OUTSIDE_CALLS_A_MINUTE", 3)
    leaked, gate = Leaked(), Gate()
    model.otherwise = [Wait(gate), Say("Yes.")]
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        await begun(app, leaked)
        async with leaked.client() as client:

            async def call() -> str | None:
                return (
                    (await client.chat.completions.create(model="default", messages=HI))
                    .choices[0]
                    .finish_reason
                )

            async with asyncio.TaskGroup() as tasks:
                calls = [tasks.create_task(refusal_of(call())) for _ in range(5)]
                await until(lambda: sum(it.done() for it in calls) == 3)
                gate.open()
            refused = [it.result() for it in calls if it.result()]
            assert refused == ["A run can make at most 2 model calls at once."] * 3
            assert await refusal_of(call()) == ""
            assert "A run can make 3 model calls per minute. Try again in" in await refusal_of(call())
        leaked.leave.set()


async def refusal_of(call: Awaitable[Any]) -> str:
    """Why a call was refused for now, if it was."""
    try:
        await call
    except sdk.RateLimitError as exc:
        assert int(exc.response.headers["retry-after"]) > 0
        return str(exc.body["message"])  # type: ignore[index]
    return ""


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_has_a_status_of_its_own_until_something_is_streamed(
    model: ScriptedModel, stream: bool
):
    leaked = Leaked()
    model.script([Status(400, "The tools are wrong.")])
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        turn_id = await begun(app, leaked)
        async with leaked.client() as client:
            with pytest.raises(sdk.InternalServerError, match="tools are wrong"):
                await client.chat.completions.create(model="default", messages=HI, stream=stream)
        leaked.leave.set()
        assert (await app.client.reply(turn_id)).usage is None
        assert not await usage_of(await app.app.services())


def priced(model: ScriptedModel, *others: ScriptedModel) -> dict[str, Any]:
    """Settings with gateways whose models have a price, each named after its place."""
    price = PriceTable(input="0", output="100")
    models = (ModelTable(name="scripted", max_output_tokens=100, price=price),)
    return {
        "gateways": {
            name: GatewayTable(kind="openai", url=it.url, api_key="sk-scripted", models=models)
            for name, it in zip(("one", "two"), (model, *others), strict=False)
        },
    }


async def test_a_budget_holds_for_calls_of_a_programs_own_sdk(model: ScriptedModel):
    leaked = Leaked("one/scripted")
    model.script([Say("Yes."), Usage(5, 100)], [Say("Yes."), Usage(5, 100)])
    limits: Any = {**priced(model), "user_budget_month": "0.02"}
    async with running_app(model, agents=[leaked.agent], listens=True, **limits) as app:
        turn_id = await begun(app, leaked)
        async with leaked.client() as client:
            for _ in range(2):
                await client.chat.completions.create(model="default", messages=HI)
            with pytest.raises(sdk.RateLimitError) as refused:
                await client.chat.completions.create(model="default", messages=HI, stream=True)
        assert refused.value.code == "insufficient_quota"
        assert refused.value.response.headers["x-should-retry"] == "false"
        leaked.leave.set()
        reply = await app.client.reply(turn_id)
        assert reply.cost is not None and float(reply.cost.amount) == 0.02


async def test_another_model_replies_if_the_first_is_away(model: ScriptedModel):
    leaked = Leaked("one/scripted")
    with ScriptedModel() as second:
        second.script([Say("I am the second.")])
        async with running_app(model, agents=[leaked.agent], listens=True, **priced(model, second)) as app:
            (id_,) = [it.id async for it in app.client.agents() if it.engine.kind == "code"]
            await app.client.update_agent(id_, {"settings": {"fallbackModels": ["two/scripted"]}})
            model.otherwise = [Status(503)]
            turn_id = await begun(app, leaked)
            async with leaked.client() as client:
                whole = await client.chat.completions.create(model="default", messages=HI)
                assert whole.choices[0].message.content == "I am the second."
            leaked.leave.set()
            await app.client.reply(turn_id)
            assert await usage_of(await app.app.services()) == [("two/scripted", 1)]


async def frameworks(turn: Turn, which: str) -> str:
    """Asks a model as each framework's users do."""
    access: dict[str, Any] = turn.openai()
    if which == "pydantic-ai":
        provider = OpenAIProvider(**access)
        weather = PydanticAgent(OpenAIChatModel("default", provider=provider), tools=[temperature])
        return (await weather.run("How warm is it?")).output
    chat: Any = ChatOpenAI(model="default", streaming=which == "langchain, streaming", **access)
    asked = chat.bind_tools([temperature])
    first = await asked.ainvoke("How warm is it?")
    (call,) = first.tool_calls
    results = [{"role": "tool", "tool_call_id": call["id"], "content": str(temperature(**call["args"]))}]
    last = await asked.ainvoke([{"role": "user", "content": "How warm is it?"}, first, *results])
    return str(last.content)


def temperature(city: str) -> int:
    """How warm it is in a city."""
    return len(city)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # they keep connections open
@pytest.mark.parametrize("which", ["pydantic-ai", "langchain", "langchain, streaming"])
async def test_a_framework_asks_for_tools_and_sends_their_results(model: ScriptedModel, which: str):
    async def talks(turn: Turn) -> str:
        return await turn.step(lambda: frameworks(turn, which), name="ask", effect="idempotent")

    model.script([UseTool("temperature", {"city": "Oslo"}), Usage(9, 1)], [Say("4 degrees."), Usage(12, 3)])
    async with running_app(model, agents=[of(talks)], listens=True) as app:
        reply = await asked(app)
        assert reply.content == "4 degrees."
        assert reply.usage is not None and reply.usage.input_tokens == 21
    results = [it for it in model.requests[1].body["messages"] if it["role"] == "tool"]
    assert [it["content"] for it in results] == ["4"]
    gc.collect()


async def test_a_token_of_another_node_is_known_and_its_calls_are_charged_there(
    postgres: Postgres, model: ScriptedModel
):
    leaked = Leaked()
    shared: Any = {"database_url": postgres.create_database(template=TEMPLATE), "secret_key": "x" * 40}
    async with (
        running_app(model, agents=[leaked.agent], listens=True, **shared) as app,
        running_app(model, listens=True, **shared) as other,
    ):
        turn_id = await begun(app, leaked)
        async with AsyncOpenAI(
            base_url=f"{other.url}/api/runs/v1", api_key=leaked.options["api_key"]
        ) as client:
            whole = await client.chat.completions.create(model="default", messages=HI)
            assert whole.choices[0].message.content == "OK."
        leaked.leave.set()
        await app.client.reply(turn_id)
        assert await usage_of(await app.app.services()) == [("default/scripted", 1)]


class City(BaseModel):
    """A city, as a program wants it."""

    name: str
    people: int


OSLO = '{"name": "Oslo", "people": 700000}'


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_that_does_not_match_its_schema_is_repaired_before_anybody_sees_it(
    model: ScriptedModel, stream: bool
):
    leaked = Leaked()
    model.script([Say('{"name": "Oslo"}'), Usage(5, 1)], [Say(f"```json\n{OSLO}\n```"), Usage(6, 2)])
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        turn_id = await begun(app, leaked)
        async with leaked.client() as client:
            if stream:
                async with client.chat.completions.stream(
                    model="default", messages=HI, response_format=City
                ) as events:
                    whole = await events.get_final_completion()
            else:
                whole = await client.chat.completions.parse(
                    model="default", messages=HI, response_format=City
                )
        assert whole.choices[0].message.parsed == City(name="Oslo", people=700_000)
        leaked.leave.set()
        reply = await app.client.reply(turn_id)
        assert reply.usage is not None and reply.usage.input_tokens == 11
    assert "people" in str(model.requests[1].body["messages"][-1]["content"])


async def test_a_reply_that_never_matches_its_schema_is_an_error_that_says_why(model: ScriptedModel):
    leaked = Leaked()
    model.script([Say("Oslo.")], [Say('{"name": "Oslo", "people": "many"}')])
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        turn_id = await begun(app, leaked)
        async with leaked.client() as client:
            with pytest.raises(sdk.InternalServerError, match="people") as refused:
                await client.chat.completions.parse(model="default", messages=HI, response_format=City)
        assert refused.value.code == "output_invalid"
        leaked.leave.set()
        await app.client.reply(turn_id)
    assert len(model.requests) == 2


async def test_a_program_chooses_the_tool_that_its_model_must_call(model: ScriptedModel):
    leaked = Leaked()
    named: Any = {"type": "function", "function": {"name": "locate"}}
    async with running_app(model, agents=[leaked.agent], listens=True) as app:
        await begun(app, leaked)
        async with leaked.client() as client:
            for choice in ("required", named):
                await client.chat.completions.create(
                    model="default", messages=HI, tools=[LOCATE], tool_choice=choice
                )
            with pytest.raises(sdk.BadRequestError, match="names one of"):
                await client.chat.completions.create(model="default", messages=HI, tool_choice=named)
        leaked.leave.set()
    assert [it.body["tool_choice"] for it in model.requests] == ["required", named]
