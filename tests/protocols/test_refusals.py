"""Whatever refuses a message, on whichever protocol: nothing is stored for it, and nothing stops for it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from tests.http.api.test_budgets import PRICED, with_prices
from tests.protocols.mcp.test_routes import call_tool
from tests.talking import JSON, Talk, talking
from threadkeep import Settings
from threadkeep.domain.caps import OperatorCaps, TurnCaps
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.creations import Creations
from threadkeep.testing import Gate, Say, ScriptedModel, Usage, Wait

TEXT = "Why is that so?"
UNKNOWN = "0190c5a0-0000-7000-8000-000000000001"
PROTOCOLS = ["chat", "responses", "mcp", "ai-sdk", "ag-ui"]


async def first_message(
    talk: Talk, protocol: str, content: str = TEXT, agent: str | None = None, **more: Any
) -> httpx.Response:
    """A message that opens its conversation."""
    match protocol:
        case "chat":
            return await talk.client.post("/api/chat", json={"content": content, **more}, headers=JSON)
        case "responses":
            body = {"input": content, "model": agent, **more}
            return await talk.client.post("/v1/responses", json=body)
        case "mcp":
            talk.client.headers["accept"] = "application/json, text/event-stream"
            named = {"agentId": agent} if agent else {}
            return await call_tool(talk, "send_message", content=content, **named, **more)
        case "ai-sdk":
            message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": content}]}
            named = {"agentId": agent} if agent else {}
            body = {"id": "chat", "messages": [message], "trigger": "submit-message", **named, **more}
            return await talk.client.post("/api/ai-sdk/chat", json=body)
        case _:
            message = {"id": "u1", "role": "user", "content": content}
            body = {"threadId": "thread", "runId": "r", "messages": [message], **more}
            return await talk.client.post(f"/api/ag-ui/{agent or 'default'}", json=body)


def is_refused(response: httpx.Response) -> bool:
    return response.status_code >= 400 or '"isError":true' in response.text.replace(" ", "")


async def leave_room(talk: Talk, size: int) -> None:
    """Lets users of a server that runs store only so much in all."""
    creations, store = (await talk.app.services()).creations, talk.store
    Creations.__init__(
        creations, store.stored_bytes, LocalAllowances(TurnCaps(), lambda: 0.0), OperatorCaps(bytes=size)
    )


async def conversations(talk: Talk) -> list[str]:
    return [it["id"] for it in (await talk.client.get("/api/conversations")).json()["items"]]


@asynccontextmanager
async def refusing(
    why: str, settings: Settings, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Talk, dict[str, Any]]]:
    """A server that refuses messages, and what to send so that it does."""
    asked: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    match why:
        case "rate":
            changes = {"user_turns_per_minute": 1}
        case "at once":
            changes = {"user_running_turns": 1}
        case "budget":
            settings = with_prices(settings, model, user_budget_month="0.01")
        case "draining" | "room":
            pass
        case "empty":
            asked = {"content": " "}
        case "too long":
            changes = {"max_message_chars": 5}
        case _:
            asked = {"agent": UNKNOWN}
    async with talking(msgspec.structs.replace(settings, **changes)) as talk:
        if why in {"rate", "at once", "budget"}:
            conversation = await talk.titled_conversation(**PRICED if why == "budget" else {})
            await talk.begin(conversation)
            path = f"/api/conversations/{conversation}"
            asked = {"agent": (await talk.client.get(path)).json()["agentId"]}
        if why == "room":
            await leave_room(talk, 1)
        if why == "draining":
            draining = property(lambda _: True)
            monkeypatch.setattr("threadkeep.runtime.runner.Runner.is_draining", draining, raising=False)
        yield talk, asked
        monkeypatch.undo()


@pytest.mark.parametrize(
    "why", ["rate", "at once", "budget", "room", "draining", "empty", "too long", "no agent"]
)
async def test_first_message_that_is_refused_leaves_no_conversation(
    why: str, talk_settings: Settings, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate()
    model.otherwise = [Say("Because."), Usage(5, 100), Wait(gate)]
    async with refusing(why, talk_settings, model, monkeypatch) as (talk, asked):
        if why in {"at once", "budget"}:
            await gate.reached()
        before = await conversations(talk)
        for protocol in PROTOCOLS:
            if protocol == "chat" and why == "no agent":
                continue
            refused = await first_message(talk, protocol, **asked)
            assert is_refused(refused), (protocol, refused.status_code, refused.text)
            assert await conversations(talk) == before, protocol
        gate.open()


async def test_first_message_opens_its_conversation_on_every_protocol(talk: Talk, model: ScriptedModel):
    model.otherwise = [Say("Because.")]
    async with talk.client.stream("GET", "/api/me/events") as events:
        announced = events.aiter_lines()
        for count, protocol in enumerate(PROTOCOLS, 1):
            assert not is_refused(await first_message(talk, protocol)), protocol
            opened = await conversations(talk)
            assert len(opened) == count, protocol
            types = [line async for line in until_started(announced)]
            assert types == ["event: conversation_created", "event: turn_started"], protocol


async def until_started(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """The types of a user's events about a new conversation, up to the start of its turn."""
    async for line in lines:
        if line in {"event: conversation_created", "event: turn_started"}:
            yield line
        if line == "event: turn_started":
            return


async def stopping(talk: Talk, protocol: str, conversation: str, content: str = TEXT) -> httpx.Response:
    """A message that ends the turn that runs in its conversation."""
    path = f"/api/conversations/{conversation}"
    match protocol:
        case "regenerate":
            return await talk.client.post(f"{path}/regenerate", json={"whenBusy": "stop"}, headers=JSON)
        case "messages":
            body = {"content": content, "whenBusy": "stop"}
            return await talk.client.post(f"{path}/messages", json=body, headers=JSON)
        case "responses":
            return await first_message(talk, protocol, content, conversation=conversation)
        case "mcp":
            return await first_message(talk, protocol, content, conversationId=conversation)
        case "ai-sdk":
            return await first_message(talk, protocol, content, id=conversation)
        case _:
            return await first_message(talk, protocol, content, threadId=conversation)


@pytest.mark.parametrize("why", ["rate", "budget", "room", "empty", "too long"])
async def test_message_that_is_refused_stops_no_turn(
    why: str, talk_settings: Settings, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate()
    model.otherwise = [Say("Because."), Usage(5, 100), Wait(gate)]
    most = {"max_message_chars": 5} if why == "too long" else {}
    if why == "budget":
        talk_settings = with_prices(talk_settings, model, user_budget_month="0.01")
    if why == "rate":
        most = {"user_turns_per_minute": 1}
    async with talking(msgspec.structs.replace(talk_settings, **most)) as talk:
        conversation = await talk.titled_conversation(**PRICED if why == "budget" else {})
        turn = await talk.begin(conversation, "Why?")
        await gate.reached()
        if why == "room":
            await leave_room(talk, 1)
        for protocol in ["messages", "regenerate", "responses", "mcp", "ai-sdk", "ag-ui"]:
            if protocol == "regenerate" and why in {"empty", "too long"}:
                continue  # it brings no message
            content = " " if why == "empty" else TEXT
            refused = await stopping(talk, protocol, conversation, content)
            assert is_refused(refused), (protocol, refused.status_code, refused.text)
        gate.open()
        assert (await talk.events(turn))[-1]["status"] == "COMPLETED"
        assert len(await talk.messages(conversation)) == 2
