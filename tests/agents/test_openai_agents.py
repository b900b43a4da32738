"""Agents of the OpenAI Agents SDK behind a durable turn."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import agents as sdk
import httpx2
import pydantic
import pytest
from agents.mcp import MCPServerStreamableHttp
from agents.tool_context import ToolContext
from openai import AsyncOpenAI

from threadkeep.agents import ModelMessageItem
from threadkeep.agents.media import Media
from threadkeep.agents.openai_agents import durable, preparing
from threadkeep.agents.openai_agents.sessions import converted
from threadkeep.client import TurnWaiting
from threadkeep.testing import (
    Pause,
    Recorded,
    Reply,
    Say,
    ScriptedModel,
    Think,
    ToolServer,
    Usage,
    UseTool,
    crash_everywhere,
    run_agent,
    running_app,
)

sdk.set_tracing_disabled(True)

Script = Callable[[list[dict[str, Any]]], Reply]


class Provider:
    """The server of the agents' models, which replies by what it is asked: a repeated call gets the same."""

    def __init__(self) -> None:
        self.script: Script = lambda _: [Say("OK.")]
        self.model = ScriptedModel(otherwise=lambda it: self.script(asked(it)))

    def client(self) -> AsyncOpenAI:
        """A client for agents' loops of several tests."""

        async def send(request: httpx2.Request) -> None:
            request.url = httpx2.URL(self.model.url + request.url.path)

        http = httpx2.AsyncClient(
            limits=httpx2.Limits(max_keepalive_connections=0), event_hooks={"request": [send]}
        )
        return AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:1/v1", http_client=http, max_retries=0)


def asked(request: Recorded) -> list[dict[str, Any]]:
    """What a model was asked: messages, calls and results, as the Responses API has them."""
    return request.body.get("input") or request.body["messages"]


def results(items: list[dict[str, Any]]) -> list[str]:
    """What tools returned."""
    return [
        str(it.get("output", it.get("content"))) for it in items if "output" in it or it.get("role") == "tool"
    ]


provider = Provider()
responses = sdk.OpenAIResponsesModel("scripted", provider.client())
chat = sdk.OpenAIChatCompletionsModel("scripted", provider.client())


@pytest.fixture(autouse=True)
def _serving() -> Iterator[None]:
    with provider.model:
        provider.model.requests.clear()
        yield
        assert not [(it.problems, it.body) for it in provider.model.refused]


@sdk.function_tool
async def find_order(order_id: int) -> str:
    """Finds an order."""
    return f"order {order_id}: 120 €"


def refunds(items: list[dict[str, Any]]) -> Reply:
    if not (found := results(items)):
        return [Say("Let me look. "), UseTool("find_order", {"order_id": 7}, "call_1")]
    return [Say(f"It is {found[0]}.")]


@pytest.mark.parametrize("model", [responses, chat])
async def test_agent_of_the_sdk_survives_every_crash(model: sdk.Model):
    provider.script = refunds
    clerk = sdk.Agent("Clerk", instructions="Be kind.", model=model, tools=[find_order])
    orders = durable(clerk, effects={"find_order": "read"})
    report = await crash_everywhere(orders, "What about order 7?", only=range(3, 100, 5))
    report.check()
    assert report.whole.text == "Let me look. \n\nIt is order 7: 120 €."
    assert report.whole.steps["find_order"].count == 1


refunded: list[str] = []


@sdk.function_tool(needs_approval=True)
async def refund(order_id: int, amount: int) -> str:
    """Refunds an order."""
    refunded.append(f"{order_id}: {amount}")
    return f"Refunded {amount} €."


def refunding(items: list[dict[str, Any]]) -> Reply:
    if not (found := results(items)):
        return [UseTool("refund", {"order_id": 7, "amount": 120}, "call_1")]
    return [Say(found[-1])]


