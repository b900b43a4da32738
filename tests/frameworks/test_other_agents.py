"""Agents of frameworks that another agent runs, and that run others from their own tools and nodes."""

import json
from collections.abc import AsyncIterator, Container
from typing import Any, TypedDict

import agents as sdk
import pydantic_ai
import pytest
from langgraph.graph import StateGraph
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.frameworks import langgraph_shop, openai_agents_shop, pydantic_ai_shop
from tests.frameworks.scripted import Asked, answering
from tests.frameworks.shop import FAKES, REFUND, REFUNDED
from tests.frameworks.suite import without_scope, words
from threadkeep.agents import Agent, Turn, agent, current_turn
from threadkeep.agents.langgraph import ask_agent
from threadkeep.agents.langgraph import durable as durable_graph
from threadkeep.agents.openai_agents import durable as durable_openai
from threadkeep.agents.pydantic_ai import durable as durable_pydantic
from threadkeep.testing import Say, UseTool, crash_everywhere, run_agent
from threadkeep.testing.script import Reply

LAST = REFUNDED[REFUNDED.index("Done") :]
"""What the shop ends with: what it said before its tools is no part of its output."""
SAMPLE = ("after step_end price", "after answer", "before step_end the end")


class InAnyScope(Container[Any]):
    """The positions of the sample, whichever agent's they are."""

    def __contains__(self, position: object, /) -> bool:
        return without_scope(position) in SAMPLE


@agent()
async def desk(turn: Turn) -> str:
    """Passes its question on."""
    reply = await turn.agent("shop").run(turn.text)
    return f"The shop says: {reply.text}"


@agent()
async def teller(turn: Turn) -> str:
    """Knows a number, if its user agrees."""
    return f"{turn.text} is 42." if await turn.approve("Tell it?") else "It is a secret."


@pytest.mark.parametrize(
    "shop",
    [pydantic_ai_shop.served, openai_agents_shop.served, langgraph_shop.served],
    ids=["pydantic-ai", "openai-agents", "langgraph"],
)
async def test_agent_of_a_framework_replies_to_the_agent_that_runs_it(shop: Agent):
    report = await crash_everywhere(
        desk, REFUND, answers=["allow"], steps=FAKES, agents=[shop], only=InAnyScope(), check=False
    )
    report.check()
    assert words(report.whole.text) == words(f"The shop says: {LAST}")
    assert [it.outcome for it in report.crashes if it.run] == ["alike"] * 3
    (ran,) = (it for it in report.whole.parts if it["type"] == "step" and it.get("agent"))
    calls = [it for it in report.whole.parts if it["type"] == "tool_call"]
    assert {it["parentId"] for it in calls} == {ran["stepId"]}
    assert [it["type"] for it in report.whole.parts].count("text") == 1


async def ask_teller(what: str) -> str:
    """Asks the teller."""
    return (await current_turn().agent("teller").run(what)).text


async def test_tool_of_pydantic_ai_runs_another_agent():
    async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
        if any(isinstance(it, ModelResponse) for it in messages):
            yield "I have asked."
        else:
            yield {0: DeltaToolCall("ask_teller", json.dumps({"what": "It"}), tool_call_id="call_1")}

    given = pydantic_ai.Agent(FunctionModel(stream_function=stream), name="asks")
    given.tool_plain(metadata={"durable": False})(ask_teller)
    run = await run_agent(durable_pydantic(given), "Go", answers=["yes"], agents=[teller])
    assert run.text == "I have asked."
    assert run.questions == ["Teller: Tell it?"]


async def test_tool_of_openai_agents_runs_another_agent():
    def reply(asked: Asked) -> Reply | None:
        return [Say(asked.results[-1])] if asked.results else [UseTool("ask_teller", {"what": "It"})]

    tool = sdk.function_tool(ask_teller)
    given = sdk.Agent("asks", model=openai_agents_shop.agent.model, tools=[tool])
    with answering(reply):
        served = durable_openai(given, effects={"ask_teller": "scope"})
        run = await run_agent(served, "Go", answers=["yes"], agents=[teller])
    assert run.text == "It is 42."
    assert run.questions == ["Teller: Tell it?"]


async def test_node_of_langgraph_runs_another_agent():
    class State(TypedDict):
        said: str

    async def ask(state: State) -> State:
        return {"said": (await ask_agent("teller", "It")).text}

    built: Any = StateGraph(State)
    built.add_node("ask", ask)
    built.set_entry_point("ask")
    graph = built.compile(name="asks")
    served = durable_graph(graph, input=lambda _: {"said": ""}, reply=lambda it: it["said"])
    run = await run_agent(served, "Go", answers=["yes"], agents=[teller])
    assert run.text == "It is 42."
    assert run.questions == ["Teller: Tell it?"]
