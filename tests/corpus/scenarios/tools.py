"""Tools, and whom they ask; the files that users send and tools return."""

import base64
from typing import Any

import mcp_types as mcp
from mcp.server.mcpserver import Context
from pydantic import BaseModel

from tests.corpus.scenarios.turns import DIALECTS, EVENTS, MESSAGES, SEND, turn_of
from tests.corpus.stage import JSON, PIXEL, UNKNOWN, Json, Stage
from threadkeep.testing import Gate, Say, Usage, UseTool, Wait

ANSWER = "POST /api/turns/{turn_id}/approvals/{request_id}"


def add(a: float, b: float) -> float:
    """Adds two numbers."""
    return a + b


def fail() -> str:
    """Fails."""
    raise ValueError("The printer is on fire.")


async def count(context: Context) -> str:
    """Counts, and says how far it is."""
    await context.report_progress(1, 2, "half way")
    return "two"


def draw() -> list[Any]:
    """Returns a picture, a file and words."""
    note = mcp.BlobResourceContents(
        uri="file:///notes/合同.txt", mime_type="text/plain", blob=base64.b64encode(b"Buy milk.").decode()
    )
    return [
        mcp.TextContent(type="text", text="drawn"),
        mcp.ImageContent(type="image", data=base64.b64encode(PIXEL).decode(), mime_type="image/png"),
        mcp.EmbeddedResource(type="resource", resource=note),
    ]


def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


class Size(BaseModel):
    """What the shop wants to know."""

    size: int


async def order(context: Context) -> str:
    """Orders a shirt."""
    answered = await context.elicit("Which size?", Size)
    return f"ordered {answered.data.size}" if answered.action == "accept" else answered.action


async def tool_calls(stage: Stage) -> None:
    """Calls that succeed, fail, don't exist, report progress, draw charts and return files."""
    servers = stage.tools(add, fail, count, draw, name="desk")
    conversation = await stage.conversation(settings={"mcpServers": servers})
    rows = [{"month": "May", "sales": 12}, {"month": "June", "sales": 12.5}]
    turn = ""
    for dialect in DIALECTS:
        stage.script(
            [Say("Let me add."), UseTool("desk__add", {"a": 19, "b": 0.50}, id="c1"), Usage(20, 4)],
            [UseTool("desk__fail", {}, id="c2")],
            [UseTool("desk__nothing", {"x": None}, id="c3")],
            [UseTool("desk__add", '{"a": 1, "b":', id="c4")],
            [UseTool("desk__count", {}, id="c5")],
            [UseTool("desk__draw", {}, id="c6")],
            [UseTool("make_chart", {"kind": "bar", "rows": rows, "x": "month", "y": ["sales"]}, id="c7")],
            [Say("It is 19.5."), Usage(50, 6)],
        )
        to: Json = {"wire": dialect, "query": {"dialect": dialect}, "conversation_id": conversation}
        sent = await stage.call(SEND, body={"content": "Add."}, **to)
        turn = turn_of(sent.headers["location"])
    await stage.call(MESSAGES, conversation_id=conversation, query={"order": "desc", "limit": 1})
    await stage.call("GET /api/tool-results", query={"turnId": turn})
    for form in ("json", "md"):
        report = "GET /api/conversations/{conversation_id}/report"
        await stage.call(report, conversation_id=conversation, query={"format": form, "toolName": "add"})
    messages = await stage.quietly("GET", f"/api/conversations/{conversation}/messages")
    for artifact in messages["items"][-1]["artifactIds"]:
        await stage.call("GET /api/artifacts/{artifact_id}", artifact_id=artifact)
        await stage.call("GET /api/artifacts/{artifact_id}", artifact_id=artifact, user="bob")


