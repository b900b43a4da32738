"""LangGraph's graphs and LangChain's agents behind a durable turn."""

import operator
from inspect import signature
from typing import Annotated, Any, TypedDict, cast

import ormsgpack
import pytest
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_model_call
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.tracers import _streaming
from langgraph._internal import _constants
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from tests.agents.langgraph_models import Call, Scripted, echo
from threadkeep.agents.langgraph import durable, step
from threadkeep.agents.langgraph.checkpoints import INTERRUPT, ListedTypes
from threadkeep.agents.langgraph.events import RUNTIME
from threadkeep.agents.langgraph.graph_run import AROUND
from threadkeep.client import Client, TurnWaiting
from threadkeep.testing import crash_everywhere, run_agent, running_app


def calls_then_says(*calls: Call) -> Any:
    def answer(messages: list[BaseMessage]) -> list[str | Call]:
        results = [str(it.content) for it in messages if isinstance(it, ToolMessage)]
        return [f"It said: {', '.join(results)}."] if results else ["I look. ", *calls]

    return answer


def graph_of(*nodes: Any, state: Any = MessagesState) -> Any:
    """A compiled graph of nodes, one after the other."""
    builder: Any = StateGraph(state)
    before = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    builder.add_edge(before, END)
    return builder.compile()


def notices(run: Any) -> list[str]:
    return [it["message"] for it in run.parts if it["type"] == "notice"]


async def test_a_model_streams_its_text_and_its_usage_is_counted() -> None:
    model = Scripted(answer=echo)

    async def talk(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async with running_app(agents=[durable(graph_of(talk), key="talk")]) as app:
        (agent,) = [it async for it in app.client.agents() if it.engine.key == "talk"]
        conversation = await app.client.create_conversation(agent.id)
        started = await app.client.start(conversation.id, "Hello")
        reply = await app.client.reply(started.turn_id)
        assert str(reply.content) == "You said Hello."
        assert reply.usage is not None
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 5), reply.usage


