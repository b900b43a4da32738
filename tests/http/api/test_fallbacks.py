"""Models that reply instead of one that fails: which, for how long, and what the user sees of it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.api.test_approvals import decide, look, send
from tests.talking import JSON, Talk, talking
from threadkeep.testing import Say, ScriptedModel, Status, ToolServer, Usage, UseTool, scripted_settings

BUSY = Status(429, retry_after="3600")


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with ToolServer(send, reading=[look]) as server:
        yield server


@pytest.fixture
async def talk(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[Talk]:
    """Threadkeep without a gateway that would take any model; each test connects those that it needs."""
    settings = scripted_settings(
        model,
        data=tmp_path / "data",
        embedding_url="off",
        mcp_allow_private=True,
        gateway_url=None,
        gateway_api_key=None,
    )
    async with talking(settings) as talk:
        yield talk


@pytest.fixture
def other() -> Iterator[ScriptedModel]:
    """Another provider."""
    with ScriptedModel() as other:
        yield other


async def connect(talk: Talk, name: str, provider: ScriptedModel) -> None:
    body = {"name": name, "kind": "openai", "url": provider.url, "apiKey": "sk-scripted", "models": [name]}
    made = await talk.client.post("/api/admin/gateways", json=body)
    assert made.status_code == 201, made.text


def notices(events: list[dict[str, Any]]) -> list[str]:
    return [it["code"] for it in events if it["type"] == "notice"]


async def test_the_next_model_replies_if_the_agents_own_is_busy(
    talk: Talk, model: ScriptedModel, other: ScriptedModel
):
    await connect(talk, "first", model)
    await connect(talk, "second", other)
    conversation = await talk.titled_conversation(
        model="first/first", settings={"fallbackModels": ["second/second"]}
    )
    model.script([BUSY])
    other.script([Say("Here."), Usage(5, 2)])
    turn_id = await talk.begin(conversation)
    events = await talk.events(turn_id)
    assert notices(events) == ["MODEL_FALLBACK"]
    assert [it["model"] for it in events if it["type"] == "usage"] == ["second/second"]
    reply = (await talk.messages(conversation))[-1]
    assert (reply["content"], reply["model"], reply["status"]) == ("Here.", "second/second", "COMPLETED")
    assert (await talk.client.get(f"/api/turns/{turn_id}")).json()["model"] == "second/second"


async def test_turn_stays_with_its_fallback_even_if_the_failed_gateway_is_deleted_while_it_waits(
    talk: Talk, model: ScriptedModel, other: ScriptedModel, server: ToolServer
):
    await connect(talk, "first", model)
    await connect(talk, "second", other)
    conversation = await talk.titled_conversation(
        model="first/first",
        settings={
            "fallbackModels": ["second/second"],
            "mcpServers": {"post": server.settings},
            "tools": {"post.send": {"access": "ask"}},
        },
    )
    model.script([BUSY])
    other.script([UseTool("post__send", {"to": "Ada"})], [Say("Sent.")])
    path = f"/api/conversations/{conversation}/messages?wait=true"
    waiting = (await talk.client.post(path, json={"content": "Send it."}, headers=JSON)).json()
    assert waiting["status"] == "WAITING"
    assert (await talk.client.delete("/api/admin/gateways/first")).status_code == 204
    (asked,) = waiting["approvals"]
    assert (await decide(talk, asked, action="allow")).status_code == 200
    await talk.events(waiting["turnId"])
    reply = (await talk.messages(conversation))[-1]
    assert (reply["content"], reply["model"], reply["status"]) == ("Sent.", "second/second", "COMPLETED")
