"""Turns that ask their user: a call that waits for leave, a question, and every way in which that can end."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.http.direct import run_sql
from tests.talking import JSON, Talk
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.user import User
from threadkeep.storage import approvals, turn_log
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.storage.turns import PLAIN_LOG_VERSION
from threadkeep.testing import Say, ScriptedModel, ToolServer, UseTool, until


def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


def look() -> str:
    """Looks."""
    return "seen"


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with ToolServer(send, reading=[look]) as server:
        yield server


@pytest.fixture
def talk(talk_with_tools: Talk) -> Talk:
    return talk_with_tools


async def asking(talk: Talk, server: ToolServer, **settings: Any) -> str:
    """A conversation with an agent that asks before it sends."""
    rules = {"post.send": {"access": "ask"}}
    servers = {"post": server.settings | {"trustAnnotations": True}}
    return await talk.titled_conversation(settings={"mcpServers": servers, "tools": rules, **settings})


async def waiting(talk: Talk, conversation: str, content: str = "Send it.") -> dict[str, Any]:
    """Sends a message whose turn pauses; what it waits for."""
    path = f"/api/conversations/{conversation}/messages?wait=true"
    response = await talk.client.post(path, json={"content": content}, headers=JSON)
    assert response.status_code == 202, response.text
    assert response.json()["status"] == "WAITING"
    return response.json()


async def decide(talk: Talk, asked: dict[str, Any], **body: Any) -> httpx.Response:
    path = f"/api/turns/{asked['turnId']}/approvals/{asked['requestId']}"
    return await talk.client.post(path, json=body)


async def reply(talk: Talk, turn_id: str) -> dict[str, Any]:
    """The reply of a turn, once it has ended."""
    await talk.events(turn_id)
    turn = (await talk.client.get(f"/api/turns/{turn_id}")).json()
    messages = await talk.messages(turn["conversationId"])
    return next(it for it in messages if it["id"] == turn["assistantMessageId"])


def calls_of(message: dict[str, Any]) -> dict[str, Any]:
    return {it["toolName"]: it for it in message["parts"] if it["type"] == "tool_call"}


async def test_call_waits_for_permission_and_the_others_run_first(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script([UseTool("post__send", {"to": "Ada"}), UseTool("post__look")], [Say("Done.")])
    paused = await waiting(talk, await asking(talk, server))
    (asked,) = paused["approvals"]
    assert (asked["kind"], asked["toolName"], asked["server"]) == ("tool", "send", "post")
    assert asked["arguments"] == {"to": "Ada"}
    assert [use.tool_name for use in server.uses] == ["look"]
    assert (await talk.client.get("/api/approvals")).json()["items"] == [asked]
    conversation = (await talk.client.get(f"/api/conversations/{asked['conversationId']}")).json()
    assert (asked["conversationTitle"], asked["agentId"]) == (conversation["title"], conversation["agentId"])
    turn = (await talk.client.get(f"/api/turns/{asked['turnId']}")).json()
    assert turn["status"] == "WAITING"
    allowed = await decide(talk, asked, action="allow")
    assert (allowed.status_code, allowed.json()["id"]) == (200, asked["turnId"])
    message = await reply(talk, asked["turnId"])
    assert (message["status"], message["content"]) == ("COMPLETED", "Done.")
    assert [use.tool_name for use in server.uses] == ["look", "send"]
    approval = calls_of(message)["send"]["approval"]
    assert (approval["requestId"], approval["action"]) == (asked["requestId"], "allow")
    assert (await talk.client.get("/api/approvals")).json()["items"] == []
    kinds = [event["type"] for event in await talk.events(asked["turnId"])]
    assert kinds.count("approval_request") == kinds.count("approval_response") == 1


async def test_same_decision_again_changes_nothing_and_another_one_is_refused(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("Done.")])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    responses = await asyncio.gather(*(decide(talk, asked, action="allow") for _ in range(5)))
    assert {it.status_code for it in responses} == {200}
    other = await decide(talk, asked, action="deny")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "APPROVAL_ANSWERED")
    await reply(talk, asked["turnId"])
    assert len(server.uses) == 1


async def test_of_two_decisions_at_once_one_counts(talk: Talk, model: ScriptedModel, server: ToolServer):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("Done.")])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    responses = await asyncio.gather(decide(talk, asked, action="allow"), decide(talk, asked, action="deny"))
    assert sorted(it.status_code for it in responses) == [200, 409]
    message = await reply(talk, asked["turnId"])
    assert message["status"] == "COMPLETED"
    allowed = responses[0].status_code == 200
    assert (calls_of(message)["send"]["status"], len(server.uses)) == (
        ("ok", 1) if allowed else ("denied", 0)
    )


async def test_denied_call_never_runs_and_the_model_is_told(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("I did not.")])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    assert (await decide(talk, asked, action="deny")).status_code == 200
    message = await reply(talk, asked["turnId"])
    assert (message["content"], calls_of(message)["send"]["status"]) == ("I did not.", "denied")
    assert server.uses == []
    assert "The user denied this call" in str(model.requests[-1].body)


async def test_edited_call_runs_with_the_users_arguments_and_says_so(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("Done.")])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    wrong = await decide(talk, asked, action="edit", arguments={"to": 1})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (422, "arguments")
    assert (await decide(talk, asked, action="edit", arguments={"to": "Bob"})).status_code == 200
    message = await reply(talk, asked["turnId"])
    assert server.uses[0].arguments == {"to": "Bob"}
    call = calls_of(message)["send"]
    assert (call["arguments"], call["approval"]["arguments"]) == ({"to": "Ada"}, {"to": "Bob"})
    sent = str(model.requests[-1].body)
    assert "The user changed the arguments to" in sent
    assert "sent to Bob" in sent


async def test_permission_for_the_conversation_is_asked_for_once(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    once = [UseTool("post__send", {"to": "Ada"})]
    model.script(once, [Say("One.")], once, [Say("Two.")], once)
    conversation = await asking(talk, server)
    (asked,) = (await waiting(talk, conversation))["approvals"]
    await decide(talk, asked, action="allow", scope="conversation")
    await reply(talk, asked["turnId"])
    assert (await talk.ask(conversation, "Again."))["content"] == "Two."
    assert len(server.uses) == 2
    await waiting(talk, await asking(talk, server))  # another conversation asks


async def allowed_tools(talk: Talk, conversation: str) -> list[tuple[str, str]]:
    listed = await talk.client.get(f"/api/conversations/{conversation}/allowed-tools")
    return [(it["server"], it["name"]) for it in listed.json()["items"]]


async def test_permission_for_the_conversation_is_listed_and_taken_back(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    once = [UseTool("post__send", {"to": "Ada"})]
    model.script(once, [Say("One.")], once)
    conversation = await asking(talk, server)
    (asked,) = (await waiting(talk, conversation))["approvals"]
    assert await allowed_tools(talk, conversation) == []
    await decide(talk, asked, action="allow", scope="conversation")
    await reply(talk, asked["turnId"])
    assert await allowed_tools(talk, conversation) == [("post", "send")]
    path = f"/api/conversations/{conversation}/allowed-tools"
    other = await talk.client.delete(path, params={"server": "post", "tool": "look"})
    assert (other.status_code, await allowed_tools(talk, conversation)) == (204, [("post", "send")])
    taken = await talk.client.delete(path, params={"server": "post", "tool": "send"})
    assert (taken.status_code, await allowed_tools(talk, conversation)) == (204, [])
    await waiting(talk, conversation, "Again.")
    assert len(server.uses) == 1


async def test_permission_taken_back_while_a_turn_runs_counts_for_its_next_call(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    send_it = [UseTool("post__send", {"to": "Ada"})]
    model.script(send_it, [UseTool("post__look")], send_it)
    conversation = await asking(
        talk, server, tools={"post.send": {"access": "ask"}, "post.look": {"access": "ask"}}
    )
    (asked,) = (await waiting(talk, conversation))["approvals"]
    await decide(talk, asked, action="allow", scope="conversation")
    await until(lambda: is_status(talk, asked["turnId"], "WAITING"))
    path = f"/api/conversations/{conversation}/allowed-tools"
    await talk.client.delete(path, params={"server": "post", "tool": "send"})
    (look,) = (await talk.client.get("/api/approvals")).json()["items"]
    await decide(talk, look, action="allow")
    await until(lambda: asks_for(talk, "send"))
    assert [use.tool_name for use in server.uses] == ["send", "look"]


async def asks_for(talk: Talk, tool: str) -> bool:
    items = (await talk.client.get("/api/approvals")).json()["items"]
    return [it["toolName"] for it in items] == [tool]


@pytest.mark.parametrize(
    "change",
    [
        {"url": "{url}?to=elsewhere"},
        {"headers": {"Account": "another"}},
    ],
    ids=["address", "account"],
)
async def test_permission_for_the_conversation_ends_with_the_definition_of_the_tool(
    talk: Talk, model: ScriptedModel, server: ToolServer, change: dict[str, Any]
):
    once = [UseTool("post__send", {"to": "Ada"})]
    model.script(once, [Say("One.")], once)
    conversation = await asking(talk, server)
    (asked,) = (await waiting(talk, conversation))["approvals"]
    await decide(talk, asked, action="allow", scope="conversation")
    await reply(talk, asked["turnId"])
    agent = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    if address := change.get("url"):
        change = {"url": address.format(**server.settings)}
    changed = {**server.settings, "trustAnnotations": True, **change}
    body = {"settings": {"mcpServers": {"post": changed}}}
    assert (await talk.client.patch(f"/api/agents/{agent}", json=body)).status_code == 200
    await waiting(talk, conversation, "Again.")
    assert len(server.uses) == 1


async def test_tools_of_an_agent_are_listed_with_what_a_call_does(talk: Talk, server: ToolServer):
    conversation = await asking(talk, server)
    agent = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]

    async def effects() -> dict[str, str]:
        listed = (await talk.client.get(f"/api/agents/{agent}/tools")).json()["items"]
        return {f"{it['server']}.{it['name']}": it["effect"] for it in listed}

    ours = await effects()
    assert ours["retriever.search_documents"] == "read"
    assert not any(name.startswith(("post.", "user.", "guide.")) for name in ours)
    tested = (await talk.client.post(f"/api/agents/{agent}/mcp-servers/post/test")).json()
    assert {it["name"]: it["effect"] for it in tested["tools"]} == {"send": "write", "look": "read"}
    assert await effects() == {**ours, "post.send": "write", "post.look": "read"}


async def test_tool_that_a_rule_forbids_never_runs(talk: Talk, model: ScriptedModel, server: ToolServer):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("No.")])
    conversation = await asking(talk, server, tools={"*": {"access": "deny"}})
    message = await talk.ask(conversation, "Send it.")
    assert (message["status"], calls_of(message)["send"]["status"]) == ("COMPLETED", "denied")
    assert server.uses == []


async def test_tool_that_a_rule_forbids_is_not_offered_and_does_not_run_if_called_all_the_same(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script([UseTool("post__send", {"to": "Ada"}), UseTool("post__look")], [Say("I only looked.")])
    conversation = await asking(talk, server, tools={"post.send": {"access": "deny"}})
    message = await talk.ask(conversation, "Send it.")
    for request in model.requests:
        offered = {it["function"]["name"] for it in request.body["tools"]}
        assert {name for name in offered if name.startswith("post__")} == {"post__look"}
    receipt = (await talk.client.get(f"/api/turns/{message['turnId']}/context")).json()
    assert "post__look" in receipt["tools"]
    assert "post__send" not in receipt["tools"]
    calls = calls_of(message)
    assert (calls["send"]["status"], calls["send"]["server"]) == ("denied", "post")
    assert calls["look"]["status"] == "ok"
    assert [use.tool_name for use in server.uses] == ["look"]


async def test_several_requests_of_one_turn_are_decided_one_by_one(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script(
        [UseTool("post__send", {"to": "Ada"}, "1"), UseTool("post__send", {"to": "Bob"}, "2")], [Say("Done.")]
    )
    first, second = (await waiting(talk, await asking(talk, server)))["approvals"]
    await decide(talk, second, action="allow")
    await until(lambda: len(server.uses) == 1)
    await until(lambda: is_status(talk, first["turnId"], "WAITING"))
    assert (await talk.client.get("/api/approvals")).json()["items"] == [first]
    await decide(talk, first, action="deny")
    message = await reply(talk, first["turnId"])
    calls = {it["arguments"]["to"]: it["status"] for it in message["parts"] if it["type"] == "tool_call"}
    assert (message["status"], calls) == ("COMPLETED", {"Ada": "denied", "Bob": "ok"})


async def is_status(talk: Talk, turn_id: str, status: str) -> bool:
    return (await talk.client.get(f"/api/turns/{turn_id}")).json()["status"] == status


async def test_question_of_the_model_is_answered_by_the_user(talk: Talk, model: ScriptedModel):
    question = {"question": "Which file?", "choices": ["a.txt", "b.txt"]}
    model.script([Say("Hm."), UseTool("ask_user", question)], [Say("b it is.")])
    conversation = await talk.titled_conversation(settings={"askUser": True})
    (asked,) = (await waiting(talk, conversation))["approvals"]
    assert (asked["kind"], asked["message"]) == ("question", "Which file?")
    assert asked["schema"]["enum"] == ["a.txt", "b.txt"]
    wrong = await decide(talk, asked, action="answer", content="c.txt")
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (422, "content")
    assert (await decide(talk, asked, action="answer", content="b.txt")).status_code == 200
    message = await reply(talk, asked["turnId"])
    assert message["content"] == "Hm.\n\nb it is."
    (part,) = [it for it in message["parts"] if it["type"] == "question"]
    assert part["answer"]["content"] == "b.txt"
    assert "b.txt" in str(model.requests[-1].body["messages"][-1])


async def test_new_message_ends_a_waiting_turn_and_starts_its_own(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("Instead.")])
    conversation = await asking(talk, server)
    (asked,) = (await waiting(talk, conversation))["approvals"]
    instead = await talk.ask(conversation, "Never mind.")
    assert (instead["status"], instead["content"]) == ("COMPLETED", "Instead.")
    before = await reply(talk, asked["turnId"])
    assert (before["status"], calls_of(before)["send"]["status"]) == ("CANCELLED", "denied")
    assert server.uses == []
    assert "The user didn't answer" in str(model.requests[-1].body)
    late = await decide(talk, asked, action="allow")
    assert (late.status_code, late.json()["error"]["code"]) == (410, "APPROVAL_EXPIRED")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE tk_turn_chunks SET events = events || 'x' WHERE turn_id = ?",
        "DELETE FROM tk_turn_chunks WHERE turn_id = ? AND first_seq = 2",
    ],
    ids=["unreadable", "missing"],
)
async def test_new_message_ends_a_waiting_turn_whose_log_is_damaged(
    talk: Talk, model: ScriptedModel, server: ToolServer, tmp_path: Path, damage: str
):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("Instead.")])
    conversation = await asking(talk, server)
    (asked,) = (await waiting(talk, conversation))["approvals"]
    run_sql(f"sqlite:///{tmp_path / 'data' / 'threadkeep.db'}", damage, asked["turnId"])
    instead = await talk.ask(conversation, "Never mind.")
    assert (instead["status"], instead["content"]) == ("COMPLETED", "Instead.")
    assert await is_status(talk, asked["turnId"], "CANCELLED")
    assert server.uses == []


async def test_decision_on_a_turn_whose_log_is_damaged_ends_it(
    talk: Talk, model: ScriptedModel, server: ToolServer, tmp_path: Path
):
    model.script([UseTool("post__send", {"to": "Ada"})])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    gap = "DELETE FROM tk_turn_chunks WHERE turn_id = ? AND first_seq = 2"
    run_sql(f"sqlite:///{tmp_path / 'data' / 'threadkeep.db'}", gap, asked["turnId"])
    assert (await decide(talk, asked, action="allow")).status_code == 200
    turn = (await talk.client.get(f"/api/turns/{asked['turnId']}")).json()
    assert (turn["status"], turn["error"]["code"]) == ("FAILED", "INTERRUPTED")
    assert server.uses == []


async def test_turn_continues_with_a_decision_whose_request_was_cancelled(
    talk: Talk, model: ScriptedModel, server: ToolServer, monkeypatch: pytest.MonkeyPatch
):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("Done.")])
    (asked,) = (await waiting(talk, await asking(talk, server, onCrash="interrupt")))["approvals"]
    stored, pages = asyncio.Event(), SqlTurnLog.pages

    async def pages_later(
        log: SqlTurnLog, turn_id: TurnId, after_seq: int
    ) -> AsyncGenerator[Sequence[LogChunk]]:
        stored.set()
        await asyncio.sleep(0.1)
        async for chunks in pages(log, turn_id, after_seq):
            yield chunks

    monkeypatch.setattr(SqlTurnLog, "pages", pages_later)
    service = (await talk.app.services()).approvals
    allowing = service.decide(
        User(UserId("local")),
        asked["turnId"],
        asked["requestId"],
        Decision(action=ApprovalAction.ALLOW, at=0),
    )
    task = asyncio.create_task(allowing)
    await stored.wait()
    task.cancel()
    message = await reply(talk, asked["turnId"])
    assert (message["status"], message["content"]) == ("COMPLETED", "Done.")
    assert "turn_resumed" not in [event["type"] for event in await talk.events(asked["turnId"])]


async def test_abort_ends_a_waiting_turn(talk: Talk, model: ScriptedModel, server: ToolServer):
    model.script([Say("Well. "), UseTool("post__send", {"to": "Ada"})])
    conversation = await asking(talk, server)
    (asked,) = (await waiting(talk, conversation))["approvals"]
    aborted = (await talk.client.post(f"/api/conversations/{conversation}/abort")).json()
    assert (aborted["status"], aborted["turnId"]) == ("GENERATION_ABORTED", asked["turnId"])
    message = await reply(talk, asked["turnId"])
    assert (message["status"], calls_of(message)["send"]["status"]) == ("CANCELLED", "denied")


@contextmanager
def older(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Meanwhile the node is of a version before the one that its turns were begun with."""
    with monkeypatch.context() as patched:
        for module in (turn_log, approvals):
            patched.setattr(module, "LOG_VERSION", PLAIN_LOG_VERSION - 1)
        yield