async def test_a_node_that_is_not_async_is_recorded_too() -> None:
    model = Scripted(answer=echo)

    def talk(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    agent = durable(graph_of(talk), key="talk")
    report = await crash_everywhere(agent, "Hello", only=("after step_end langgraph/talk@1/1/model",))
    report.check()
    assert (report.whole.text, report.whole.steps["model"].count) == ("You said Hello.", 1)
    assert notices(report.whole) == []


async def test_a_model_that_is_streamed_around_the_record_is_told_to_the_user() -> None:
    model = Scripted(answer=echo)

    async def talk(state: MessagesState) -> Any:
        texts = [str(it.content) async for it in model.astream(state["messages"])]
        return {"messages": [AIMessage("".join(texts))]}

    run = await run_agent(durable(graph_of(talk), key="talk"), "Hello")
    assert (run.text, notices(run)) == ("You said Hello.", [AROUND])


async def test_a_turn_after_one_that_failed_reads_once_what_was_sent() -> None:
    read: list[list[str]] = []

    def answer(messages: list[BaseMessage]) -> list[str | Call]:
        read.append([str(it.content) for it in messages])
        if messages[-1].content == "Fail":
            raise RuntimeError("overloaded")
        return ["Yes."]

    model = Scripted(answer=answer)

    async def talk(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async with running_app(agents=[durable(graph_of(talk), key="talk")]) as app:
        (agent,) = [it async for it in app.client.agents() if it.engine.key == "talk"]
        conversation = await app.client.create_conversation(agent.id)
        for text in ("One", "Fail", "Two", "Three"):
            started = await app.client.start(conversation.id, text)
            await app.client.reply(started.turn_id)
            if text == "Fail":
                failed = await app.client.turn(started.turn_id)
                assert failed.error is not None
                assert failed.error.message == "The model model gave no answer."
    assert read[-2] == ["One", "Yes.", "Fail\n\nTwo"]
    assert read[-1] == ["One", "Yes.", "Fail\n\nTwo", "Yes.", "Three"]


async def test_a_model_outside_a_turn_is_called_as_before() -> None:
    model = Scripted(answer=echo)

    async def talk(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = graph_of(talk)
    await run_agent(durable(graph, key="talk"), "Hello")
    assert (await graph.ainvoke({"messages": ["Hi"]}))["messages"][-1].content == "You said Hi."


async def test_a_node_that_asks_twice_calls_its_model_once() -> None:
    model = Scripted(answer=echo)

    async def order(state: MessagesState) -> Any:
        said = await model.ainvoke([*state["messages"], HumanMessage("an order")])
        size = interrupt({"question": "Which size?", "options": ["S", "L"]})
        colour = interrupt("Which colour?")
        return {"messages": [AIMessage(f"{said.content} {size} {colour}")]}

    agent = durable(graph_of(order), key="order")
    some = ("after answer", "after request (2)", "before the end")
    report = await crash_everywhere(agent, "I want", answers=["L", "red"], only=some)
    report.check()
    assert report.whole.questions == ["Which size?", "Which colour?"]
    assert report.whole.text.endswith("You said an order. L red")
    assert len(model.calls) == 1 + len(report.crashes), "each run asks the model once"


class Answers(TypedDict):
    topics: list[str]
    answers: Annotated[list[str], operator.add]


def asking() -> Any:
    async def ask(state: Any) -> Any:
        return {"answers": [f"{state['topic']}: {interrupt(state['topic'] + '?')}"]}

    builder: Any = StateGraph(Answers)
    builder.add_node("ask", ask)

    def topics(state: Answers) -> list[Send]:
        return [Send("ask", {"topic": it}) for it in state["topics"]]

    builder.add_conditional_edges(START, topics)
    return durable(
        builder.compile(),
        key="asking",
        input=lambda turn: {"topics": turn.text.split()},
        reply=lambda state: ", ".join(state["answers"]),
    )


async def test_several_interrupts_are_answered_in_any_order_across_restarts() -> None:
    agent = asking()
    some = ("after answer", "before answer (2)")
    report = await crash_everywhere(agent, "one two three", answers=["1", "2", "3"], only=some)
    report.check()
    assert report.whole.text == "one: 1, two: 2, three: 3"
    async with running_app(agents=[agent], agents_pause_after_s=0.05) as app:
        (found,) = [it async for it in app.client.agents() if it.engine.key == "asking"]
        conversation = await app.client.create_conversation(found.id)
        started = await app.client.start(conversation.id, "one two three")
        requests: dict[str, Any] = {}
        while len(requests) < 3:
            requests = {it.message: it for it in await waiting(app.client, started.turn_id)}
        assert list(requests) == ["one?", "two?", "three?"]
        for topic in ("three", "one", "two"):
            request = requests[f"{topic}?"]
            await app.client.answer(request.turn_id, request.request_id, "answer", content=topic.upper())
        reply = await app.client.reply(started.turn_id)
        assert str(reply.content) == "one: ONE, two: TWO, three: THREE"


async def waiting(client: Client, turn_id: str) -> Any:
    with pytest.raises(TurnWaiting) as found:
        await client.reply(turn_id)
    return found.value.approvals


@tool
async def refund(order: int) -> str:
    """Refunds an order."""
    sure = interrupt(f"Refund {order}?")
    return f"refunded {order} {sure}"


async def test_a_tool_that_asks_runs_again_with_the_answer() -> None:
    model = Scripted(answer=calls_then_says(("refund", '{"order": 7}')))
    agent = durable(create_agent(model, [refund], name="refunds"), effects={"refund": "idempotent"})
    run = await run_agent(agent, "Refund order 7", answers=["yes"])
    assert run.questions == ["Refund 7?"]
    assert run.text.endswith("It said: refunded 7 yes.")


async def test_a_call_that_needs_approval_can_be_denied() -> None:
    calls = ("pay", '{"order": 7}'), ("pay", '{"order": 8}')
    knows_modes = "interrupt_mode" in signature(HumanInTheLoopMiddleware).parameters  # LangChain 1.4
    for mode in ({"interrupt_mode": it} for it in ("batched", "per_call")) if knows_modes else [{}]:

        @tool
        async def pay(order: int) -> str:
            """Pays an order."""
            return f"paid {order}"

        model = Scripted(answer=calls_then_says(*calls))
        middleware = HumanInTheLoopMiddleware({"pay": True}, **mode)  # pyright: ignore
        agent = durable(
            create_agent(model, [pay], middleware=[middleware], name="pays"), effects={"pay": "read"}
        )
        run = await run_agent(agent, "Pay", answers=["deny", "allow"])
        assert run.questions == ["Call pay?", "Call pay?"], mode
        assert run.text.count("paid") == 1, mode  # which of the two is asked about first is not told
        assert "denied" in run.text.lower(), run.text


async def test_an_agent_in_a_tool_is_recorded_step_by_step_if_the_tool_says_so() -> None:
    @tool
    async def order(id: int) -> str:  # noqa: A002
        """Looks an order up."""
        return f"order {id}"

    asking_model = Scripted(answer=calls_then_says(("order", '{"id": 7}')))
    inner = cast("Any", create_agent(asking_model, [order], name="inner"))

    @tool
    async def research(what: str) -> str:
        """Asks another agent."""
        return (await inner.ainvoke({"messages": [HumanMessage(what)]}))["messages"][-1].content

    research.metadata = {"durable": False}
    model = Scripted(answer=calls_then_says(("research", '{"what": "order 7"}')))
    agent = durable(create_agent(model, [research], name="outer"), effects={"order": "read"})
    run = await run_agent(agent, "Look")
    assert run.steps["model"].count == 4
    assert run.steps["order"].count == 1
    assert run.text.endswith("It said: It said: order 7..")
    assert "I look. \n\nIt said: It said" in run.text, "what the inner agent says is not the reply's"


def assistant(ran: list[str]) -> Any:
    """An agent with a tool that runs another one, whose own call is to be approved."""

    @tool
    def look_up(order: int) -> str:
        """Looks an order up."""
        ran.append("look_up")
        return f"order {order}"

    @tool
    def refund_order(order: int) -> str:
        """Refunds an order."""
        ran.append("refund_order")
        return f"refunded {order}"

    def answer(messages: list[BaseMessage]) -> list[str | Call]:
        results = [str(it.content) for it in messages if isinstance(it, ToolMessage)]
        calls: list[Call] = [("look_up", '{"order": 7}'), ("refund_order", '{"order": 7}')]
        return [calls[len(results)]] if len(results) < 2 else [", ".join(results)]

    middleware = HumanInTheLoopMiddleware({"refund_order": True})
    inner = cast(
        "Any",
        create_agent(Scripted(answer=answer), [look_up, refund_order], middleware=[middleware], name="inner"),
    )

    @tool
    def delegate(what: str) -> str:
        """Asks another agent."""
        return inner.invoke({"messages": [HumanMessage(what)]})["messages"][-1].content

    model = Scripted(answer=calls_then_says(("delegate", '{"what": "Refund 7"}')))
    return cast("Any", create_agent(model, [delegate], name="outer"))


async def test_an_agent_that_a_tool_runs_asks_its_user_and_is_continued_where_it_was() -> None:
    for allows, done in (("yes", ["look_up", "refund_order"]), ("no", ["look_up"])):
        ran: list[str] = []
        run = await run_agent(
            durable(assistant(ran), effects={"delegate": "idempotent"}), "Go", answers=[allows]
        )
        assert ran == done
        assert len(run.questions) == 1
        assert "Tool: refund_order" in run.questions[0]
    ran = []
    agent = durable(assistant(ran), effects={"delegate": "idempotent"})
    asked = "after step_end langgraph/tools@2.0/1/delegate"
    report = await crash_everywhere(agent, "Go", answers=["yes"], only=(asked, "before save (6)"))
    report.check()
    assert report.crashes
    assert ran == ["look_up", "refund_order"] * (1 + len(report.crashes)), "no call is made twice"


async def test_what_a_tool_returns_besides_text_is_shown_as_what_the_model_reads_of_it() -> None:
    @tool
    def mark(order: int) -> Any:
        """Marks an order."""
        message = ToolMessage(f"Marked {order}.", tool_call_id="mark-1-1")
        return Command(update={"messages": [message]})

    model = Scripted(answer=calls_then_says(("mark", '{"order": 7}')))
    agent = durable(create_agent(model, [mark], name="marker"), effects={"mark": "read"})
    run = await run_agent(agent, "Mark it")
    assert run.text.endswith("It said: Marked 7..")
    assert [it["result"] for it in run.parts if it["type"] == "tool_call"] == ["Marked 7."]


class Decision(BaseModel):
    approved: bool
    note: str | None = None


async def test_an_interrupt_with_a_schema_is_a_form_and_its_answer_the_class() -> None:
    async def ask(state: MessagesState) -> Any:
        decision = interrupt({"question": "Pay?"}, response_schema=Decision)
        return {"messages": [AIMessage(f"{decision.approved}: {decision.note}")]}

    run = await run_agent(
        durable(graph_of(ask), key="asks"), "Go", answers=[{"approved": True, "note": "OK"}]
    )
    assert (run.questions, run.text) == (["Pay?"], "True: OK")


async def test_nodes_have_the_store_that_their_graph_was_compiled_with() -> None:
    store = InMemoryStore()
    store.put(("user",), "name", {"is": "Ada"})

    async def greet(state: MessagesState, *, store: BaseStore) -> Any:
        found = await store.aget(("user",), "name")
        return {"messages": [AIMessage(f"Hello {found.value['is'] if found else '?'}.")]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("greet", greet)
    builder.add_edge(START, "greet")
    assert (await run_agent(durable(builder.compile(store=store), key="greets"), "Hi")).text == "Hello Ada."


async def test_an_agent_whose_middleware_is_not_async_runs_in_a_thread() -> None:
    asked: list[str] = []

    @wrap_model_call
    def noted(request: Any, handler: Any) -> Any:
        asked.append(str(request.messages[-1].content))
        return handler(request)

    @tool
    def price(order: int) -> str:
        """Says what an order costs."""
        return f"{order} costs 5"

    model = Scripted(answer=calls_then_says(("price", '{"order": 7}')))
    made = create_agent(model, [price], middleware=[noted], name="priced")
    agent = durable(made, effects={"price": "read"})
    report = await crash_everywhere(agent, "Price", only=("after step_end langgraph/model@1/1/model",))
    report.check()
    assert report.whole.text.endswith("It said: 7 costs 5.")
    assert (report.whole.steps["model"].count, report.whole.steps["price"].count) == (2, 1)
    assert asked[:2] == ["Price", "7 costs 5"]
    assert len(report.crashes) == 1


async def test_events_and_steps_of_nodes_come_once() -> None:
    async def look(state: MessagesState) -> Any:
        get_stream_writer()({"progress": "Half way"})
        found = await step(found_it, 7, effect="read")
        interrupt("Go on?")
        return {"messages": [AIMessage(found)]}

    ran: list[int] = []

    async def found_it(order: int) -> str:
        ran.append(order)
        return f"found {order}"

    agent = durable(graph_of(look), key="look")
    report = await crash_everywhere(agent, "Look", answers=["yes"], only=("after request", "before the end"))
    report.check()
    assert (report.whole.text, len(ran)) == ("found 7", 1 + len(report.crashes))


async def test_subgraphs_are_recorded_and_continue_where_they_were() -> None:
    model = Scripted(answer=echo)

    async def first(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke([HumanMessage("first")])]}

    async def second(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke([HumanMessage("second")])]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("inner", graph_of(first, second))
    builder.add_edge(START, "inner")
    agent = durable(builder.compile(), key="outer")
    first_is_recorded = "after step_end langgraph/inner@1/first@1/1/model"
    report = await crash_everywhere(agent, "Go", only=(first_is_recorded, "before the end"))
    report.check()
    assert report.whole.text.split("\n\n") == ["You said first.", "You said second."]
    assert len(report.crashes) == 2


async def test_a_graph_stops_at_its_breakpoints() -> None:
    async def say(state: MessagesState) -> Any:
        return {"messages": [AIMessage("Said.")]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("say", say)
    builder.add_edge(START, "say")
    agent = durable(builder.compile(interrupt_before=["say"]), key="stops")
    run = await run_agent(agent, "Go", answers=["yes"])
    assert (run.questions, run.text) == (["Go on with say?"], "Said.")


def test_a_hostile_checkpoint_builds_nothing(tmp_path: Any) -> None:
    mark = tmp_path / "built"
    hostile = ormsgpack.packb(
        ormsgpack.Ext(1, ormsgpack.packb(["os", "mkdir", [str(mark)]])),
    )
    types = ListedTypes()
    assert types.loads_typed(("msgpack", hostile)) == [str(mark)]
    assert not mark.exists()
    for kind in ("pickle", "json"):
        with pytest.raises(ValueError, match="not stored as"):
            types.loads_typed((kind, b"{}"))


def test_graphs_without_messages_say_what_goes_in_and_out() -> None:
    async def node(state: Answers) -> Any:
        return {}

    with pytest.raises(TypeError, match="has no `messages`"):
        durable(graph_of(node, state=Answers), key="answers")


def test_private_names_of_langgraph_that_the_record_needs_are_there() -> None:
    for name in ("_execute_tool_async", "_execute_tool_sync"):
        assert callable(getattr(ToolNode, name)), f"tools would run unrecorded: ToolNode.{name} is gone"
    assert _streaming._StreamingCallbackHandler, "models would not stream"  # pyright: ignore[reportPrivateUsage]
    assert _constants.CONFIG_KEY_RUNTIME == RUNTIME, "what nodes write would not be shown"
    assert _constants.INTERRUPT == INTERRUPT, "a crash while an answer is taken would ask again"
    assert (_constants.NS_SEP, _constants.NS_END) == ("|", ":"), (
        "steps would not be told apart by their nodes"
    )
