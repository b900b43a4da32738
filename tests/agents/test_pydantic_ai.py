"""Agents of pydantic-ai behind durable turns: what their users, their models and their authors see."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, ModelRetry, NativeOutput, RunContext
from pydantic_ai.durable_exec import BaseDurabilityCapability
from pydantic_ai.exceptions import ModelConnectionError
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from tests.frameworks.pydantic_ai_shop import provider
from tests.frameworks.scripted import Asked, answering
from tests.frameworks.suite import say
from threadkeep.agents import Turn
from threadkeep.agents.media import Media
from threadkeep.agents.pydantic_ai import Durability, durable
from threadkeep.agents.pydantic_ai.messages import converted
from threadkeep.testing import Say, ToolServer, crash_everywhere, run_agent, running_app
from threadkeep.testing.script import CutOff
from threadkeep.wire.programs import ModelMessageItem

Pieces = Sequence[str | tuple[str, dict[str, Any]]]
"""What a model says: texts, and calls of tools."""


def scripted(*replies: Pieces | Callable[[list[ModelMessage]], Pieces]) -> FunctionModel:
    """A model with a reply for each of its responses so far."""

    async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
        at = sum(isinstance(it, ModelResponse) for it in messages)
        reply = replies[min(at, len(replies) - 1)]
        for number, piece in enumerate(reply(messages) if callable(reply) else reply):
            if isinstance(piece, str):
                yield piece
            else:
                call_id = f"call_{at}_{number}"
                yield {number: DeltaToolCall(piece[0], json.dumps(piece[1]), tool_call_id=call_id)}

    return FunctionModel(stream_function=stream, model_name="scripted")


def results(messages: list[ModelMessage]) -> list[str]:
    """What the tools have returned last: what a model reads."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    return [str(it.content) for it in last.parts if isinstance(it, ToolReturnPart)]


def read_out(messages: list[ModelMessage]) -> Pieces:
    """A model that says what its tools returned."""
    return [" | ".join(results(messages))]


# What its user sees