async def approvals(stage: Stage) -> None:
    """What a turn asks its user: leave for a call, a question, a form; answers of every kind."""
    servers = stage.tools(send, order, name="post")
    rules = {"post.send": {"access": "ask"}}
    settings = {"mcpServers": servers, "tools": rules, "askUser": True}
    conversation = await stage.conversation(settings=settings)
    question = {"question": "Which colour?", "choices": ["red", "blue"]}
    for use, answers in (
        (UseTool("post__send", {"to": "Ada"}, id="c1"), [{"action": "deny"}]),
        (
            UseTool("post__send", {"to": "Ada"}, id="c2"),
            [
                {"action": "maybe"},
                {"action": "answer", "content": "yes"},
                {"action": "edit"},
                {"action": "edit", "arguments": {"to": 7}},
                {"action": "edit", "arguments": {"to": "Grace"}},
                {"action": "edit", "arguments": {"to": "Grace"}},
                {"action": "deny"},
            ],
        ),
        (
            UseTool("ask_user", question, id="c3"),
            [{"action": "allow"}, {"action": "answer", "content": "red"}],
        ),
        (
            UseTool("post__order", {}, id="c4"),
            [
                {"action": "answer", "content": {"size": "large"}},
                {"action": "answer", "content": {"size": 7}},
            ],
        ),
        (UseTool("post__send", {"to": "Ada"}, id="c5"), [{"action": "allow", "scope": "conversation"}]),
    ):
        gate = Gate()  # until all answers are in, so that the turn's status doesn't depend on the moment
        stage.script([use], [Wait(gate), Say("Done.")])
        waited: Json = {"query": {"wait": "true"}, "headers": JSON, "conversation_id": conversation}
        if use.id == "c4":  # this call stays open while it asks, so that its turn doesn't pause
            turn = await stage.begin(conversation, "Order.")
        else:
            turn = (await stage.ask(SEND, body={"content": "Do it."}, **waited))["turnId"]
        request = (await stage.approval())["requestId"]
        await stage.call("GET /api/approvals")
        await stage.call("GET /api/approvals", user="bob")
        for body in answers:
            await stage.call(ANSWER, turn_id=turn, request_id=request, body=body)
        await stage.call(ANSWER, turn_id=turn, request_id=UNKNOWN, body=answers[-1])
        await stage.call(ANSWER, turn_id=turn, request_id=request, body=answers[-1], user="bob")
        gate.open()
        await stage.ended(turn)
        for dialect in DIALECTS:
            await stage.call(EVENTS, wire=dialect, turn_id=turn, query={"dialect": dialect})
    stage.script([UseTool("post__send", {"to": "Bob"}, id="c6")], [Say("Sent.")])
    await stage.call(SEND, body={"content": "Again."}, **waited)
    allowed = "/api/conversations/{conversation_id}/allowed-tools"
    await stage.call(f"GET {allowed}", conversation_id=conversation)
    await stage.call(f"GET {allowed}", conversation_id=conversation, user="bob")
    taken_back = {"server": "post", "tool": "send"}
    await stage.call(f"DELETE {allowed}", conversation_id=conversation, query=taken_back)
    await stage.call(f"GET {allowed}", conversation_id=conversation)
    stage.script([UseTool("ask_user", question, id="c7")])
    turn = (await stage.ask(SEND, body={"content": "Ask."}, **waited))["turnId"]
    request = (await stage.approval())["requestId"]
    await stage.call("POST /api/conversations/{conversation_id}/abort", conversation_id=conversation)
    await stage.call(ANSWER, turn_id=turn, request_id=request, body={"action": "answer", "content": "red"})
    await stage.call(MESSAGES, conversation_id=conversation)


