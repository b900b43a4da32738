"""MCP servers that ask the user in the middle of a turn, over HTTP."""

import asyncio
from collections.abc import Iterator
from typing import Any

import mcp_types as mcp
import pytest
from mcp.server.mcpserver import Context
from pydantic import BaseModel

from tests.http.api.test_approvals import calls_of, decide, is_status, reply, waiting
from tests.talking import Talk
from threadkeep.clock import system_clock
from threadkeep.engine import batch
from threadkeep.mcp.sessions import session
from threadkeep.runtime.heartbeat import BEAT_S
from threadkeep.services.approvals import TurnApprovals
from threadkeep.testing import Say, ScriptedModel, ToolServer, UseTool, until

FORM: dict[str, Any] = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


class Size(BaseModel):
    """What a server wants to know."""

    size: int


async def order(context: Context) -> str:
    """Orders a shirt; holds the call open while it asks."""
    answered = await context.elicit("Which size?", Size)
    return f"ordered {answered.data.size}" if answered.action == "accept" else answered.action


async def book(context: Context) -> str | mcp.InputRequiredResult:
    """Books a room; ends the call while it asks."""
    if context.input_responses is None:
        asked = mcp.ElicitRequestFormParams(message="How many?", requested_schema=FORM)
        requests: dict[str, Any] = {"size": mcp.ElicitRequest(params=asked)}
        return mcp.InputRequiredResult(input_requests=requests, request_state="so far")
    given = {key: it.model_dump(exclude_none=True) for key, it in context.input_responses.items()}
    return f"booked {given} after {context.request_state}"


async def insist(context: Context) -> str | mcp.InputRequiredResult:
    """Asks again, by the same name, until it has heard a large enough number."""
    given = context.input_responses or {}
    sizes = [it.content["size"] for it in given.values() if isinstance(it, mcp.ElicitResult) and it.content]
    if sizes and int(str(sizes[0])) >= 7:
        return f"took {sizes[0]}"
    asked = mcp.ElicitRequestFormParams(message="How many? At least 7.", requested_schema=FORM)
    requests: dict[str, Any] = {"size": mcp.ElicitRequest(params=asked)}
    return mcp.InputRequiredResult(input_requests=requests, request_state="so far")


@pytest.fixture(params=["held open", "input required"])
def server(request: pytest.FixtureRequest) -> Iterator[ToolServer]:
    is_new = request.param == "input required"
    with ToolServer(book if is_new else order, newest_only=is_new) as server:
        yield server


@pytest.fixture
def talk(talk_with_tools: Talk) -> Talk:
    return talk_with_tools


async def asked_by(talk: Talk, model: ScriptedModel, server: ToolServer, **settings: Any) -> dict[str, Any]:
    """What a turn is asked whose tool needs something of the user."""
    settings = {"mcpServers": {"shop": server.settings}, **settings}
    made = await talk.client.post("/api/agents", json={"name": "Shop", "settings": settings})
    agent = made.json()["id"]
    tested = (await talk.client.post(f"/api/agents/{agent}/mcp-servers/shop/test")).json()
    name = tested["tools"][0]["name"]
    model.script([UseTool(f"shop__{name}")], [Say("Done.")])
    made = await talk.client.post(f"/api/agents/{agent}/conversations", json={"title": "Shopping"})
    await talk.begin(made.json()["id"], "Do it.")

    return await next_asked(talk)


async def next_asked(talk: Talk) -> dict[str, Any]:
    """What the user is asked, once there is something."""

    async def is_asked() -> bool:
        return bool((await talk.client.get("/api/approvals")).json()["items"])

    await until(is_asked)
    (asked,) = (await talk.client.get("/api/approvals")).json()["items"]
    return asked