async def test_text_and_reasoning_are_shown_as_the_model_writes_them():
    async def stream(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[Any]:
        yield {0: DeltaThinkingPart(content="Hm")}
        yield {0: DeltaThinkingPart(content="m.")}
        yield "Hel"
        yield "lo."

    run = await run_agent(durable(Agent(FunctionModel(stream_function=stream)), key="greeter"), "Hi")
    said = [(it["type"], it["text"]) for it in run.parts if it["type"] in ("thought", "text")]
    assert said == [("thought", "Hmm."), ("text", "Hello.")]


async def test_a_model_that_does_not_stream_is_recorded_and_its_user_told_once():
    calls: list[int] = []

    def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        calls.append(len(messages))
        return ModelResponse(parts=[TextPart("All at once.")])

    run = await run_agent(
        durable(Agent(FunctionModel(reply, model_name="mute"), name="mute")), "Hi", check=True
    )
    assert (run.text, len(calls), run.steps["model"].count) == ("All at once.", 1, 1)
    notices = [it["message"] for it in run.parts if it["type"] == "notice"]
    assert notices == ["The model mute doesn't stream: what it says is shown at once."]


class Order(BaseModel):
    id: int
    paid: datetime


async def test_a_structured_output_is_the_replys_text_as_json_and_kept_in_the_state():
    kept: list[Any] = []
    given = {"id": 7, "paid": "2026-11-19T12:00:00Z"}
    agent = durable(
        Agent(scripted([("final_result", given)]), name="orders", output_type=Order),
        deps=lambda turn: kept.append(turn.state.get("output")),
    )
    async with running_app(agents=[agent]) as app:
        (agent_id,) = [it.id async for it in app.client.agents() if it.engine.key == "orders"]
        conversation = await app.client.create_conversation(agent_id, title="Orders")
        first = await say(app.client, conversation.id, "Which one?")
        await say(app.client, conversation.id, "Again?")
    assert Order.model_validate_json(first) == Order(id=7, paid=datetime(2026, 11, 19, 12, tzinfo=UTC))
    assert kept == [None, given]


async def test_a_structured_output_that_breaks_off_is_asked_for_again_and_shown_once():
    agent = durable(
        Agent(OpenAIChatModel("scripted", provider=provider), name="orders", output_type=NativeOutput(Order))
    )
    times: list[str] = []

    def answer(said: Asked) -> Any:
        times.append(said.question)
        if len(times) == 1:
            return [Say('{"id": 7, "pa'), CutOff()]
        return [Say('{"id": 7, '), Say('"paid": "2026-11-19T12:00:00Z"}')]

    with answering(answer):
        run = await run_agent(agent, "Which one?", check=False)
    assert (len(times), run.status) == (2, "COMPLETED")
    assert Order.model_validate_json(run.text).id == run.output["id"] == 7


# Its tools


def shop(model: FunctionModel, ran: list[Any], **options: Any) -> Agent[None, str]:
    """An agent with a tool that needs an approval."""
    agent = Agent(model, name="shop", **options)

    @agent.tool_plain(requires_approval=True, metadata={"effect": "idempotent"})
    def refund(order: int, paid: datetime) -> str:
        ran.append((order, paid))
        return f"Refunded {order}."

    return agent


async def test_a_denied_call_is_read_by_the_model_and_the_other_one_runs():
    ran: list[Any] = []
    paid = {"paid": "2026-11-19T12:00:00Z"}
    model = scripted([("refund", {"order": 7, **paid}), ("refund", {"order": 8, **paid})], read_out)
    run = await run_agent(durable(shop(model, ran)), "Refund both.", answers=["deny", "allow"])
    assert "denied the call" in run.text
    assert len(run.questions) == 2
    assert [order for order, _ in ran] in ([7], [8])
    assert ran[0][1] == datetime(2026, 11, 19, 12, tzinfo=UTC)


async def test_arguments_that_the_user_changed_reach_the_tool_as_its_types():
    ran: list[Any] = []
    model = scripted([("refund", {"order": 7, "paid": "2026-11-19T12:00:00Z"})], read_out)
    async with running_app(agents=[durable(shop(model, ran))], agents_pause_after_s=0.05) as app:
        client = app.client
        (agent_id,) = [it.id async for it in client.agents() if it.engine.key == "shop"]
        conversation = await client.create_conversation(agent_id, title="Shop")
        started = await client.start(conversation.id, "Refund it.")
        while not (asked := await client.approvals()):
            pass
        changed = {"order": 8, "paid": "2026-11-20T12:00:00Z"}
        await client.answer(started.turn_id, asked[0].request_id, "edit", arguments=changed)
        assert (await client.reply(started.turn_id)).content == "Refunded 8."
    assert ran == [(8, datetime(2026, 11, 20, 12, tzinfo=UTC))]


async def test_a_tool_that_asks_for_an_approval_when_it_runs_pauses_the_turn():
    ran: list[int] = []
    agent = Agent(scripted([("pay", {"euros": 700})], read_out), name="payer")

    @agent.tool(metadata={"effect": "idempotent"})
    def pay(ctx: RunContext[object], euros: int) -> str:
        if euros > 100 and not ctx.tool_call_approved:
            raise ApprovalRequired
        ran.append(euros)
        return f"Paid {euros}."

    run = await run_agent(durable(agent), "Pay.", answers=["allow"])
    assert (run.text, ran, run.questions) == ("Paid 700.", [700], ["Call pay?"])
    shown = [it["result"] for it in run.parts if it["type"] == "tool_call"]
    assert shown == ["The tool asks for an approval before it runs.", "Paid 700."]


async def test_a_call_whose_outcome_is_unknown_is_read_by_the_model_and_its_repetition_asks_the_user():
    agent = Agent(scripted([("note", {})], [("note", {})], read_out), name="notes")

    @agent.tool_plain
    def note() -> str:
        return "Noted."

    report = await crash_everywhere(
        durable(agent),
        "Note it.",
        answers=["allow"],
        steps={"note": lambda _: "Noted."},  # type: ignore[reportUnknownLambdaType]
        only=["before step_end note"],
    )
    (_, crash) = report.whole, report.crashes[0]
    assert crash.run is not None
    assert (crash.run.text, crash.run.questions) == ("Noted.", ["Call note?"])
    assert crash.run.steps["note"].statuses == ("unknown", "ok")


async def test_a_tool_that_another_program_runs_is_answered_by_the_user():
    tools = [ToolDefinition(name="measure", parameters_json_schema={"type": "object"})]
    agent = Agent(scripted([("measure", {})], read_out), name="outside", toolsets=[ExternalToolset(tools)])
    run = await run_agent(durable(agent), "How long is it?", answers=["7 m"])
    assert (run.text, run.questions) == ("7 m", ["What is the result of `measure` with {}?"])


async def test_a_tool_of_the_client_is_offered_and_run_by_the_client():
    agent = durable(Agent(scripted([("locate", {})], read_out), name="guide"))
    tool = {"name": "locate", "description": "Where the user is.", "parameters": {"type": "object"}}
    async with running_app(agents=[agent], agents_pause_after_s=0.05) as app:
        client = app.client
        (agent_id,) = [it.id async for it in client.agents() if it.engine.key == "guide"]
        conversation = await client.create_conversation(agent_id, title="Guide")
        started = await client.start(conversation.id, "Where am I?", tools=[tool])
        while not (asked := await client.approvals()):
            pass
        await client.answer(started.turn_id, asked[0].request_id, "result", content="In Oslo.")
        assert (await client.reply(started.turn_id)).content == "In Oslo."


async def test_tools_of_an_mcp_server_are_recorded_and_those_that_only_read_may_run_again():
    def price(order: int) -> str:
        """Says what an order costs."""
        return f"{order} costs 120 euros."

    with ToolServer(reading=[price]) as server:
        agent = durable(
            Agent(scripted([("price", {"order": 7})], read_out), toolsets=[MCPToolset(server.url)]),
            key="prices",
        )
        run = await run_agent(agent, "What does 7 cost?")
        assert (run.text, run.status) == ("7 costs 120 euros.", "COMPLETED")
        assert [it.arguments for it in server.uses] == [{"order": 7}]
    (call,) = (it for it in run.parts if it["type"] == "tool_call")
    assert (call["toolName"], call["status"]) == ("price", "ok")


async def test_toolsets_need_no_id_and_a_tool_can_ask_the_model_to_try_again():
    tried: list[int] = []

    def guess(number: int) -> str:
        tried.append(number)
        if number < 7:
            raise ModelRetry("Higher.")
        return "Right."

    tools = FunctionToolset[None](metadata={"effect": "read"})
    tools.add_function(guess)
    other = FunctionToolset[None]()

    @other.tool_plain
    def unused() -> str:
        return ""

    model = scripted([("guess", {"number": 3})], [("guess", {"number": 7})], read_out)
    run = await run_agent(durable(Agent(model, name="guesser", toolsets=[tools, other])), "Guess.")
    assert (run.text, tried) == ("Right.", [3, 7])


async def test_a_result_that_cannot_be_stored_ends_the_turn_and_the_author_reads_why():
    agent = Agent(scripted([("look", {})], read_out), name="looker")

    @agent.tool_plain(metadata={"effect": "read"})
    def look() -> object:
        return object()

    run = await run_agent(durable(agent), "Look.", check=False)
    assert run.status == "FAILED"
    assert "look returned what can't be stored" in str(run.exception)


# Agents in agents


async def asked_by(*, is_durable: bool) -> Any:
    """A turn of an agent whose tool runs another one."""
    inner = Agent(scripted([("find", {})], read_out), name="inner", capabilities=[Durability()])

    @inner.tool_plain(metadata={"effect": "read"})
    def find() -> str:
        return "Order 7."

    outer = Agent(scripted([("ask", {})], read_out), name="outer")

    @outer.tool_plain(metadata={"effect": "idempotent", **({"durable": False} if is_durable else {})})
    async def ask() -> str:
        return (await inner.run("Which one?")).output

    return await run_agent(durable(outer), "Ask.")


async def test_a_tool_that_runs_another_agent_is_one_step():
    run = await asked_by(is_durable=False)
    assert (run.text, run.steps["ask"].count) == ("Order 7.", 1)
    assert "find" not in run.steps


async def test_a_tool_that_is_no_step_leaves_the_other_agents_calls_recorded():
    run = await asked_by(is_durable=True)
    assert (run.text, run.steps["find"].count) == ("Order 7.", 1)
    assert "ask" not in run.steps


# What it is given


async def test_dependencies_are_made_from_the_turn():
    agent = Agent(scripted([("who", {})], read_out), name="who", deps_type=str)

    @agent.tool(metadata={"effect": "read"})
    def who(ctx: RunContext[str]) -> str:
        return ctx.deps

    async def deps(turn: Turn) -> str:
        return f"{turn.user.id}: {turn.text}"

    run = await run_agent(durable(agent, deps=deps), "Hi")
    assert run.text == "local: Hi"


async def test_instructions_that_differ_when_the_function_runs_again_change_nothing():
    dates: list[int] = []
    agent = Agent(scripted([("find", {})], read_out), name="dated")

    @agent.instructions
    def today() -> str:
        dates.append(len(dates))
        return f"It is day {len(dates)}."

    @agent.tool_plain(metadata={"effect": "read"})
    def find() -> str:
        return "Order 7."

    run = await run_agent(durable(agent), "Which?", check=True)
    assert run.text == "Order 7."
    assert len(dates) > 2


def test_messages_of_other_agents_become_the_frameworks_own():
    made = converted(
        [
            ModelMessageItem("user", "Which?"),
            ModelMessageItem(
                "assistant",
                [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "c1", "name": "find", "input": {"id": 7}},
                ],
            ),
            ModelMessageItem("user", [{"type": "tool_result", "tool_use_id": "c1", "content": "Order 7."}]),
            ModelMessageItem("assistant", "Order 7."),
        ],
        Media(cast("Any", None)),
    )
    assert [(it.kind, [part.part_kind for part in it.parts]) for it in made] == [
        ("request", ["user-prompt"]),
        ("response", ["text", "tool-call"]),
        ("request", ["tool-return"]),
        ("response", ["text"]),
    ]


