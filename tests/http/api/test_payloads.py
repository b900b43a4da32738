"""Whatever a tool was given and gave comes back, through every route, and no reference is ever shown."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.in_memory import InMemoryTools, gives
from tests.protocols.agentx.test_routes import tab
from tests.talking import JSON, Talk
from threadkeep.ports.tools import Progress, Returned
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait

LARGE = "x" * 20_000
MADE_UP: dict[str, Any] = {"_ref": "0198c0de-0000-7000-8000-000000000000", "refs": {"result": "x"}}

KEYS = st.text(max_size=5) | st.sampled_from(["_ref", "refs", "result"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["\x00", "_ref", '"refs":{', "\n", "\u2028"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["_ref", "refs", "result"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
ANY = st.tuples(VALUES, st.booleans())
"""A value, and whether it is made large."""


def returning(values: list[Any], charts: list[Any]) -> Any:
    async def run(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Returned]:
        number = arguments["number"]
        yield Returned("ok", values[number], chart_data=charts[number])

    return run


async def titled_conversation(talk: Talk, **agent: Any) -> str:
    """A conversation for whose title no model is asked."""
    made = await talk.client.post("/api/agents", json={"name": "Advisor", **agent})
    path = f"/api/agents/{made.json()['id']}/conversations"
    return (await talk.client.post(path, json={"title": "Tools"})).json()["id"]


def data_of(response: httpx.Response) -> list[dict[str, Any]]:
    """What a stream says; only a newline ends a line in it, whatever else looks like one."""
    lines = response.content.decode().split("\n")
    return [msgspec.json.decode(line[6:]) for line in lines if line.startswith("data: ")]


def of_calls(calls: list[dict[str, Any]]) -> dict[int, tuple[Any, Any, Any]]:
    """Arguments, result and chart of each call, as messages show them."""
    return {
        it["arguments"]["number"]: (it["arguments"].get("more"), it["result"], it.get("chartData"))
        for it in calls
    }


def of_events(events: list[dict[str, Any]]) -> dict[int, tuple[Any, Any, Any]]:
    """The same, as events tell them."""
    assert not [event for event in events if "refs" in event]
    called = {it["tool_call_id"]: it["arguments"] for it in events if it["type"] == "tool_call"}
    results = [it for it in events if it["type"] == "tool_result"]
    assert len(called) == len(results)
    return {
        called[it["tool_call_id"]]["number"]: (
            called[it["tool_call_id"]].get("more"),
            it["result"],
            it.get("chart_data"),
        )
        for it in results
    }


async def check_everywhere(talk: Talk, conversation: str, expected: dict[int, tuple[Any, Any, Any]]) -> None:
    """All routes that show a finished turn show the same."""
    path = f"/api/conversations/{conversation}"
    detail = (await talk.client.get(path)).json()
    reply = detail["messages"][-1]
    assert of_calls(reply["toolCalls"]) == expected
    listed = (await talk.client.get(f"{path}/messages")).json()["items"][-1]
    assert of_calls(listed["toolCalls"]) == expected
    replay = f"/api/turns/{reply['turnId']}/events"
    events = data_of(await talk.client.get(replay))
    assert of_events(events) == expected
    after = next(it["seq"] for it in events if it["type"] == "tool_call") - 1
    assert of_events(data_of(await talk.client.get(f"{replay}?after={after}"))) == expected
    envelopes = data_of(await talk.client.get(f"{replay}?dialect=agentx"))
    inputs = {
        it["data"]["toolCallId"]: it["data"]["input"] for it in envelopes if it["type"] == "tool_use_stop"
    }
    results = {
        inputs[it["data"]["toolCallId"]]["number"]: it["data"]["result"]
        for it in envelopes
        if it["type"] == "tool_result"
    }
    assert results == {number: result for number, (_, result, _) in expected.items()}


@settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # each example is a whole turn
@given(st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=8))
async def test_any_value_comes_back_equal_through_every_route(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel, drawn: list[tuple[tuple[Any, bool], ...]]
):
    calls = [[[value, LARGE] if large else value for value, large in call] for call in drawn]
    expected = {number: (more, result, chart) for number, (more, result, chart) in enumerate(calls)}
    tools.add(tool=returning([it[1] for it in calls], [it[2] for it in calls]))
    uses = [
        UseTool("tool", {"number": number} | ({} if it[0] is None else {"more": it[0]}))
        for number, it in expected.items()
    ]
    model.script(uses, [Say("So.")])
    conversation = await titled_conversation(talk)
    path = f"/api/conversations/{conversation}/messages"
    live = data_of(await talk.client.post(path, json={"content": "Why?"}))
    assert of_events(live) == expected
    await check_everywhere(talk, conversation, expected)


async def test_large_values_lie_outside_the_rows_and_come_back(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    tools.add(tool=returning([LARGE], [{"series": [{"data": [1]}]}]))
    model.script([UseTool("tool", {"number": 0, "more": LARGE})], [Say("So.")])
    conversation = await titled_conversation(talk)
    reply = await talk.ask(conversation)
    assert of_calls(reply["toolCalls"]) == {0: (LARGE, LARGE, {"series": [{"data": [1]}]})}
    chunks = await talk.store.log.read(reply["turnId"], 0)
    assert sum(len(chunk.events) for chunk in chunks) < 5_000
    kept = await talk.store.messages.get(reply["conversationId"], reply["id"])
    assert kept
    (call,) = kept.tool_calls
    assert (call.arguments, call.chart_data) == ({}, None)
    assert len(str(call.result)) < 2_000  # its beginning and its end, for later requests
    await check_everywhere(talk, conversation, of_calls(reply["toolCalls"]))


async def test_reply_that_is_being_written_shows_what_its_tools_gave(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    gate = Gate()
    tools.add(tool=returning([[LARGE, MADE_UP]], [None]))
    model.script([UseTool("tool", {"number": 0})], [Say("So "), Wait(gate), Say("be it.")])
    conversation = await titled_conversation(talk)
    turn = await talk.begin(conversation)
    async for event in talk.follow(turn):
        if event["type"] == "text":
            break
    reply = (await talk.messages(conversation))[-1]
    assert reply["status"] == "STREAMING"
    assert of_calls(reply["toolCalls"]) == {0: (None, [LARGE, MADE_UP], None)}
    gate.open()
    await talk.events(turn)


async def test_web_socket_tells_what_tools_gave(tools: InMemoryTools, talk: Talk, model: ScriptedModel):
    tools.add(tool=returning([[LARGE, MADE_UP]], [None]))
    model.script([UseTool("tool", {"number": 0})], [Say("So.")])
    made = await talk.client.post("/api/agents", json={"name": "Advisor"})
    conversation = (await talk.client.post(f"/api/agents/{made.json()['id']}/conversations")).json()
    async with tab(talk) as live:
        await live.subscribe(conversation["sessionId"])
        await talk.begin(conversation["id"])
        told = await live.until("conversation_end")
        results = [envelope["data"]["result"] for _, envelope in told if envelope["type"] == "tool_result"]
        assert results == [[LARGE, MADE_UP]]
        async with tab(talk) as late:
            await late.subscribe(conversation["sessionId"], told[0][0])
            again = await late.until("conversation_end")
        assert again == told[1:]


async def test_chat_shows_what_tools_gave(tools: InMemoryTools, talk: Talk, model: ScriptedModel):
    tools.add(tool=returning([LARGE], [MADE_UP]))
    model.script([UseTool("tool", {"number": 0})], [Say("So.")])
    reply = await talk.client.post("/api/chat?wait=true", json={"content": "Why?"}, headers=JSON)
    assert of_calls(reply.json()["toolCalls"]) == {0: (None, LARGE, MADE_UP)}
    listed = (await talk.client.get("/api/chat/messages")).json()["items"]
    assert listed[-1] == reply.json()


async def test_clients_that_follow_many_large_results_get_them_in_order(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    values = [[number, LARGE] for number in range(20)]
    tools.add(tool=returning(values, values))
    model.script(*([UseTool("tool", {"number": number})] for number in range(20)), [Say("So.")])
    conversation = await titled_conversation(talk, settings={"maxIterations": 0})
    turn = await talk.begin(conversation)
    first, second = await asyncio.gather(talk.events(turn), talk.events(turn))
    assert first == second
    assert [event["seq"] for event in first] == [*range(1, len(first) + 1)]
    for field in ("result", "chart_data"):
        assert [event[field] for event in first if event["type"] == "tool_result"] == values


@pytest.mark.requirement("001-R6-S1")
async def test_chart_of_the_history_is_the_object_itself_and_no_reference(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    # Given a turn whose chart_data was put into the payload store
    chart = {"title": {"text": "返工率"}, "series": [{"type": "bar", "data": [50, 30]}]}
    tools.add(draw=gives(Returned("ok", "drawn", chart_data=chart)))
    model.script([UseTool("draw")], [Say("So.")])
    conversation = await titled_conversation(talk)
    reply = await talk.ask(conversation)
    kept = await talk.store.messages.get(reply["conversationId"], reply["id"])
    assert kept
    assert [*kept.tool_calls[0].refs] == ["chart_data"]
    # When a client loads the history
    history = await talk.client.get(f"/api/conversations/{conversation}/messages")
    # Then chart_data is the actual object, and nothing is a mere `_ref`
    assert history.json()["items"][-1]["toolCalls"][0]["chartData"] == chart
    assert "_ref" not in history.text
    assert '"refs"' not in history.text
