"""Text, thoughts and tools come in the order in which they happened, with a log and without one."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from tests.engine.in_memory import InMemoryTools
from tests.protocols.threadkeep.test_encode import read
from tests.talking import Talk
from threadkeep.ports.tools import Progress, Returned
from threadkeep.testing import Say, ScriptedModel, Think, UseTool

CONTENT = "Numbers first.\n\nNow I check the handbook.\n\nRevenue grew."
LARGE = "x" * 20_000


@pytest.fixture
async def reply(tools: InMemoryTools, talk: Talk, model: ScriptedModel) -> dict[str, Any]:
    """The reply of three model calls, with a tool after each of the first two."""

    async def echo(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Returned]:
        yield Returned("ok", arguments)

    tools.add(echo=echo)
    model.script([Think("Hm."), Say("Numbers first."), UseTool("echo", {"text": LARGE}, "c1")])
    model.script([Say("Now I check the handbook."), UseTool("echo", {"n": 2}, "c2")])
    model.script([Say("Revenue grew.")])
    conversation = await talk.titled_conversation(settings={"compactionThreshold": 2})
    return await talk.ask(conversation, "What grew?")


def outline(parts: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    return [(it["iteration"], it["type"], str(it.get("text", it.get("toolCallId")))) for it in parts]


async def test_text_of_different_calls_is_apart_wherever_it_is_read(reply: dict[str, Any], talk: Talk):
    assert reply["content"] == CONTENT
    assert outline(reply["parts"]) == [
        (1, "thought", "Hm."),
        (1, "text", "Numbers first."),
        (1, "tool_call", "c1"),
        (2, "text", "Now I check the handbook."),
        (2, "tool_call", "c2"),
        (3, "text", "Revenue grew."),
    ]
    assert reply["parts"][2]["result"] == {"text": LARGE}
    asked, listed = await talk.messages(reply["conversationId"])
    assert listed == reply
    assert (asked["parentId"], listed["parentId"]) == (None, asked["id"])
    assert asked["parts"] == [{"type": "text", "text": "What grew?", "iteration": 0}]
    path = f"/api/turns/{reply['turnId']}/events?dialect="
    assert read((await talk.client.get(f"{path}text")).content) == CONTENT
    agentx = (await talk.client.get(f"{path}agentx")).text
    assert '"content":"Numbers first.\\n\\nNow I check the handbook.\\n\\nRevenue grew."' in agentx


async def test_trimmed_turn_is_replayed_with_everything_that_it_did(reply: dict[str, Any], talk: Talk):
    path = f"/api/turns/{reply['turnId']}/events"
    before = await talk.events(reply["turnId"])
    text = (await talk.client.get(f"{path}?dialect=text")).content
    assert await talk.store.log.trim(2**60)
    after = await talk.events(reply["turnId"])
    assert all(it["replayed"] for it in after)
    assert [it["seq"] for it in after] == list(range(1, len(after) + 1))
    told = {"iteration_start", "thought", "text", "tool_call", "tool_result"}
    assert seen(after, told) == seen(before, told)
    assert read((await talk.client.get(f"{path}?dialect=text")).content) == read(text) == CONTENT
    assert "refs" not in str(after)


async def test_summary_is_made_from_what_tools_returned_too(
    reply: dict[str, Any], talk: Talk, model: ScriptedModel
):
    model.script([Say("They spoke of revenue.")])
    path = f"/api/conversations/{reply['conversationId']}/compact"
    made = await talk.client.post(path, json={"keepLast": 0})
    assert made.json()["summary"] == "They spoke of revenue."
    told = str(model.requests[-1].body["messages"][-1]["content"])
    places = [
        told.index(it) for it in ("What grew?", "Numbers first.", "[Called echo", "xxx … xxx", "Now I check")
    ]
    assert places == sorted(places)
    assert len(told) < 5_000


def seen(events: list[dict[str, Any]], types: set[str]) -> list[tuple[str, Any]]:
    """What a page draws, pieces of one text put together."""
    drawn: list[tuple[str, Any]] = []
    for event in events:
        if event["type"] not in types:
            continue
        text = event.get("text")
        if text is not None and drawn and drawn[-1][0] == event["type"]:
            drawn[-1] = (event["type"], drawn[-1][1] + text)
        else:
            rest = {name: event.get(name) for name in ("iteration", "tool_call_id", "arguments", "result")}
            drawn.append((event["type"], text if text is not None else rest))
    return drawn