async def test_after_a_turn_that_failed_its_question_is_known():
    seen: list[list[str]] = []

    def answer(messages: list[ModelMessage]) -> Pieces:
        prompts = [it for message in messages for it in message.parts if isinstance(it, UserPromptPart)]
        seen.append([str(it.content) for it in prompts])
        if prompts[-1].content == "Break.":
            raise ModelConnectionError("scripted", "Connection error.")
        return ["Yes."]

    async with running_app(agents=[durable(Agent(scripted(answer), name="recaller"))]) as app:
        (agent_id,) = [it.id async for it in app.client.agents() if it.engine.key == "recaller"]
        conversation = await app.client.create_conversation(agent_id, title="Recall")
        for text in ("One.", "Break.", "Two."):
            await say(app.client, conversation.id, text)
    assert seen[-1] == ["One.", "Break.\n\nTwo."]


async def test_a_call_is_in_the_ledger_with_its_tokens():
    agent = durable(Agent(scripted(["Hello there."]), name="counted"))
    async with running_app(agents=[agent]) as app:
        (agent_id,) = [it.id async for it in app.client.agents() if it.engine.key == "counted"]
        conversation = await app.client.create_conversation(agent_id, title="Count")
        started = await app.client.start(conversation.id, "Hi")
        usage = (await app.client.reply(started.turn_id)).usage
    assert usage is not None
    assert usage.output_tokens > 0


# What its author reads


def test_an_agent_without_a_name_is_refused_with_what_to_write():
    with pytest.raises(ValueError, match=r'durable\(agent, key="orders"\)'):
        durable(Agent(scripted(["Hi"])))


def test_the_name_and_the_description_are_the_agents_own():
    made = durable(Agent(scripted(["Hi"]), name="order_desk", description="Knows orders."), version=3)
    it = made.declaration
    assert (it.key, it.name, it.description, it.version) == ("order-desk", "Order desk", "Knows orders.", 3)


@pytest.mark.parametrize("name", ["_wrap_leaf_toolset", "_bind_to_agent", "_register_toolsets"])
def test_tools_of_agents_are_no_steps_any_more_because_pydantic_ai_renamed(name: str):
    assert hasattr(BaseDurabilityCapability, name)