@pytest.mark.parametrize(
    ("answer", "text", "done"),
    [
        ("allow", "Refunded 120 €.", ["7: 120"]),
        ("deny", "The user denied the call. The user denied this call.", []),
    ],
)
async def test_tool_that_needs_approval_runs_only_if_the_user_allows_it(
    answer: str, text: str, done: list[str]
):
    refunded.clear()
    provider.script = refunding
    orders = durable(sdk.Agent("Clerk", model=responses, tools=[refund]), effects={"refund": "idempotent"})
    run = await run_agent(orders, "Refund order 7", answers=[answer])
    assert run.text == text
    assert refunded == done
    assert run.questions != []


async def test_approval_in_an_agent_that_was_handed_over_to_survives_every_crash():
    def script(items: list[dict[str, Any]]) -> Reply:
        found = results(items)
        if not found:
            return [UseTool("transfer_to_billing", {}, "call_0")]
        return refunding([it for it in items if "call_0" not in it.values()])

    provider.script = script
    billing = sdk.Agent("Billing", model=responses, tools=[refund])
    triage = sdk.Agent("Triage", model=chat, handoffs=[sdk.handoff(billing)])
    orders = durable(triage, effects={"refund": "idempotent"})
    report = await crash_everywhere(orders, "Refund order 7", answers=["allow"], only=range(4, 100, 6))
    report.check()
    assert report.whole.text == "Refunded 120 €."
    assert {"Triage", "Billing", "refund"} <= report.whole.steps.keys()


async def test_agent_that_is_a_tool_is_recorded_step_by_step_and_is_silent():
    def script(items: list[dict[str, Any]]) -> Reply:
        found = results(items)
        if "Refund order 7" not in json.dumps(items):  # it is billing that is asked
            return [Say("Silent. "), *refunding(items)]
        found = results(items)
        return (
            [Say(f"He says: {found[0]}")]
            if found
            else [UseTool("ask_billing", {"input": "Go deep"}, "call_9")]
        )

    provider.script = script
    billing = sdk.Agent("Billing", model=chat, tools=[refund])
    asks = billing.as_tool("ask_billing", "Asks billing.")
    orders = durable(sdk.Agent("Clerk", model=responses, tools=[asks]), effects={"refund": "idempotent"})
    run = await run_agent(orders, "Refund order 7", answers=["allow"])
    assert run.text == "He says: Silent. Refunded 120 €."
    assert run.steps["Billing"].count == 2
    assert run.steps["refund"].count == 1
    assert "ask_billing" not in run.steps


@sdk.function_tool
async def temperature(city: str) -> int:
    """How warm a city is."""
    return len(city)


async def test_tools_that_run_at_once_get_their_own_results():
    def script(items: list[dict[str, Any]]) -> Reply:
        found = results(items)
        if not found:
            return [UseTool("temperature", {"city": it}, f"call_{it}") for it in ("Rome", "Berlin")]
        return [Say(", ".join(found))]

    provider.script = script
    warm = durable(sdk.Agent("Warm", model=responses, tools=[temperature]), effects={"temperature": "read"})
    run = await run_agent(warm, "How warm is it?")
    assert run.text == "4, 6"
    assert run.steps["temperature"].count == 2


class Unstorable:
    def __str__(self) -> str:
        return "an order"


async def test_tool_whose_result_cannot_be_stored_gives_the_model_what_it_would_read_of_it():
    @sdk.function_tool
    async def strange() -> Unstorable:
        """Returns an object."""
        return Unstorable()

    @sdk.function_tool
    async def large() -> str:
        """Returns too much."""
        return "x" * 9_000_000

    def script(items: list[dict[str, Any]]) -> Reply:
        found = results(items)
        if not found:
            return [UseTool("strange", {}, "call_1"), UseTool("large", {}, "call_2")]
        return [Say(" | ".join(found))]

    provider.script = script
    odd = sdk.Agent("Odd", model=responses, tools=[strange, large])
    run = await run_agent(durable(odd, effects={"strange": "read", "large": "read"}), "Go")
    assert run.text.startswith(
        "an order | The tool has run, but its result can't be read: large returned 9000002"
    )


