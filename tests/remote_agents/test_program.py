"""Turns of agents that another server runs: what is shown, kept, asked and sent next time."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.remote_agents.ag_ui_server import AgUiServer, Json, Request, Script, ag_ui_server
from threadkeep.client import TurnWaiting
from threadkeep.testing import RunningApp, running_app, until
from threadkeep.wire.messages import MessageView
from threadkeep.wire.parts import StepPartView
from threadkeep.wire.views import ConversationView

SECRET_HEADER = "Bearer value-of-a-header-4711"
APPROVAL: Json = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}},
    "required": ["approved"],
}


async def talk_to(app: RunningApp, server: AgUiServer, **engine: object) -> ConversationView:
    """A conversation with an agent that the server runs."""
    given = {"kind": "ag-ui", "url": server.url, "headers": {"Authorization": SECRET_HEADER}, **engine}
    return await app.conversation("Remote", engine=given)


async def reply_to(app: RunningApp, server: AgUiServer, text: str = "Hi", **engine: object) -> MessageView:
    """How a turn ended."""
    conversation = await talk_to(app, server, **engine)
    return await app.client.reply((await app.client.start(conversation.id, text)).turn_id)


def parts_of(reply: MessageView) -> list[str]:
    return [type(it).__name__.removesuffix("PartView") for it in reply.parts]


async def hello(request: Request) -> None:
    await request.begin()
    await request.say("Hello from afar.")
    await request.finish()


async def test_reply_is_shown_and_the_thread_is_sent_with_its_ids():
    async with ag_ui_server(hello) as server, running_app() as app:
        conversation = await talk_to(app, server)
        assert (await app.client.ask(conversation.id, "Hi")).content == "Hello from afar."
        await app.client.ask(conversation.id, "Again")
        first, second = server.bodies
        assert first["threadId"] == second["threadId"] == conversation.id
        assert first["runId"] != second["runId"]
        messages = [(it["role"], it["content"]) for it in second["messages"]]
        assert messages == [("user", "Hi"), ("assistant", "Hello from afar."), ("user", "Again")]
        assert second["messages"][1]["id"] == "m1"
        ids = [it.id async for it in app.client.messages(conversation.id)]
        assert first["messages"][0]["id"] in ids
        assert server.requests[0].headers["authorization"] == SECRET_HEADER.lower()
        assert app.model.requests == []


async def everything(request: Request) -> None:
    await request.begin()
    await request.event("STEP_STARTED", stepName="look up")
    await request.event("REASONING_MESSAGE_START", messageId="t1", role="reasoning")
    await request.event("REASONING_MESSAGE_CONTENT", messageId="t1", delta="Let me see. ")
    await request.event("REASONING_MESSAGE_END", messageId="t1")
    await request.call("c1", "find_order", {"id": 7})
    await request.event("TOOL_CALL_RESULT", toolCallId="c1", messageId="r1", content='{"total": 12}')
    await request.event("STEP_FINISHED", stepName="look up")
    await request.event(
        "ACTIVITY_SNAPSHOT", messageId="a1", activityType="PLAN", content={"title": "Two steps left"}
    )
    await request.event("TEXT_MESSAGE_CHUNK", messageId="m1", role="assistant", delta="It costs ")
    await request.event("TEXT_MESSAGE_CHUNK", delta="12.")
    await request.event("RAW", event={"of": "a framework"})
    await request.event("SOMETHING_NEWER", data=1)
    await request.finish(outcome={"type": "success"})


async def test_thoughts_calls_steps_and_activities_of_the_server_are_part_of_the_reply():
    async with ag_ui_server(everything) as server, running_app() as app:
        reply = await reply_to(app, server)
        assert reply.content == "It costs 12."
        assert parts_of(reply) == ["Step", "Thought", "ToolCall", "Step", "Text"]
        (call,) = reply.tool_calls
        assert (call.tool_name, call.server, call.status) == ("find_order", "agent", "ok")
        assert (call.arguments, call.result) == ({"id": 7}, {"total": 12})
        steps = [it for it in reply.parts if isinstance(it, StepPartView)]
        assert [(it.name, it.title, it.status) for it in steps] == [
            ("look up", None, "ok"),
            ("PLAN", "Two steps left", "ok"),
        ]


async def counting(request: Request) -> None:
    count: int = request.body["state"].get("count", 0)
    await request.begin()
    await request.event("STATE_SNAPSHOT", snapshot={"count": count, "seen": []})
    await request.event("STATE_DELTA", delta=[{"op": "replace", "path": "/count", "value": count + 1}])
    await request.say(f"{count + 1}", f"m{count}")
    await request.finish()


async def test_state_of_the_server_follows_the_branch():
    async with ag_ui_server(counting) as server, running_app() as app:
        conversation = await talk_to(app, server)
        assert (await app.client.ask(conversation.id, "Count")).content == "1"
        second = await app.client.ask(conversation.id, "Count")
        assert second.content == "2"
        async with aclosing(app.client.regenerate(conversation.id)) as events:
            async for _ in events:
                pass
        assert [it["state"] for it in server.bodies] == [
            {},
            {"count": 1, "seen": []},
            {"count": 1, "seen": []},
        ]
        assert [it["content"] for it in server.bodies[2]["messages"]] == ["Count", "1", "Count"]


async def asks_twice(request: Request) -> None:
    if "resume" not in request.body:
        await request.begin()
        await request.call("c1", "refund", {"order": 7})
        asked = [
            {"id": f"i{at}", "reason": "tool_call", "message": f"Refund {at}?", "responseSchema": APPROVAL}
            for at in (1, 2)
        ]
        await request.finish(outcome={"type": "interrupt", "interrupts": asked})
        return
    await request.begin()
    await request.event("TOOL_CALL_RESULT", toolCallId="c1", messageId="r1", content="refunded")
    await request.say(str([it.get("payload", it["status"]) for it in request.body["resume"]]))
    await request.finish()


async def test_requests_of_the_server_ask_the_user_and_the_next_run_gets_all_answers():
    async with ag_ui_server(asks_twice) as server, running_app() as app:
        conversation = await talk_to(app, server)
        with pytest.raises(TurnWaiting) as waiting:
            await app.client.ask(conversation.id, "Refund")
        first, second = waiting.value.approvals
        assert (first.message, second.message) == ("Refund 1?", "Refund 2?")
        await app.client.answer(second.turn_id, second.request_id, "answer", content={"approved": True})
        await app.client.answer(first.turn_id, first.request_id, "deny")
        reply = await app.client.reply(first.turn_id)
        assert reply.content == "['cancelled', {'approved': True}]"
        assert [(it.status, it.result) for it in reply.tool_calls] == [("ok", "refunded")]
        ids = [it["interruptId"] for it in server.bodies[1]["resume"]]
        assert ids == ["i1", "i2"]


async def uses_client_tool(request: Request) -> None:
    await request.begin()
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        await request.say(f"You are in {last['content']}.", "m2")
    else:
        await request.call("c1", request.body["tools"][0]["name"], {"exact": True})
    await request.finish()


async def test_tools_of_the_client_run_there_and_the_server_gets_their_results():
    tool = {"name": "where_am_i", "description": "Where.", "parameters": {"type": "object"}}
    async with ag_ui_server(uses_client_tool) as server, running_app() as app:
        conversation = await talk_to(app, server)
        with pytest.raises(TurnWaiting) as waiting:
            await app.client.ask(conversation.id, "Where am I?", tools=[tool])
        (asked,) = waiting.value.approvals
        await app.client.answer(asked.turn_id, asked.request_id, "result", content="Kyoto")
        assert (await app.client.reply(asked.turn_id)).content == "You are in Kyoto."
        called, result = server.bodies[1]["messages"][-2:]
        assert called["toolCalls"][0]["id"] == result["toolCallId"] == "c1"


# Servers that fail


async def dies(request: Request) -> None:
    await request.begin()
    await request.say("Half of")


def answers(status: str, kind: str = "text/html", more: str = "") -> Script:
    async def script(request: Request) -> None:
        await request.head(status, kind, more)
        await request.write(b"<html>secret inside</html>")

    return script


def sends(*events: tuple[str, Json], raw: bytes = b"") -> Script:
    async def script(request: Request) -> None:
        await request.begin()
        await request.say("Half of")
        for kind, fields in events:
            await request.event(kind, **fields)
        await request.write(raw)
        await request.finish()

    return script


async def starts_with_text(request: Request) -> None:
    await request.head()
    await request.say("Early")


async def compressed(request: Request) -> None:
    await request.head(more="Content-Encoding: gzip\r\n")


async def one_endless_line(request: Request) -> None:
    await request.begin()
    await request.say("Half of")
    while True:
        await request.write(b"data: " + b"x" * 1_000_000)


async def tells_its_secret(request: Request) -> None:
    await request.begin()
    await request.say("Half of")
    await request.event("RUN_ERROR", message=f"No access with {SECRET_HEADER}", code="X")


MESSAGE: Json = {"messageId": "x", "role": "assistant"}
FAILING: dict[str, tuple[Script, str, str]] = {
    "dies": (dies, "INTERRUPTED", "before the run ended"),
    "redirects": (
        answers("302 Found", more="Location: http://127.0.0.1:9/\r\n"),
        "AGENTX_ERROR",
        "redirects",
    ),
    "401": (answers("401 Unauthorized"), "AGENTX_ERROR", "headers"),
    "404": (answers("404 Not Found"), "AGENTX_ERROR", "no AG-UI agent"),
    "500": (answers("500 Oops"), "AGENTX_ERROR", "HTTP status 500"),
    "page": (answers("200 OK"), "AGENTX_ERROR", "text/html instead of a stream"),
    "compressed": (compressed, "AGENTX_ERROR", "compressed"),
    "no start": (starts_with_text, "AGENTX_ERROR", "must be RUN_STARTED"),
    "garbage": (sends(raw=b"data: {nonsense\n\n"), "AGENTX_ERROR", "can't be read"),
    "wrong types": (sends(raw=b'data: {"type": 7}\n\n'), "AGENTX_ERROR", "can't be read"),
    "deep": (sends(raw=b"data: " + b"[" * 100_000 + b"\n\n"), "AGENTX_ERROR", "can't be read"),
    "begins twice": (sends(("RUN_STARTED", {})), "AGENTX_ERROR", "began twice"),
    "stranger's text": (
        sends(("TEXT_MESSAGE_CONTENT", {"messageId": "other", "delta": "x"})),
        "AGENTX_ERROR",
        "didn't begin",
    ),
    "duplicate": (
        sends(("TEXT_MESSAGE_START", MESSAGE), ("TEXT_MESSAGE_START", MESSAGE)),
        "AGENTX_ERROR",
        "began twice",
    ),
    "arguments first": (
        sends(("TOOL_CALL_ARGS", {"toolCallId": "c", "delta": "{}"})),
        "AGENTX_ERROR",
        "didn't begin",
    ),
    "bad change": (
        sends(("STATE_DELTA", {"delta": [{"op": "remove", "path": "/a"}]})),
        "AGENTX_ERROR",
        "doesn't fit the state",
    ),
    "bad snapshot": (sends(("MESSAGES_SNAPSHOT", {"messages": [{"role": 1}]})), "AGENTX_ERROR", "no id"),
    "endless line": (one_endless_line, "AGENTX_ERROR", "an event of more than"),
    "its error": (tells_its_secret, "AGENTX_ERROR", "No access with ••••••••"),
}


async def test_every_failure_of_a_server_has_a_reason_without_a_secret_and_keeps_the_text():
    scripts = [it[0] for it in FAILING.values()]
    async with ag_ui_server(*scripts) as server, running_app() as app:
        for name, (_, code, reason) in FAILING.items():
            reply = await reply_to(app, server)
            assert reply.status == "FAILED", name
            assert reply.error, name
            assert (reply.error.code, reason in reply.error.message) == (code, True), (name, reply.error)
            assert "value-of" not in reply.error.message
            assert "secret" not in reply.error.message
        async with ag_ui_server(hello) as gone:
            pass
        reply = await reply_to(app, gone)
        assert reply.error and "can't be reached" in reply.error.message


async def test_text_before_a_failure_stays():
    async with ag_ui_server(dies, tells_its_secret, one_endless_line) as server, running_app() as app:
        for _ in range(3):
            assert (await reply_to(app, server)).content == "Half of"


async def test_run_that_may_be_repeated_is_made_again_with_its_id_and_supersedes_what_it_said():
    async with ag_ui_server(dies, hello) as server, running_app() as app:
        reply = await reply_to(app, server, repeat=True)
        assert reply.content == "Hello from afar."
        assert server.bodies[0]["runId"] == server.bodies[1]["runId"]
        assert [getattr(it, "superseded", False) for it in reply.parts if hasattr(it, "text")] == [
            True,
            False,
        ]


async def talks_for_ever(request: Request) -> None:
    await request.begin()
    await request.event("TEXT_MESSAGE_START", messageId="m1", role="assistant")
    while True:
        await request.event("TEXT_MESSAGE_CONTENT", messageId="m1", delta="and ")
        await asyncio.sleep(0.02)


async def test_stop_closes_the_connection_and_keeps_the_text():
    async with ag_ui_server(talks_for_ever) as server, running_app() as app:
        conversation = await talk_to(app, server)
        started = await app.client.start(conversation.id, "Hi")
        await until(lambda: _is_asked(server))
        await app.client.abort(conversation.id)
        async with asyncio.timeout(5):
            await server.closed.wait()
        reply = await app.client.reply(started.turn_id)
        assert reply.status == "CANCELLED"


async def _is_asked(server: AgUiServer) -> bool:
    return bool(server.requests)


async def test_address_that_the_operator_forbids_now_is_not_asked():
    async with ag_ui_server(hello) as server, running_app(denied_networks=("127.0.0.0/8",)) as app:
        given: dict[str, Any] = {"kind": "ag-ui", "url": server.url.replace("127.0.0.1", "localhost")}
        conversation = await app.conversation("Remote", engine=given)
        reply = await app.client.reply((await app.client.start(conversation.id, "Hi")).turn_id)
        assert reply.error
        assert "blocked by the operator" in reply.error.message
        assert server.requests == []