async def test_decision_at_a_node_that_is_too_old_for_the_turn_is_left_to_another(
    talk: Talk, model: ScriptedModel, server: ToolServer, monkeypatch: pytest.MonkeyPatch
):
    model.script([UseTool("post__send", {"to": "Ada"})], [Say("Done.")])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    with older(monkeypatch):
        decided = await decide(talk, asked, action="allow")
        assert (decided.status_code, decided.json()["status"]) == (200, "RUNNING")
        assert server.uses == []
    message = await reply(talk, asked["turnId"])
    assert (message["status"], calls_of(message)["send"]["status"]) == ("COMPLETED", "ok")


async def test_abort_at_a_node_that_is_too_old_for_a_waiting_turn_is_left_to_another(
    talk: Talk, model: ScriptedModel, server: ToolServer, monkeypatch: pytest.MonkeyPatch
):
    model.script([UseTool("post__send", {"to": "Ada"})])
    conversation = await asking(talk, server)
    (asked,) = (await waiting(talk, conversation))["approvals"]

    async def is_left() -> bool:
        return (await talk.client.get(f"/api/turns/{asked['turnId']}")).json()["status"] == "RUNNING"

    with older(monkeypatch):
        aborting = asyncio.create_task(talk.client.post(f"/api/conversations/{conversation}/abort"))
        await until(is_left)
    assert (await aborting).json()["status"] == "GENERATION_ABORTED"
    message = await reply(talk, asked["turnId"])
    assert (message["status"], calls_of(message)["send"]["status"]) == ("CANCELLED", "denied")