async def test_users_decision_goes_back_to_the_server(talk: Talk, model: ScriptedModel, server: ToolServer):
    asked = await asked_by(talk, model, server)
    assert asked["kind"] == "elicitation"
    assert asked["schema"]["properties"]["size"]["type"] == "integer"
    wrong = await decide(talk, asked, action="answer", content={"size": "large"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (422, "content")
    assert (await decide(talk, asked, action="answer", content={"size": 7})).status_code == 200
    message = await reply(talk, asked["turnId"])
    (call,) = calls_of(message).values()
    assert (message["status"], call["status"]) == ("COMPLETED", "ok")
    assert "7" in str(call["result"])
    (part,) = [it for it in message["parts"] if it["type"] == "question"]
    assert part["answer"]["content"] == {"size": 7}


@pytest.mark.parametrize("is_paused", [True, False])
async def test_tool_that_ran_only_after_its_user_allowed_it_asks_them_too(
    talk: Talk, model: ScriptedModel, server: ToolServer, is_paused: bool
):
    leave = await asked_by(talk, model, server, tools={"shop.*": {"access": "ask"}})
    assert leave["kind"] == "tool"
    if is_paused:
        await until(lambda: is_status(talk, leave["turnId"], "WAITING"))
    assert (await decide(talk, leave, action="allow")).status_code == 200
    asked = await next_asked(talk)
    assert (asked["kind"], asked["turnId"]) == ("elicitation", leave["turnId"])
    assert (await decide(talk, asked, action="answer", content={"size": 7})).status_code == 200
    message = await reply(talk, asked["turnId"])
    (call,) = calls_of(message).values()
    assert (message["status"], call["status"]) == ("COMPLETED", "ok")
    assert "7" in str(call["result"])


async def test_user_may_refuse_what_a_server_asks(talk: Talk, model: ScriptedModel, server: ToolServer):
    asked = await asked_by(talk, model, server)
    assert (await decide(talk, asked, action="deny")).status_code == 200
    message = await reply(talk, asked["turnId"])
    (call,) = calls_of(message).values()
    assert (message["status"], call["status"]) == ("COMPLETED", "ok")
    assert "decline" in str(call["result"])


async def test_turn_whose_call_is_held_open_can_be_stopped(
    talk: Talk, model: ScriptedModel, server: ToolServer
):
    asked = await asked_by(talk, model, server)
    await talk.client.post(f"/api/conversations/{asked['conversationId']}/abort")
    message = await reply(talk, asked["turnId"])
    (call,) = calls_of(message).values()
    assert message["status"] == "CANCELLED"
    assert call["status"] in {"interrupted", "denied"}


async def test_server_that_is_gone_while_it_asks_keeps_nobody_waiting(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(session, "LOOK_EVERY_S", 0.1)
    with ToolServer(order) as server:
        asked = await asked_by(talk, model, server)
    message = await reply(talk, asked["turnId"])
    (call,) = calls_of(message).values()
    assert (message["status"], call["status"]) == ("COMPLETED", "unknown")
    assert (await talk.client.get("/api/approvals")).json()["items"] == []


async def test_request_of_a_server_that_nobody_decides_in_time_ends_its_turn(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(TurnApprovals, "expires_at", property(lambda _: system_clock() + 300))
    with ToolServer(book, newest_only=True) as server:
        asked = await asked_by(talk, model, server)
        message = await reply(talk, asked["turnId"])
    (call,) = calls_of(message).values()
    (part,) = [it for it in message["parts"] if it["type"] == "question"]
    assert (message["status"], call["status"]) == ("CANCELLED", "denied")
    assert part["answer"]["action"] == "expire"


async def test_server_that_asks_again_gets_another_decision(talk: Talk, model: ScriptedModel):
    with ToolServer(insist, newest_only=True) as server:
        asked = await asked_by(talk, model, server)
        assert (await decide(talk, asked, action="answer", content={"size": 1})).status_code == 200

        async def others() -> list[dict[str, Any]]:
            items = (await talk.client.get("/api/approvals")).json()["items"]
            return [it for it in items if it["requestId"] != asked["requestId"]]

        async def is_asked_again() -> bool:
            return bool(await others())

        await until(is_asked_again)
        (again,) = await others()
        assert (await decide(talk, again, action="answer", content={"size": 7})).status_code == 200
        message = await reply(talk, asked["turnId"])
    (call,) = calls_of(message).values()
    assert "took 7" in str(call["result"])


async def test_request_that_a_server_gave_up_does_not_end_the_wait_for_another(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(batch, "HELD_OPEN_S", 0.2)
    with ToolServer(order) as server:
        settings = {"mcpServers": {"shop": server.settings}, "askUser": True}
        conversation = await talk.titled_conversation(settings=settings)
        model.script(
            [UseTool("shop__order")], [UseTool("ask_user", {"question": "And now?"})], [Say("Done.")]
        )
        (asked,) = (await waiting(talk, conversation))["approvals"]
        assert asked["kind"] == "question"
        assert (await talk.client.get("/api/approvals")).json()["items"] == [asked]
        await asyncio.sleep(2 * BEAT_S)
        assert await is_status(talk, asked["turnId"], "WAITING")
        await decide(talk, asked, action="answer", content="Nothing.")
        message = await reply(talk, asked["turnId"])
    assert (message["status"], message["content"]) == ("COMPLETED", "Done.")
    (part, _) = [it for it in message["parts"] if it["type"] == "question"]
    assert part["answer"]["action"] == "expire"
