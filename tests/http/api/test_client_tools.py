"""Tools that the client runs: a call pauses the turn, and the client's result continues it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.talking import JSON, Talk, talking
from threadkeep.testing import Gate, Say, ScriptedModel, ToolServer, UseTool, Wait, scripted_settings, until

COLOR = {
    "name": "set_color",
    "description": "Changes the page's color.",
    "parameters": {
        "type": "object",
        "properties": {"color": {"type": "string"}},
        "required": ["color"],
    },
}
RED = UseTool("set_color", {"color": "red"}, "c1")


def look() -> str:
    """Looks."""
    return "seen"


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with ToolServer(reading=[look]) as server:
        yield server


@pytest.fixture
def talk(talk_with_tools: Talk) -> Talk:
    return talk_with_tools


async def send(talk: Talk, conversation: str, *tools: Any, key: str = "", **body: Any) -> httpx.Response:
    """Sends a message that brings tools; the response once its turn has ended or waits."""
    path = f"/api/conversations/{conversation}/messages?wait=true"
    headers = JSON | ({"Idempotency-Key": key} if key else {})
    return await talk.client.post(
        path, json={"content": "Paint it.", "tools": tools or [COLOR], **body}, headers=headers
    )


async def waiting(talk: Talk, conversation: str, *tools: Any, **body: Any) -> list[dict[str, Any]]:
    """What the turn of such a message waits for."""
    response = await send(talk, conversation, *tools, **body)
    assert response.status_code == 202, response.text
    return response.json()["approvals"]


async def answer(talk: Talk, asked: dict[str, Any], **body: Any) -> httpx.Response:
    path = f"/api/turns/{asked['turnId']}/approvals/{asked['requestId']}"
    return await talk.client.post(path, json=body)


async def next_requests(talk: Talk) -> list[dict[str, Any]]:
    """The open requests, as soon as there are any."""
    found: list[dict[str, Any]] = []

    async def is_asked() -> bool:
        found[:] = (await talk.client.get("/api/approvals")).json()["items"]
        return bool(found)

    await until(is_asked)
    return found


async def reply(talk: Talk, turn_id: str) -> dict[str, Any]:
    """The reply of a turn, once it has ended."""
    await talk.events(turn_id)
    turn = (await talk.client.get(f"/api/turns/{turn_id}")).json()
    messages = await talk.messages(turn["conversationId"])
    return next(it for it in messages if it["id"] == turn["assistantMessageId"])


def calls_of(message: dict[str, Any]) -> dict[str, Any]:
    return {it["toolCallId"]: it for it in message["parts"] if it["type"] == "tool_call"}


def offered(model: ScriptedModel) -> set[str]:
    """The tools of the last request to the model."""
    return {it["function"]["name"] for it in model.requests[-1].body.get("tools", [])}


async def test_call_waits_for_the_clients_result_and_continues_with_it(talk: Talk, model: ScriptedModel):
    model.script([Say("Let me. "), RED], [Say("It is red.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    assert (asked["kind"], asked["server"], asked["toolName"]) == ("client_tool", "client", "set_color")
    assert (asked["toolCallId"], asked["arguments"]) == ("c1", {"color": "red"})
    assert asked["schema"] == COLOR["parameters"]
    assert (await talk.client.get("/api/approvals")).json()["items"] == [asked]
    assert "set_color" in offered(model)
    content = {"was": "blue", "is": ["red", None, 1.5]}
    done = await answer(talk, asked, action="result", content=content)
    assert done.status_code == 200, done.text
    message = await reply(talk, asked["turnId"])
    assert (message["status"], message["content"]) == ("COMPLETED", "Let me. \n\nIt is red.")
    call = calls_of(message)["c1"]
    assert (call["server"], call["status"], call["result"]) == ("client", "ok", content)
    assert (call["clientRequest"]["requestId"], call["clientRequest"]["action"]) == (
        asked["requestId"],
        "result",
    )
    sent = model.requests[-1].body["messages"][-1]
    assert (sent["role"], sent["tool_call_id"]) == ("tool", "c1")
    assert '"blue"' in sent["content"]
    events = await talk.events(asked["turnId"])
    (request,) = [it for it in events if it["type"] == "approval_request"]
    assert (request["kind"], request["tool_call_id"]) == ("client_tool", "c1")
    (response,) = [it for it in events if it["type"] == "approval_response"]
    assert response["action"] == "result"
    assert "content" not in response  # the call's result has it


async def test_failure_at_the_client_is_an_error_that_the_model_reads(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("I could not.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    await answer(talk, asked, action="result", error="There is no page.")
    call = calls_of(await reply(talk, asked["turnId"]))["c1"]
    assert (call["status"], call["error"], call["result"]) == ("error", "There is no page.", None)
    assert "There is no page." in model.requests[-1].body["messages"][-1]["content"]


async def test_denied_call_is_a_result_that_the_model_reads(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("Then not.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    assert (await answer(talk, asked, action="deny")).status_code == 200
    message = await reply(talk, asked["turnId"])
    assert (message["content"], calls_of(message)["c1"]["status"]) == ("Then not.", "denied")


async def test_nothing_is_a_result(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("Done.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    await answer(talk, asked, action="result")
    call = calls_of(await reply(talk, asked["turnId"]))["c1"]
    assert (call["status"], call["result"]) == ("ok", None)


async def test_same_result_again_changes_nothing_and_another_one_is_refused(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("Done.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    results = [answer(talk, asked, action="result", content={"a": 1, "b": 2}) for _ in range(4)]
    assert {it.status_code for it in await asyncio.gather(*results)} == {200}
    assert (await answer(talk, asked, action="result", content={"b": 2, "a": 1})).status_code == 200
    for other in ({"content": {"a": 2}}, {"error": "No."}):
        refused = await answer(talk, asked, action="result", **other)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "APPROVAL_ANSWERED")
    assert calls_of(await reply(talk, asked["turnId"]))["c1"]["result"] == {"a": 1, "b": 2}


async def test_answer_that_is_no_result_is_refused(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("Done.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("action", {"action": "allow"}),
        ("action", {"action": "answer", "content": "red"}),
        ("content", {"action": "deny", "content": 1}),
        ("error", {"action": "deny", "error": "No."}),
    ]
    for param, body in wrong:
        refused = await answer(talk, asked, **body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, param), body
    assert (await answer(talk, asked, action="result", content="red")).status_code == 200


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, {"content": 1, "error": "No."}),
        (422, {"error": " "}),
        (422, {"content": 1, "arguments": {}}),
        (413, {"content": "x" * 2000}),
        (413, {"error": "x" * 2000}),
    ],
)
async def test_result_that_is_refused_ends_its_call_with_an_error_and_the_turn_goes_on(
    status: int, body: dict[str, Any], talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.services.approvals.MOST_RESULT_BYTES", 1000)
    model.script([RED], [Say("Done.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    refused = await answer(talk, asked, action="result", **body)
    assert refused.status_code == status
    message = await reply(talk, asked["turnId"])
    call = calls_of(message)["c1"]
    assert (message["status"], message["content"], call["status"]) == ("COMPLETED", "Done.", "error")
    assert call["error"].endswith(refused.json()["error"]["message"])
    assert (await answer(talk, asked, action="result", **body)).status_code == status  # a retry is, too


async def test_large_result_is_kept_whole_and_cut_for_the_model(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("Long.")])
    (asked,) = await waiting(talk, await talk.titled_conversation())
    text = "tea " * 200_000
    assert (await answer(talk, asked, action="result", content=text)).status_code == 200
    message = await reply(talk, asked["turnId"])
    assert calls_of(message)["c1"]["result"] == text
    assert len(model.requests[-1].body["messages"][-1]["content"]) < len(text) / 2


async def test_tools_of_servers_run_while_the_client_runs_its_own(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    both = [COLOR, {"name": "where", "description": "Where is the user?"}]
    model.script([RED, UseTool("post__look", id="c2"), UseTool("where", id="c3")], [Say("Done.")])
    servers = {"post": server.settings | {"trustAnnotations": True}}
    conversation = await talk.titled_conversation(settings={"mcpServers": servers})
    first, second = await waiting(talk, conversation, *both)
    assert [use.tool_name for use in server.uses] == ["look"]
    await answer(talk, second, action="result", content="Bern")
    path = f"/api/turns/{first['turnId']}"

    async def is_waiting() -> bool:
        return (await talk.client.get(path)).json()["status"] == "WAITING"

    await until(is_waiting)
    assert (await talk.client.get("/api/approvals")).json()["items"] == [first]
    assert len(model.requests) == 1
    await answer(talk, first, action="result", content="red")
    calls = calls_of(await reply(talk, first["turnId"]))
    assert {id_: it["result"] for id_, it in calls.items()} == {
        "c1": "red",
        "c2": {"result": "seen"},
        "c3": "Bern",
    }
    assert [it["tool_call_id"] for it in model.requests[-1].body["messages"][-3:]] == ["c1", "c2", "c3"]
    assert len(server.uses) == 1


async def test_arguments_that_do_not_fit_never_reach_the_client(talk: Talk, model: ScriptedModel):
    model.script([UseTool("set_color", {"color": 7}, "c1")], [Say("My mistake.")])
    response = await send(talk, await talk.titled_conversation())
    assert response.status_code == 200, response.text
    assert calls_of(response.json())["c1"]["status"] == "error"


async def test_rule_for_the_client_asks_first_and_the_client_gets_the_users_arguments(
    talk: Talk, model: ScriptedModel
):
    model.script([RED], [Say("Green.")])
    rules = {"client.*": {"access": "ask"}}
    conversation = await talk.titled_conversation(settings={"tools": rules})
    (permission,) = await waiting(talk, conversation)
    assert (permission["kind"], permission["server"]) == ("tool", "client")
    await answer(talk, permission, action="edit", arguments={"color": "green"})
    (asked,) = await next_requests(talk)
    assert (asked["kind"], asked["arguments"]) == ("client_tool", {"color": "green"})
    await answer(talk, asked, action="result", content="done")
    call = calls_of(await reply(talk, asked["turnId"]))["c1"]
    assert (call["approval"]["action"], call["clientRequest"]["action"]) == ("edit", "result")
    assert (call["status"], call["arguments"]) == ("ok", {"color": "red"})
    assert "The user changed the arguments" in model.requests[-1].body["messages"][-1]["content"]


async def test_denied_permission_never_reaches_the_client(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("No.")])
    rules = {"client.set_color": {"access": "ask"}}
    (permission,) = await waiting(talk, await talk.titled_conversation(settings={"tools": rules}))
    await answer(talk, permission, action="deny")
    call = calls_of(await reply(talk, permission["turnId"]))["c1"]
    assert (call["status"], "clientRequest" in call) == ("denied", False)


async def test_rules_for_all_tools_leave_the_clients_alone_and_its_own_remove_them(
    talk: Talk, model: ScriptedModel
):
    deny, allow = {"access": "deny"}, {"access": "allow"}
    for rules, is_offered in [
        ({"*": deny}, True),
        ({"client.*": deny}, False),
        ({"client.set_color": deny}, False),
        ({"client.*": deny, "client.set_color": allow}, True),
    ]:
        model.script([Say("Well.")])
        assert (
            await send(talk, await talk.titled_conversation(settings={"tools": rules}))
        ).status_code == 200
        assert ("set_color" in offered(model)) is is_offered, rules


async def test_agent_that_takes_no_tools_of_clients_refuses_them(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings={"clientTools": False})
    refused = await send(talk, conversation)
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "tools")
    assert "doesn't accept tools" in refused.json()["error"]["message"]
    endless = COLOR | {"parameters": {"type": "object", "$ref": "#"}}  # nobody looks at it
    refused = await send(talk, conversation, endless)
    assert "doesn't accept tools" in refused.json()["error"]["message"]
    model.script([Say("Hi.")])
    assert (await talk.ask(conversation))["content"] == "Hi."


async def test_operator_can_switch_them_off(model: ScriptedModel, tmp_path: Path):
    settings = scripted_settings(model, data=tmp_path / "data", embedding_url="off", client_tools=False)
    async with talking(settings) as talk:
        refused = await send(talk, await talk.titled_conversation(settings={"clientTools": True}))
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, "tools")


async def test_tools_with_names_of_the_agents_own_or_without_one_are_refused(talk: Talk, server: ToolServer):
    conversation = await talk.titled_conversation(settings={"mcpServers": {"post": server.settings}})
    for tool in (
        {"name": "recall_result"},
        {"name": "post__look"},
        {"name": "a b"},
        {"name": "a", "strict": True},
        {"description": "No name."},
    ):
        refused = await send(talk, conversation, tool)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "INVALID_REQUEST"), tool
        assert refused.json()["error"]["param"].startswith("tools")
    assert await talk.messages(conversation) == []


async def test_other_tools_with_the_same_key_are_another_request(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("Done.")])
    conversation = await talk.titled_conversation()
    (asked,) = await waiting(talk, conversation, key="k")
    assert (await waiting(talk, conversation, key="k"))[0] == asked
    other = await send(talk, conversation, COLOR | {"description": "Other."}, key="k")
    assert (other.status_code, other.json()["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")


async def test_new_message_ends_the_turn_and_the_result_comes_too_late(talk: Talk, model: ScriptedModel):
    model.script([RED], [Say("Instead.")])
    conversation = await talk.titled_conversation()
    (asked,) = await waiting(talk, conversation)
    assert (await talk.ask(conversation, "Never mind."))["content"] == "Instead."
    call = calls_of(await reply(talk, asked["turnId"]))["c1"]
    assert (call["status"], call["error"]) == ("denied", "The client didn't send a result.")
    late = await answer(talk, asked, action="result", content="red")
    assert (late.status_code, late.json()["error"]["code"]) == (410, "APPROVAL_EXPIRED")


async def test_stopped_turn_takes_no_result(talk: Talk, model: ScriptedModel):
    model.script([Say("Well. "), RED])
    conversation = await talk.titled_conversation()
    (asked,) = await waiting(talk, conversation)
    stopped = (await talk.client.post(f"/api/conversations/{conversation}/abort")).json()
    assert (stopped["status"], stopped["content"]) == ("GENERATION_ABORTED", "Well. ")
    late = await answer(talk, asked, action="result", content="red")
    assert (late.status_code, late.json()["error"]["code"]) == (410, "APPROVAL_EXPIRED")


async def test_without_a_result_the_turn_expires_like_any_that_waits(talk: Talk, model: ScriptedModel):
    model.script([RED])
    (asked,) = await waiting(talk, await talk.titled_conversation(settings={"approvalTimeoutS": 0.01}))
    message = await reply(talk, asked["turnId"])
    assert (message["status"], calls_of(message)["c1"]["status"]) == ("CANCELLED", "denied")
    late = await answer(talk, asked, action="result", content="red")
    assert (late.status_code, late.json()["error"]["code"]) == (410, "APPROVAL_EXPIRED")


async def test_regenerating_brings_its_own_tools(talk: Talk, model: ScriptedModel):
    model.script([Say("One.")], [RED], [Say("Two.")])
    conversation = await talk.titled_conversation()
    await talk.ask(conversation)
    assert "set_color" not in offered(model)
    path = f"/api/conversations/{conversation}/regenerate?wait=true"
    response = await talk.client.post(path, json={"tools": [COLOR]}, headers=JSON)
    (asked,) = response.json()["approvals"]
    await answer(talk, asked, action="result", content="red")
    assert (await reply(talk, asked["turnId"]))["content"] == "Two."


async def test_queued_message_keeps_its_tools_and_a_steering_one_has_none(talk: Talk, model: ScriptedModel):
    asking = {"name": "where"}
    gate = Gate()
    model.script([RED], [Wait(gate), Say("One.")], [UseTool("where", id="c2")], [Say("Two.")])
    conversation = await talk.titled_conversation()
    (asked,) = await waiting(talk, conversation)
    path = f"/api/conversations/{conversation}/messages"
    await answer(talk, asked, action="result", content="red")
    await gate.reached()
    body = {"content": "Next.", "tools": [asking]}
    steering = await talk.client.post(path, json=body | {"whenBusy": "steer"}, headers=JSON)
    assert (steering.status_code, steering.json()["error"]["param"]) == (422, "tools")
    queued = await talk.client.post(path, json=body | {"whenBusy": "queue"}, headers=JSON)
    assert (queued.status_code, queued.json()["queued"]) == (202, True)
    gate.open()
    (where,) = await next_requests(talk)
    assert (where["kind"], where["toolName"]) == ("client_tool", "where")
    assert "set_color" not in offered(model)
    await answer(talk, where, action="result", content="Bern")
    assert (await reply(talk, where["turnId"]))["content"] == "Two."