async def test_guardrail_that_asks_a_model_is_recorded_and_its_refusal_is_told():
    judge = sdk.Agent("Judge", model=chat)

    @sdk.input_guardrail
    async def is_polite(_context: Any, _agent: Any, asked: Any) -> sdk.GuardrailFunctionOutput:
        verdict = sdk.Runner.run_streamed(judge, f"Judge: {asked}")
        async for _ in verdict.stream_events():
            pass
        return sdk.GuardrailFunctionOutput(
            output_info=object(), tripwire_triggered=verdict.final_output == "rude"
        )

    def script(items: list[dict[str, Any]]) -> Reply:
        text = json.dumps(items)
        return [Say("rude" if "Fool" in text else "polite")] if "Judge" in text else [Say("Hello.")]

    provider.script = script
    clerk: sdk.Agent[Any] = sdk.Agent("Clerk", model=responses, input_guardrails=[is_polite])
    guarded = durable(clerk, refused="Please be polite.")
    polite = await run_agent(guarded, "Good day")
    assert polite.text == "Hello."
    assert polite.steps["is_polite"].count == 1
    rude = await run_agent(guarded, "Fool!")
    assert rude.status == "FAILED"
    assert rude.error
    assert rude.error.message == "Please be polite."


async def test_guardrail_of_a_tool_that_refuses_its_result_ends_the_turn_with_a_sentence():
    @sdk.tool_output_guardrail
    def secret(_: sdk.ToolOutputGuardrailData) -> sdk.ToolGuardrailFunctionOutput:
        return sdk.ToolGuardrailFunctionOutput.raise_exception(output_info="secret")

    @sdk.function_tool(tool_output_guardrails=[secret])
    def find_person() -> str:
        """Finds a person."""
        return "078-05-1120"

    provider.script = lambda _: [UseTool("find_person", {}, "call_1")]
    clerk = sdk.Agent("Clerk", model=responses, tools=[find_person])
    run = await run_agent(durable(clerk, effects={"find_person": "read"}, refused="Not that."), "Who?")
    assert run.error
    assert (run.status, run.error.message) == ("FAILED", "Not that.")


async def test_guardrail_beside_a_model_call_ends_the_turn_the_same_way_when_it_runs_again():
    @sdk.input_guardrail
    async def never(*_: Any) -> sdk.GuardrailFunctionOutput:
        await asyncio.sleep(0.05)
        return sdk.GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    provider.script = lambda _: [Say("Hel"), Pause(0.3), Say("lo.")]
    guarded = durable(sdk.Agent("Clerk", model=responses, input_guardrails=[never]))
    report = await crash_everywhere(guarded, "Good day", only=["step Clerk", "step_end never"])
    ends = {it.run.error.code for it in report.crashes if it.run and it.run.error}
    assert ends == {report.whole.error.code if report.whole.error else ""}  # and never REPLAY_DIVERGED


class Order(pydantic.BaseModel):
    id: int
    total: str


async def test_structured_output_is_the_text_of_the_reply():
    provider.script = lambda _: [Say('{"id": 7, "tot'), Say('al": "120 €"}')]
    run = await run_agent(durable(sdk.Agent("Reader", model=responses, output_type=Order)), "Order 7?")
    assert json.loads(run.text) == run.output == {"id": 7, "total": "120 €"}


