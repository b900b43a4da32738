"""The cases of the Open Responses compliance suite, under its names.

The suite itself is in no registry. The specification's types are, so each response and each event of a
stream is checked with them, as the suite does. Two of its cases are optional and need a search that a request
switches on, which agents here don't have: `file-search` and `offline-web-search`.
"""

import base64
from enum import Enum
from typing import Any

import pytest
from openresponses_types import types
from pydantic import BaseModel

from tests.clients.openai.conftest import agent
from tests.clients.openai.test_responses import PNG
from tests.talking import Talk
from threadkeep.sse import EventReader
from threadkeep.testing import Say, ScriptedModel, Think, UseTool

Json = dict[str, Any]
WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather at a place.",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
}


def _event_types() -> dict[str, type[BaseModel]]:
    """The specification's events by their type."""
    found: dict[str, type[BaseModel]] = {}
    for name, kind in vars(types).items():
        if name.endswith("StreamingEvent"):
            (value,) = kind.model_fields["type"].annotation
            assert isinstance(value, Enum)
            found[str(value.value)] = kind
    return found


EVENTS = _event_types()


def message(content: Any, role: str = "user") -> Json:
    return {"type": "message", "role": role, "content": content}


async def respond(talk: Talk, *items: Json, **more: Any) -> Json:
    """A response that is as the specification says."""
    sent = await talk.client.post("/v1/responses", json={"model": "Advisor", "input": items, **more})
    assert sent.status_code == 200, sent.text
    types.ResponseResource.model_validate_json(sent.content, strict=True)
    return sent.json()


async def respond_streaming(talk: Talk, *items: Json, **more: Any) -> list[Json]:
    """The events of a response; each is as the specification says."""
    body = {"model": "Advisor", "input": items, "stream": True, **more}
    sent = await talk.client.post("/v1/responses", json=body)
    assert sent.headers["content-type"].startswith("text/event-stream")
    read = EventReader().feed(sent.content)
    events = [EVENTS[it.event.decode()].model_validate_json(it.data, strict=True) for it in read]
    assert events
    return [it.model_dump(mode="json") for it in events]


def has_completed(response: Json, *kinds: str) -> bool:
    return response["status"] == "completed" and [it["type"] for it in response["output"]] == [*kinds]


@pytest.fixture(autouse=True)
async def _agent(talk: Talk) -> None:
    await agent(talk, clientTools=True)


async def test_single_requests(talk: Talk, model: ScriptedModel):
    # basic-response
    model.script([Think("Three."), Say("Hello to you.")])
    basic = await respond(talk, message("Greet me in three words."))
    assert has_completed(basic, "reasoning", "message")
    assert basic["completed_at"] >= basic["created_at"]
    # streaming-response
    model.script([Think("Up to five."), Say("1 2 "), Say("3 4 5")])
    *_, last = await respond_streaming(talk, message("Count to five."))
    assert last["type"] == "response.completed"
    assert has_completed(last["response"], "reasoning", "message")
    # system-prompt
    model.script([Say("Ahoy!")])
    assert has_completed(await respond(talk, message("Be a pirate.", "system"), message("Hi.")), "message")
    assert "Be a pirate." in model.requests[-1].body["messages"][0]["content"]
    # image-input
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}
    model.script([Say("A dot.")])
    seen = await respond(talk, message([{"type": "input_text", "text": "What is it?"}, image]))
    assert has_completed(seen, "message")
    # file-input
    data = base64.b64encode(b"Title: Tea at five").decode()
    file = {"type": "input_file", "filename": "a.txt", "file_data": f"data:text/plain;base64,{data}"}
    model.script([Say("Tea at five")])
    read = await respond(talk, message([{"type": "input_text", "text": "Its title?"}, file]))
    assert has_completed(read, "message")
    assert "Tea at five" in str(model.requests[-1].body["messages"][-1])


async def test_functions(talk: Talk, model: ScriptedModel):
    asked = message("What's the weather in Bern?")
    # tool-calling-streaming
    model.script([UseTool("get_weather", {"location": "Bern"}, "c1")])
    events = await respond_streaming(talk, asked, tools=[WEATHER])
    kinds = [(it["type"], it.get("item", {}).get("type")) for it in events]
    assert kinds[2:-1] == [
        ("response.output_item.added", "function_call"),
        ("response.function_call_arguments.delta", None),
        ("response.function_call_arguments.done", None),
        ("response.output_item.done", "function_call"),
    ]
    # tool-calling
    model.script([UseTool("get_weather", {"location": "Bern"}, "c2")], [Say("Rain.")])
    calling = await respond(talk, asked, tools=[WEATHER])
    assert has_completed(calling, "function_call")
    # function-call-roundtrip
    output = {"type": "function_call_output", "call_id": calling["output"][0]["call_id"], "output": "Rain"}
    final = await respond(talk, output, previous_response_id=calling["id"], tools=[WEATHER])
    assert has_completed(final, "message")


async def test_several_turns(talk: Talk, model: ScriptedModel):
    # previous-response-id
    model.script([Say("OK")], [Say("papaya")])
    first = await respond(talk, message("The word is papaya."))
    second = await respond(talk, message("Which word?"), previous_response_id=first["id"])
    assert has_completed(second, "message")
    asked = [it["content"] for it in model.requests[-1].body["messages"]]
    assert "The word is papaya." in asked
    # multi-turn: differs, since a reply that a client claims can't become part of a stored conversation
    items = [message("I'm Alice."), message("Hello Alice!", "assistant"), message("Who am I?")]
    claimed = await talk.client.post("/v1/responses", json={"model": "Advisor", "input": items})
    assert (claimed.status_code, claimed.json()["error"]["param"]) == (400, "input")
    model.script([Say("Alice.")])
    unstored = await talk.client.post(
        "/v1/responses", json={"model": "Advisor", "input": items, "store": False}
    )
    assert has_completed(unstored.json(), "message")
