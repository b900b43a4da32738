"""Compacting over HTTP: affordable, reversible, and never in anybody's way."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE
from tests.http.calls import items, refusal
from tests.talking import Talk
from threadkeep.clock import system_clock
from threadkeep.domain.ids import ConversationId, new_uuid
from threadkeep.domain.model import Model
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, Status, UseTool, Wait
from threadkeep.testing.waiting import PATIENCE_S

SUMMARY = "用户在问各种问题。"


def replies(request: Recorded) -> Reply:
    """Summaries where they are asked for, replies otherwise."""
    return [Say(SUMMARY)] if "Write one new summary" in request.content.decode() else [Say("OK.")]


@pytest.fixture(autouse=True)
def summarising(model: ScriptedModel) -> None:
    model.otherwise = replies


async def long_talk(talk: Talk, turns: int = 4, **settings: Any) -> str:
    """A conversation of so many turns, that has a title of its own."""
    conversation = await talk.titled_conversation(
        systemPrompt="Be brief.", settings={"compactionThreshold": 6, **settings}
    )
    for number in range(turns):
        await talk.ask(conversation, f"question {number}")
    return conversation


async def compact(talk: Talk, conversation: str, **body: Any) -> httpx.Response:
    return await talk.client.post(f"/api/conversations/{conversation}/compact", json=body)


async def context(talk: Talk, conversation: str) -> list[dict[str, str]]:
    return (await talk.client.get(f"/api/conversations/{conversation}/context?limit=200")).json()["messages"]


async def regenerated(talk: Talk, conversation: str) -> dict[str, Any]:
    """The receipt of a new reply to the last question."""
    path = f"/api/conversations/{conversation}/regenerate?wait=true"
    turn_id = (await talk.client.post(path, headers={"Accept": "application/json"})).json()["turnId"]
    return (await talk.client.get(f"/api/turns/{turn_id}/context")).json()


def sent(request: Recorded) -> list[str]:
    return [it["content"] for it in request.body["messages"]]


async def test_summary_takes_the_place_of_what_it_stands_for(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    response = await compact(talk, conversation, keepLast=2)
    assert response.status_code == 200, response.text
    made = response.json()
    assert made.keys() == {
        "id", "summary", "archivedCount", "fromSeq", "toSeq", "tokensBefore", "tokensAfter", "createdAt",
    }  # fmt: skip
    assert (made["summary"], made["archivedCount"], made["fromSeq"], made["toSeq"]) == (SUMMARY, 6, 1, 6)
    assert 0 < made["tokensAfter"] < made["tokensBefore"]
    await talk.ask(conversation, "and now?")
    told, *said = sent(model.requests[-1])
    assert told.endswith(f"\n\n[摘要 Summary]\n{SUMMARY}")
    assert said == ["question 3", "OK.", "and now?"]
    detail = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    assert detail["summary"] == SUMMARY
    assert [it["archived"] for it in detail["messages"]] == [True] * 6 + [False] * 4
    assert [it["content"] for it in await context(talk, conversation)] == [
        f"[摘要 Summary]\n{SUMMARY}", "question 3", "OK.", "and now?", "OK.",
    ]  # fmt: skip
    receipt = (await talk.client.get(f"/api/turns/{detail['messages'][-1]['turnId']}/context")).json()
    assert receipt["summary"] == SUMMARY
    assert [it["name"] for it in receipt["components"]] == ["systemPrompt", "role", "summary"]


async def test_model_looks_into_what_is_archived(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    await compact(talk, conversation, keepLast=2)
    model.script([UseTool("search_history", {"query": "question 1"})], [Say("It was 1.")])
    reply = await talk.ask(conversation, "What was the second question?")
    assert reply["content"] == "It was 1."
    (call,) = reply["toolCalls"]
    assert (call["server"], call["status"]) == ("history", "ok")
    assert call["result"]["messages"][0]["text"] == "question 1"
    names = [it["function"]["name"] for it in model.requests[-1].body["tools"]]
    assert "search_history" in names


async def test_later_compaction_builds_on_the_earlier(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    first = (await compact(talk, conversation, keepLast=2)).json()
    for number in range(3):
        await talk.ask(conversation, f"later {number}")
    model.script([Say("Both.")])
    second = (await compact(talk, conversation, keepLast=2)).json()
    assert (second["summary"], second["fromSeq"], second["toSeq"]) == ("Both.", 7, 12)
    told = sent(model.requests[-1])[-1]
    assert f"Summary so far:\n\n{SUMMARY}" in told
    assert "question 3" in told
    assert "question 2" not in told
    listed = await items(talk.client, f"/api/conversations/{conversation}/compactions")
    assert [it["id"] for it in listed] == [second["id"], first["id"]]
    assert listed[0] == second


async def test_undoing_restores_the_exact_context(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    path = f"/api/conversations/{conversation}/compactions"
    before, seen = await regenerated(talk, conversation), await context(talk, conversation)
    first = (await compact(talk, conversation, keepLast=4)).json()
    between, between_seen = await regenerated(talk, conversation), await context(talk, conversation)
    assert between["sha256"] != before["sha256"]
    assert between_seen != seen
    assert (await talk.client.delete(f"{path}/{first['id']}")).status_code == 204
    after = await regenerated(talk, conversation)
    assert after["sha256"] == before["sha256"]
    assert after["messageIds"] == before["messageIds"]
    assert await context(talk, conversation) == seen
    assert await items(talk.client, path) == []
    refusal(await talk.client.delete(f"{path}/{first['id']}"), 404, "COMPACTION_NOT_FOUND")
    detail = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    assert detail["summary"] is None
    assert not any(it["archived"] for it in detail["messages"])


async def test_undone_compaction_returns_its_messages_to_the_model(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    made = (await compact(talk, conversation, keepLast=2)).json()
    await talk.ask(conversation, "in between")
    assert sent(model.requests[-1])[1:] == ["question 3", "OK.", "in between"]
    path = f"/api/conversations/{conversation}/compactions/{made['id']}"
    assert (await talk.client.delete(path)).status_code == 204
    await talk.ask(conversation, "and now?")
    questions = [it for it in sent(model.requests[-1])[1:] if it != "OK."]
    assert questions == [*(f"question {number}" for number in range(4)), "in between", "and now?"]


async def test_only_the_newest_is_undone(talk: Talk):
    conversation = await long_talk(talk, compactionThreshold=0)
    path = f"/api/conversations/{conversation}/compactions"
    first = (await compact(talk, conversation, keepLast=4)).json()
    second = (await compact(talk, conversation, keepLast=2)).json()
    refusal(await talk.client.delete(f"{path}/{first['id']}"), 409, "CONFLICT")
    for compaction in (second, first):
        assert (await talk.client.delete(f"{path}/{compaction['id']}")).status_code == 204
    for unknown in (new_uuid(), "no-uuid", "%00"):
        refusal(await talk.client.delete(f"{path}/{unknown}"), 404, "COMPACTION_NOT_FOUND")
    other = await long_talk(talk, turns=3)
    theirs = (await compact(talk, other)).json()
    refusal(await talk.client.delete(f"{path}/{theirs['id']}"), 404, "COMPACTION_NOT_FOUND")


async def test_too_few_messages_change_nothing(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk, turns=2)
    before = await talk.messages(conversation)
    asked = len(model.requests)
    error = refusal(await compact(talk, conversation), 409, "TOO_FEW_MESSAGES")
    assert error["details"] == {"messages": 4, "threshold": 6, "keepLast": 1}
    assert len(model.requests) == asked
    assert await talk.messages(conversation) == before
    assert await items(talk.client, f"/api/conversations/{conversation}/compactions") == []


@ONLY_SQLITE
@pytest.mark.parametrize("body", [{"keepLast": -1}, {"keepLast": "2"}, {"keepLast": 10**7}])
async def test_malformed_wishes_are_refused(talk: Talk, body: dict[str, Any]):
    conversation = await talk.conversation()
    refusal(await compact(talk, conversation, **body), 422, "INVALID_REQUEST", "keepLast")


@pytest.mark.parametrize("reply", [[Status(401, "no")], [Say(" ")]], ids=["refused", "empty"])
async def test_failed_summary_changes_nothing(talk: Talk, model: ScriptedModel, reply: Reply):
    conversation = await long_talk(talk)
    before = await context(talk, conversation)
    model.script(reply)
    refusal(await compact(talk, conversation), 502, "AGENTX_ERROR")
    assert await context(talk, conversation) == before
    assert await items(talk.client, f"/api/conversations/{conversation}/compactions") == []


@ONLY_SQLITE
async def test_summary_that_takes_too_long_changes_nothing(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    agent = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    await talk.client.patch(f"/api/agents/{agent}", json={"settings": {"generationTimeoutS": 0.2}})
    gate = Gate()
    model.script([Wait(gate), Say("late")])
    refusal(await compact(talk, conversation), 504, "GENERATION_TIMEOUT")
    gate.open()
    assert await items(talk.client, f"/api/conversations/{conversation}/compactions") == []


def is_summary(request: Recorded) -> bool:
    return "Write one new summary" in request.content.decode()


def summary_requests(model: ScriptedModel) -> list[str]:
    """The messages that each call for a summary brought."""
    return [it.body["messages"][-1]["content"] for it in model.requests if is_summary(it)]


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message needs a call of its own."""
    monkeypatch.setattr("threadkeep.context.compaction.MOST_TOKENS_A_CALL", 8)