async def test_reasoning_is_shown_while_the_model_thinks():
    provider.script = lambda _: [Think("I wonder. "), Say("Yes.")]
    run = await run_agent(durable(sdk.Agent("Thinker", model=responses)), "Really?")
    assert run.text == "Yes."
    assert any(it["type"] == "thought" and it["text"] == "I wonder. " for it in run.parts)


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def test_tools_of_an_mcp_server_that_nobody_has_connected_are_called_once_and_shown():
    def script(items: list[dict[str, Any]]) -> Reply:
        found = results(items)
        return [Say(found[0])] if found else [UseTool("add", {"a": 2, "b": 3}, "call_1")]

    provider.script = script
    with ToolServer(add) as server:
        mcp = MCPServerStreamableHttp(params={"url": server.url}, name="Sums", require_approval="always")
        sums = durable(sdk.Agent("Sums", model=responses, mcp_servers=[mcp]), effects={"add": "read"})
        run = await run_agent(sums, "2 + 3?", answers=["allow"])
    assert json.loads(run.text.replace("'", '"'))[0]["text"] == "5"
    assert run.steps["add"].count == 1


async def test_tool_that_runs_another_agent_is_one_step_and_as_a_scope_several():
    other = sdk.Agent("Other", model=responses)

    @sdk.function_tool
    async def delegate(text: str) -> str:
        """Asks another agent."""
        streamed = sdk.Runner.run_streamed(other, text)
        async for _ in streamed.stream_events():
            pass
        return str(streamed.final_output)

    def script(items: list[dict[str, Any]]) -> Reply:
        if "Inside" in json.dumps(items) and "Outside" not in json.dumps(items):
            return [Say("I am inside.")]
        found = results(items)
        return [Say(f"Told: {found[0]}")] if found else [UseTool("delegate", {"text": "Inside"}, "call_1")]

    provider.script = script
    boss = sdk.Agent("Boss", model=responses, tools=[delegate])
    whole = await run_agent(durable(boss, effects={"delegate": "idempotent"}), "Outside")
    assert whole.text == "Told: I am inside."
    assert whole.steps.keys() == {"Boss", "delegate"}
    inside = await run_agent(durable(boss, effects={"delegate": "scope"}, agents=[other]), "Outside")
    assert inside.text == "Told: I am inside."
    assert inside.steps.keys() == {"Boss", "Other"}


async def test_users_edit_of_a_call_reaches_the_tool():
    async def large(_context: Any, arguments: dict[str, Any], _call_id: str) -> bool:
        return arguments["amount"] > 100

    @sdk.function_tool(needs_approval=large)
    async def pay(amount: int) -> str:
        """Pays."""
        return f"Paid {amount} €."

    def script(items: list[dict[str, Any]]) -> Reply:
        found = results(items)
        return [Say(found[0])] if found else [UseTool("pay", {"amount": 120}, "call_1")]

    provider.script = script
    payer = durable(sdk.Agent("Payer", model=responses, tools=[pay]), effects={"pay": "idempotent"})
    async with running_app(agents=[payer]) as app:
        (id_,) = [it.id async for it in app.client.agents() if it.engine.key == "payer"]
        conversation = await app.client.create_conversation(id_, title="Test")
        started = await app.client.start(conversation.id, "Pay.")
        with pytest.raises(TurnWaiting) as waiting:
            await app.client.reply(started.turn_id)
        (request,) = waiting.value.approvals
        await app.client.answer(started.turn_id, request.request_id, "edit", arguments={"amount": 7})
        assert (await app.client.reply(started.turn_id)).content == "Paid 7 €."


async def test_tool_that_the_client_brings_along_is_run_by_the_client():
    def script(items: list[dict[str, Any]]) -> Reply:
        found = results(items)
        return [Say(found[0])] if found else [UseTool("locate", {}, "call_1")]

    provider.script = script
    async with running_app(agents=[durable(sdk.Agent("Guide", model=responses))]) as app:
        (id_,) = [it.id async for it in app.client.agents() if it.engine.key == "guide"]
        conversation = await app.client.create_conversation(id_, title="Test")
        locate: dict[str, Any] = {
            "name": "locate",
            "description": "Finds you.",
            "parameters": {"type": "object", "properties": {}},
        }
        started = await app.client.start(conversation.id, "Where am I?", tools=[locate])
        with pytest.raises(TurnWaiting) as waiting:
            await app.client.reply(started.turn_id)
        (request,) = waiting.value.approvals
        await app.client.answer(started.turn_id, request.request_id, "result", content="In Rome.")
        assert (await app.client.reply(started.turn_id)).content == "In Rome."