async def client_tools(stage: Stage) -> None:
    """Tools that the client brings and runs: a result, a failure, a refusal, and what is no result."""
    conversation = await stage.conversation(settings={"tools": {"client.print": {"access": "ask"}}})
    tools: list[Json] = [
        {
            "name": "set_color",
            "description": "Changes the page's color.",
            "parameters": {"type": "object", "properties": {"color": {"type": "string"}}},
        },
        {"name": "print"},
    ]
    waited: Json = {"query": {"wait": "true"}, "headers": JSON, "conversation_id": conversation}
    for number, answers in enumerate(
        (
            [
                {"action": "allow"},
                {"action": "result", "content": {"was": "blue"}},
                {"action": "result", "content": {"was": "blue"}},
                {"action": "result", "content": {"was": "red"}},
            ],
            [{"action": "result", "error": "There is no page."}],
            [{"action": "deny"}],
            [
                {"action": "result", "content": 1, "error": "No."},
                {"action": "result", "content": {"was": "blue"}},
            ],
        ),
        1,
    ):
        gate = Gate()  # until all answers are in, so that the turn's status doesn't depend on the moment
        stage.script([UseTool("set_color", {"color": "red"}, id=f"c{number}")], [Wait(gate), Say("Done.")])
        turn = (await stage.ask(SEND, body={"content": "Paint it.", "tools": tools}, **waited))["turnId"]
        request = (await stage.approval())["requestId"]
        for body in answers:
            await stage.call(ANSWER, turn_id=turn, request_id=request, body=body)
        gate.open()
        await stage.ended(turn)
        for dialect in DIALECTS:
            await stage.call(EVENTS, wire=dialect, turn_id=turn, query={"dialect": dialect})
    stage.script([UseTool("print", {}, id="c5")])
    await stage.call(SEND, body={"content": "Print it.", "tools": tools}, **waited)
    await stage.call("POST /api/conversations/{conversation_id}/abort", conversation_id=conversation)
    await stage.call(SEND, body={"content": "Again.", "tools": [{"name": "recall_result"}]}, **waited)
    await stage.call(SEND, body={"content": "Again.", "onDisconnect": "stop"}, **waited)
    await stage.call(MESSAGES, conversation_id=conversation)


async def steering(stage: Stage) -> None:
    """A message that joins the running turn before its next model call."""
    servers = stage.tools(add, name="desk")
    conversation = await stage.conversation(settings={"mcpServers": servers})
    gate = Gate()
    stage.script(
        [Say("Let me add."), Wait(gate), UseTool("desk__add", {"a": 1, "b": 2}, id="c1")],
        [Say("It is 3.")],
    )
    turn = await stage.begin(conversation, "Add.")
    await stage.said(turn)
    await stage.call(
        SEND,
        conversation_id=conversation,
        body={"content": "In words.", "whenBusy": "steer"},
        headers=JSON,
    )
    gate.open()
    await stage.ended(turn)
    for dialect in DIALECTS:
        await stage.call(EVENTS, wire=dialect, turn_id=turn, query={"dialect": dialect})
    await stage.call(MESSAGES, conversation_id=conversation)


async def files(stage: Stage) -> None:
    """Files for messages: uploaded, sent, read in whole and in part."""
    conversation = await stage.conversation()
    upload, read = "POST /api/files", "GET /api/files/{file_id}"
    made = await stage.ask(upload, files=[("pixel.png", PIXEL), ("合同.txt", "Buy milk.\n牛奶".encode())])
    pixel, note = [it["id"] for it in made["items"]]
    for name, data in (("a.bin", b"\0\1\2"), ("empty.txt", b""), ("broken.png", PIXEL[:40])):
        await stage.call(upload, files=[(name, data)])
    await stage.call(upload, body={})
    stage.script([Say("A pixel and a note.")])
    body = {"content": "What are these?", "files": [pixel, note]}
    await stage.call(SEND, wire="events", conversation_id=conversation, body=body)
    await stage.call(SEND, conversation_id=conversation, body={**body, "files": [pixel, pixel]}, headers=JSON)
    await stage.call(SEND, conversation_id=conversation, body=body, user="bob", headers=JSON)
    for headers in (
        {},
        {"Range": "bytes=4-6"},
        {"Range": "bytes=-3"},
        {"Range": "bytes=99-"},
        {"Range": "cows"},
    ):
        await stage.call(read, file_id=note, headers=headers)
    await stage.call(read, file_id=note, headers={"Range": "bytes=0-1", "If-Range": '"other"'})
    await stage.call(read, file_id=pixel)
    await stage.call(read, file_id=pixel, query={"preview": "true"})
    await stage.call(read, file_id=pixel, user="bob")
    await stage.call(read, file_id=UNKNOWN)
    await stage.call(MESSAGES, conversation_id=conversation)


SCENARIOS = (tool_calls, approvals, client_tools, steering, files)