async def test_request_that_nobody_decides_in_time_ends_its_turn(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    model.script([UseTool("post__send", {"to": "Ada"})])
    conversation = await asking(talk, server, approvalTimeoutS=0.01)
    (asked,) = (await waiting(talk, conversation))["approvals"]
    message = await reply(talk, asked["turnId"])
    assert (message["status"], calls_of(message)["send"]["status"]) == ("CANCELLED", "denied")
    assert calls_of(message)["send"]["approval"]["action"] == "expire"
    late = await decide(talk, asked, action="allow")
    assert (late.status_code, late.json()["error"]["code"]) == (410, "APPROVAL_EXPIRED")
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"action": "answer", "content": "x"}, "action"),
        ({"action": "edit"}, "arguments"),
        ({"action": "allow", "arguments": {"to": "Bob"}}, "arguments"),
        ({"action": "allow", "content": "x"}, "content"),
        ({"action": "sing"}, "action"),
    ],
)
async def test_decision_that_does_not_fit_is_refused_and_the_turn_keeps_waiting(
    talk: Talk, model: ScriptedModel, server: ToolServer, body: dict[str, Any], param: str
):
    model.script([UseTool("post__send", {"to": "Ada"})])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    refused = await decide(talk, asked, **body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, param)
    assert await is_status(talk, asked["turnId"], "WAITING")


async def test_request_that_does_not_exist_is_not_found(talk: Talk, model: ScriptedModel, server: ToolServer):
    model.script([UseTool("post__send", {"to": "Ada"})])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    for request_id in ("x", asked["turnId"]):
        missing = await decide(talk, {**asked, "requestId": request_id}, action="allow")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "APPROVAL_NOT_FOUND")
