"""The package `openai` in node against a running server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.node import Driver, driving
from tests.clients.openai.conftest import agent, token
from tests.talking import Talk
from threadkeep.testing import Fail, Gate, Say, ScriptedModel, Think, ToolServer, UseTool, Wait

HERE = Path(__file__).parent
LOCATE: Any = {
    "type": "function",
    "name": "locate",
    "description": "Where the user is.",
    "parameters": {"type": "object", "properties": {"near": {"type": "string"}}},
    "strict": False,
}
Json = dict[str, Any]


def note(text: str) -> str:
    "Notes."
    return f"noted {text}"


@pytest.fixture
async def driver(talk: Talk) -> AsyncIterator[Driver]:
    """Alice's client `a` and bob's client `b`."""
    async with driving(HERE / "driver.mjs", HERE / "node") as driver:
        for name, user in (("a", "alice"), ("b", "bob")):
            await driver.do("open", name=name, url=talk.url, key=token(user))
        yield driver


async def respond(driver: Driver, **body: Any) -> Json:
    return await driver.do("call", path="responses.create", given=[body])


async def refused(driver: Driver, path: str, *given: Any, name: str = "a") -> Json:
    """The error that the package makes of a refusal."""
    with pytest.raises(AssertionError) as caught:
        await driver.do("call", name=name, path=path, given=given)
    return json.loads(str(caught.value))


async def test_responses_one_after_another(talk: Talk, driver: Driver, model: ScriptedModel):
    await agent(talk)
    assert "Advisor" in [it["id"] for it in await driver.do("list", path="models.list", given=[])]
    assert (await driver.do("call", path="models.retrieve", given=["Advisor"]))["object"] == "model"
    model.script([Think("Hm."), Say("One.")], [Say("Two.")], [Say("Other "), Say("two.")])
    body = {"model": "Advisor", "input": "1", "instructions": "Count.", "stream": True}
    events = await driver.do("stream", path="responses.create", given=[body])
    first = events[-1]["response"]
    assert [it["type"] for it in first["output"]] == ["reasoning", "message"]
    assert [it["sequence_number"] for it in events] == list(range(len(events)))
    second = await respond(driver, input="2", previous_response_id=first["id"])
    assert (second["output_text"], second["status"]) == ("Two.", "completed")
    helped = await driver.do("helper", given=[{"input": "other 2", "previous_response_id": first["id"]}])
    assert (helped["text"], helped["final"]["output_text"]) == ("Other two.", "Other two.")
    assert "Two." not in str(model.requests[-1].body["messages"])  # it branched
    read = await driver.do("call", path="responses.retrieve", given=[helped["final"]["id"]])
    assert (read["output_text"], read["previous_response_id"]) == ("Other two.", first["id"])
    (item,) = await driver.do("list", path="responses.inputItems.list", given=[second["id"]])
    assert item["content"] == [{"type": "input_text", "text": "2"}]


async def test_response_left_resumed_and_cancelled(talk: Talk, driver: Driver, model: ScriptedModel):
    await agent(talk)
    gates = [Gate(), Gate()]
    model.script([Say("One "), Wait(gates[0]), Say("two.")], [Say("Three "), Wait(gates[1]), Say("four.")])
    body = {"model": "Advisor", "input": "Count", "stream": True, "background": True}
    left = await driver.do(
        "stream", path="responses.create", given=[body], until="response.output_text.delta"
    )
    id_, seen = left[0]["response"]["id"], left[-1]["sequence_number"]
    gates[0].open()
    again = {"stream": True, "starting_after": seen}
    rest = await driver.do("stream", path="responses.retrieve", given=[id_, again])
    assert [it["sequence_number"] for it in rest] == list(range(seen + 1, seen + 1 + len(rest)))
    assert rest[-1]["type"] == "response.completed"
    # The helper, too, goes on where another reader stopped.
    helped = await driver.do("helper", given=[{"response_id": id_}])
    assert helped["final"]["output_text"] == "One two."

    left = await driver.do(
        "stream", path="responses.create", given=[body], until="response.output_text.delta"
    )
    id_ = left[0]["response"]["id"]
    await gates[1].reached()
    cancelled = await driver.do("call", path="responses.cancel", given=[id_])
    (message,) = cancelled["output"]
    assert (cancelled["status"], message["content"][0]["text"]) == ("cancelled", "Three ")
    ended = await driver.do("stream", path="responses.retrieve", given=[id_, {"stream": True}])
    assert ended[-1]["type"] == "response.incomplete"
    gates[1].open()
    await driver.do("call", path="responses.delete", given=[id_])
    assert (await refused(driver, "responses.retrieve", id_))["class"] == "NotFoundError"


async def test_tools_of_both_sides(talk: Talk, driver: Driver, model: ScriptedModel):
    with ToolServer(note) as server:
        settings: Any = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        await agent(talk, **settings, clientTools=True)
        model.script(
            [Say("Let me."), UseTool("desk__note", {"text": "tea"}, "c1")],
            [Say("Noted."), UseTool("locate", {"near": "me"}, "c2")],
            [Say("In Bern.")],
        )
        body = {"model": "Advisor", "input": "Note tea, then say where I am", "tools": [LOCATE]}
        asking = (await driver.do("helper", given=[body]))["final"]
        assert [it["type"] for it in asking["output"]] == ["message", "mcp_approval_request"]
        request = asking["output"][-1]
        answer = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
        body = {"input": [answer], "previous_response_id": asking["id"], "stream": True}
        events = await driver.do("stream", path="responses.create", given=[body])
        calling = events[-1]["response"]
        assert [it["type"] for it in calling["output"]] == ["mcp_call", "message", "function_call"]
        assert "noted tea" in calling["output"][0]["output"]
        assert len(server.uses) == 1
        call = calling["output"][-1]
        assert json.loads(call["arguments"]) == {"near": "me"}
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "Bern"}
        final = await respond(driver, input=[output], previous_response_id=calling["id"])
        assert final["output_text"] == "In Bern."


async def test_conversation_with_files(talk: Talk, driver: Driver, model: ScriptedModel):
    await agent(talk)
    file = await driver.do("upload", fileName="notes.txt", text="Tea at five.")
    assert await driver.do("content", id=file["id"]) == "Tea at five."
    made = await driver.do("call", path="conversations.create", given=[{"metadata": {"topic": "tea"}}])
    parts = [{"type": "input_text", "text": "When?"}, {"type": "input_file", "file_id": file["id"]}]
    model.script([Say("At five.")], [Say("It is.")])
    asked = [{"role": "user", "content": parts}]
    await respond(driver, model="Advisor", conversation=made["id"], input=asked)
    last = await respond(driver, model="Advisor", conversation={"id": made["id"]}, input="Is it tea?")
    assert last["conversation"] == {"id": made["id"]}
    assert "Tea at five." in str(model.requests[-1].body["messages"])
    items = await driver.do("list", path="conversations.items.list", given=[made["id"], {"limit": 2}])
    texts = [it["content"][0]["text"] for it in items]
    assert texts == ["It is.", "Is it tea?", "At five.", "When?"]
    one = await driver.do(
        "call",
        path="conversations.items.retrieve",
        given=[items[0]["id"], {"conversation_id": made["id"]}],
    )
    assert one["content"] == items[0]["content"]
    for path, *given in (
        ("conversations.retrieve", made["id"]),
        ("conversations.delete", made["id"]),
        ("conversations.items.list", made["id"]),
        ("responses.retrieve", last["id"]),
        ("responses.cancel", last["id"]),
        ("responses.create", {"input": "Hi", "previous_response_id": last["id"]}),
        ("responses.create", {"input": "Hi", "conversation": made["id"]}),
        ("responses.create", {"model": "Advisor", "input": asked}),
        ("files.content", file["id"]),
    ):
        assert (await refused(driver, path, *given, name="b"))["class"] == "NotFoundError", path
    assert (await driver.do("call", path="conversations.delete", given=[made["id"]]))["deleted"]


async def test_refusals_are_the_packages_classes(talk: Talk, driver: Driver, model: ScriptedModel):
    await agent(talk)
    unknown = await refused(driver, "responses.create", {"model": "gpt-5", "input": "Hi"})
    assert (unknown["class"], unknown["code"], unknown["param"]) == (
        "NotFoundError",
        "model_not_found",
        "model",
    )
    wrong = await refused(driver, "responses.create", {"model": "Advisor", "input": {"role": "user"}})
    assert (wrong["class"], wrong["type"]) == ("BadRequestError", "invalid_request_error")
    nowhere = await refused(driver, "images.generate", {"prompt": "A dot"})
    assert (nowhere["class"], nowhere["type"]) == ("NotFoundError", "invalid_request_error")
    await driver.do("open", name="stranger", url=talk.url, key="wrong")
    stranger = await refused(driver, "models.list", name="stranger")
    assert (stranger["class"], stranger["code"]) == ("AuthenticationError", "invalid_api_key")
    body = {"name": "reader", "scopes": ["read"]}
    reading = (await talk.client.post("/api/keys", json=body)).json()
    await driver.do("open", name="reader", url=talk.url, key=reading["key"])
    narrow = await refused(driver, "responses.create", {"model": "Advisor", "input": "Hi"}, name="reader")
    assert narrow["class"] == "PermissionDeniedError"
    gate = Gate()
    model.script([Say("One "), Wait(gate)], [Say("One "), Fail("Overloaded.", "invalid_request_error")])
    begun = await respond(driver, model="Advisor", input="Count", background=True)
    busy = await refused(driver, "responses.create", {"input": "More", "previous_response_id": begun["id"]})
    assert busy["class"] == "ConflictError"
    gate.open()
    failed = await respond(driver, model="Advisor", input="Hi")
    assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