async def test_long_summary_keeps_the_parts_that_it_has_paid_for(
    talk: Talk, model: ScriptedModel, in_parts: None
):
    conversation = await long_talk(talk)
    model.script([Say("First.")], [Say("Second.")], [Status(400)])
    assert (await compact(talk, conversation, keepLast=2)).status_code >= 500
    paid = len(summary_requests(model))
    assert (await compact(talk, conversation, keepLast=2)).json()["summary"] == SUMMARY
    again = summary_requests(model)[paid:]
    assert len(again) == 4  # of six messages, two are done
    assert again[0].startswith("Summary so far:\n\nSecond.\n\n")
    assert "question 0" not in "".join(again)
    assert await talk.store.compactions.progress(ConversationId(conversation)) is None


async def test_kept_parts_count_only_for_the_same_messages(talk: Talk, model: ScriptedModel, in_parts: None):
    conversation = await long_talk(talk)
    model.script([Say("First.")], [Say("Second.")], [Status(400)])
    assert (await compact(talk, conversation, keepLast=2)).status_code >= 500
    paid = len(summary_requests(model))
    path = f"/api/conversations/{conversation}/messages?wait=true"
    for number in range(4):  # on another branch
        body = {"content": f"other {number}", **({} if number else {"parentId": None})}
        await talk.client.post(path, json=body, headers={"Accept": "application/json"})
    assert (await compact(talk, conversation, keepLast=2)).status_code == 200
    again = summary_requests(model)[paid:]
    assert (len(again), again[0].startswith("Messages:"), "question" in "".join(again)) == (6, True, False)