async def test_model_call_of_the_sdk_is_counted_and_callbacks_of_the_session_still_work():
    seen: list[int] = []

    def newest(history: list[Any], new: list[Any]) -> list[Any]:
        seen.append(len(history))
        return [*history[-2:], *new]

    provider.script = lambda _: [Say("Yes."), Usage(1_000, 20)]
    counted = durable(
        sdk.Agent("Counted", model=responses),
        run_config=sdk.RunConfig(session_input_callback=newest, tracing_disabled=True),
    )
    async with running_app(agents=[counted]) as app:
        (id_,) = [it.id async for it in app.client.agents() if it.engine.key == "counted"]
        conversation = await app.client.create_conversation(id_, title="Test")
        for text in ("One?", "Two?"):
            started = await app.client.start(conversation.id, text)
            reply = await app.client.reply(started.turn_id)
        assert seen == [0, 2]
        assert reply.usage
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1_000, 20)


async def test_conversation_that_the_sdk_has_no_items_of_is_converted():
    context = [
        ModelMessageItem("user", "A"),
        ModelMessageItem("assistant", [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]),
        ModelMessageItem("user", [{"type": "tool_result", "tool_use_id": "1", "content": "2"}]),
        ModelMessageItem("assistant", [{"type": "text", "text": "B"}]),
    ]
    assert converted(context, Media(cast("Any", None))) == [
        {"role": "user", "content": "A"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "2"},
        {"role": "assistant", "content": "B"},
    ]


async def test_agent_that_is_made_while_the_turn_runs_is_recorded():
    async def make(_context: Any, _arguments: str) -> sdk.Agent[Any]:
        return sdk.Agent("Made", model=sdk.OpenAIResponsesModel("scripted", provider.client()))

    made = sdk.Handoff[Any, Any](
        tool_name="to_made",
        tool_description="Hands over.",
        input_json_schema={"type": "object", "properties": {}},
        on_invoke_handoff=make,
        agent_name="Made",
    )
    provider.script = lambda items: [Say("Made.")] if results(items) else [UseTool("to_made", {}, "call_1")]
    run = await run_agent(durable(sdk.Agent("Maker", model=responses, handoffs=[made])), "Hi")
    assert run.text == "Made."
    assert run.steps["Made"].count == 1


async def test_model_that_is_called_unrecorded_is_told_in_a_notice(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparing, "record_model", print)  # anything but what it does
    provider.script = lambda _: [Say("OK.")]

    class Plain(sdk.OpenAIResponsesModel):
        async def get_response(self, *_: Any, **__: Any) -> sdk.ModelResponse:
            return sdk.ModelResponse(output=[], usage=sdk.Usage(), response_id=None)

    run = await run_agent(
        durable(sdk.Agent("Plain", model=Plain("scripted", provider.client()))), "Hi", check=False
    )
    assert any("isn't recorded" in str(it) for it in run.parts)


def test_private_names_of_the_sdk_that_lead_from_an_agent_to_others_are_still_there():
    """If this fails, `preparing.leads_to` no longer finds agents, and their calls aren't recorded."""
    billing = sdk.Agent("Billing")
    asks = billing.as_tool("ask", "Asks.")
    told = sdk.handoff(billing)
    assert asks._is_agent_tool  # pyright: ignore[reportPrivateUsage]
    assert asks._agent_instance is billing  # pyright: ignore[reportPrivateUsage]
    assert told._agent_ref  # pyright: ignore[reportPrivateUsage]
    assert told._agent_ref() is billing  # pyright: ignore[reportPrivateUsage]
    assert hasattr(
        ToolContext(None, tool_name="a", tool_call_id="b", tool_arguments=""), "_function_tool_arguments"
    )
