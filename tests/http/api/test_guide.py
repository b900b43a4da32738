"""The Guide shows, through the real engine and without a model, what there is to see."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.talking import JSON, Talk, talking
from threadkeep import Settings
from threadkeep.domain.guide import GUIDE_ID
from threadkeep.gateways import guide as guide_gateway
from threadkeep.testing import ScriptedModel, scripted_settings
from threadkeep.tools import guide as guide_tools

pytestmark = ONLY_SQLITE


@pytest.fixture
def settings(database_url: str, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(guide_tools, "STEP_S", 0.0)
    monkeypatch.setattr(guide_gateway, "WORD_S", 0.001)
    return scripted_settings(model, database_url=database_url, guide="on")


@pytest.fixture
async def talk(settings: Settings) -> AsyncIterator[Talk]:
    async with talking(settings) as talk:
        yield talk


async def begin(talk: Talk) -> str:
    made = await talk.client.post(f"/api/agents/{GUIDE_ID}/conversations", json={"title": "Tour"})
    assert made.status_code == 201, made.text
    return made.json()["id"]


def kinds(reply: dict[str, Any]) -> list[str]:
    return [part["type"] for part in reply["parts"]]


async def test_guide_says_what_it_can_show_in_the_language_it_is_asked_in(talk: Talk):
    conversation = await begin(talk)
    assert "Ask me to show you" in (await talk.ask(conversation, "Hello!"))["content"]
    assert "您可以让我展示" in (await talk.ask(conversation, "你好"))["content"]


async def test_guide_thinks_uses_a_tool_draws_a_chart_and_cites(talk: Talk):
    conversation = await begin(talk)
    drawn = await talk.ask(conversation, "Show me a chart")
    assert kinds(drawn) == ["thought", "text", "tool_call", "text"]
    assert drawn["toolCalls"][0]["chartData"]["title"]["text"] == "Sales"
    cited = await talk.ask(conversation, "What does the handbook say?")
    assert [it["index"] for it in cited["citations"]] == [1, 2]
    assert "[1]" in cited["content"]


@pytest.mark.parametrize(("action", "said"), [("allow", "so I sent the report"), ("deny", "You denied it")])
async def test_guide_asks_before_it_sends(talk: Talk, action: str, said: str):
    conversation = await begin(talk)
    path = f"/api/conversations/{conversation}/messages?wait=true"
    asked = await talk.client.post(path, json={"content": "Show me everything"}, headers=JSON)
    assert asked.status_code == 202, asked.text
    (request,) = asked.json()["approvals"]
    assert (request["toolName"], request["arguments"]["to"]) == ("send_report", "team@example.com")
    answer = f"/api/turns/{request['turnId']}/approvals/{request['requestId']}"
    await talk.client.post(answer, json={"action": action})
    await talk.events(request["turnId"])
    reply = (await talk.messages(conversation))[-1]
    assert said in reply["content"]
    assert len(reply["toolCalls"]) == 3


async def test_guide_loses_its_server_in_the_middle_of_a_sentence_and_goes_on(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(guide_tools, "UNPLUG_AFTER_S", 0.5)
    monkeypatch.setattr(guide_gateway, "WORD_S", 0.03)
    conversation = await begin(talk)
    turn_id = await talk.begin(conversation, "Show me a crash")
    events = await talk.events(turn_id)
    told = [event["type"] for event in events]
    assert "turn_resumed" in told
    assert "iteration_restart" in told
    assert told.count("tool_call") == told.count("tool_result") == 1
    reply = (await talk.messages(conversation))[-1]
    assert reply["status"] == "COMPLETED"
    assert reply["content"].count("While I write this sentence") == 1
    assert any(part.get("superseded") for part in reply["parts"])


async def test_deleted_guide_stays_deleted(settings: Settings):
    async with talking(settings) as talk:
        assert (await talk.client.delete(f"/api/agents/{GUIDE_ID}")).status_code == 204
    async with talking(settings) as talk:
        names = [it["name"] for it in (await talk.client.get("/api/agents")).json()["items"]]
    assert names == ["Assistant"]