async def test_model_that_takes_too_long_is_asked_again_only_after_a_pause(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    conversation = ConversationId(await long_talk(talk, generationTimeoutS=1))
    compactions, clock = (await talk.app.services()).compactions, [system_clock()]
    monkeypatch.setattr(compactions, "_clock", lambda: clock[0])
    job, gate = {"user_id": "local", "conversation_id": conversation}, Gate()

    def stall(request: Recorded) -> Reply:
        return [Wait(gate)] if is_summary(request) else [Say("OK.")]

    model.otherwise = stall
    pauses: list[int] = []
    for _ in range(3):
        await compactions.compact_later(job)  # ends: the queue doesn't try it again by itself
        asked = len(summary_requests(model))
        await compactions.compact_later(job)
        assert len(summary_requests(model)) == asked
        progress = await talk.store.compactions.progress(conversation)
        assert progress is not None
        pauses.append(progress.not_before - clock[0])
        clock[0] = progress.not_before
    assert pauses == [600_000, 1_200_000, 2_400_000]
    gate.open()
    model.otherwise = replies
    await compactions.compact_later(job)
    assert await talk.store.compactions.current(conversation)


async def test_of_two_at_once_one_compacts(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    gate = Gate()
    model.script([Wait(gate), Say("One.")], [Wait(gate), Say("Two.")])
    asked = len(model.requests)
    both = [asyncio.create_task(compact(talk, conversation, keepLast=2)) for _ in range(2)]
    await model.until_requests(asked + 2)
    gate.open()
    done, refused = sorted([await it for it in both], key=lambda it: it.status_code)
    assert done.status_code == 200
    assert refusal(refused, 409, "TOO_FEW_MESSAGES")["details"]["messages"] == 2
    (kept,) = await items(talk.client, f"/api/conversations/{conversation}/compactions")
    assert kept == done.json()


async def test_nothing_is_compacted_while_the_agent_replies(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    gate = Gate()
    model.script([Say("One"), Wait(gate), Say(".")])
    turn_id = await talk.begin(conversation)
    error = refusal(await compact(talk, conversation), 409, "TURN_IN_PROGRESS")
    assert error["details"] == {"turnId": turn_id}
    gate.open()
    await talk.events(turn_id)


async def test_turn_that_starts_meanwhile_and_the_compaction_both_end_well(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk)
    gate = Gate()
    model.script([Wait(gate), Say(SUMMARY)], [Wait(gate), Say("Fine.")])
    asked = len(model.requests)
    compacting = asyncio.create_task(compact(talk, conversation, keepLast=2))
    await model.until_requests(asked + 1)
    turn_id = await talk.begin(conversation, "meanwhile")
    await model.until_requests(asked + 2)
    gate.open()
    assert (await compacting).status_code == 200
    assert (await talk.events(turn_id))[-1]["status"] == "COMPLETED"
    # The turn was told all; the next one has the summary, and nothing is missing between.
    assert sent(model.requests[asked + 1])[1] == "question 0"
    await talk.ask(conversation, "next")
    assert sent(model.requests[-1])[1:] == ["question 3", "OK.", "meanwhile", "Fine.", "next"]
    assert not model.refused


async def until_compacted(talk: Talk, conversation: str) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE_S):
        path = f"/api/conversations/{conversation}/compactions"
        while not (found := await items(talk.client, path)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


async def test_conversation_is_compacted_by_itself_between_turns(talk: Talk, model: ScriptedModel):
    conversation = await long_talk(talk, turns=2, autoCompact=True)
    assert await items(talk.client, f"/api/conversations/{conversation}/compactions") == []
    await talk.ask(conversation, "question 2")
    (compaction,) = await until_compacted(talk, conversation)
    assert (compaction["summary"], compaction["toSeq"]) == (SUMMARY, 4)
    await talk.ask(conversation, "question 3")
    told, first, *_ = sent(model.requests[-1])
    assert told.endswith(f"[摘要 Summary]\n{SUMMARY}")
    assert first == "question 2"


@ONLY_SQLITE
async def test_demonstration_model_is_not_asked_for_a_summary(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    conversation = await long_talk(talk)
    describe = ProviderGateway.describe

    def without_tools(gateway: ProviderGateway, name: str) -> Model:
        return replace(describe(gateway, name), supports_tools=False)

    monkeypatch.setattr(ProviderGateway, "describe", without_tools)
    asked = len(model.requests)
    made = (await compact(talk, conversation, keepLast=2)).json()
    assert made["summary"].splitlines() == [
        "(Extracts of earlier messages, made without a model.)",
        *(line for n in range(3) for line in (f"- user: question {n}", "- assistant: OK.")),
    ]
    assert len(model.requests) == asked
