"""Turns that ran in another engine become the same messages as if they had run here (requirements 004)."""

import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Api
from tests.making import keep_artifact
from threadkeep.client import Client, NotReached, Recorder
from threadkeep.domain.ids import TurnId, new_uuid
from threadkeep.testing import running_app

RUN: list[dict[str, Any]] = [
    {"id": "1", "type": "ExecutionStarted", "runId": "run-7", "at": 1_000, "input": "合同违约条款是什么？"},
    {
        "id": "2", "type": "NodeCompleted", "runId": "run-7", "at": 1_500, "node": "retrieve",
        "durationMs": 400, "detail": "looked into the contract",
        "tools": [
            {
                "toolCallId": "c1", "toolName": "search", "server": "docs", "arguments": {"q": "违约"},
                "result": {"hits": 1}, "durationMs": 300,
            }
        ],
        "citations": [
            {"title": "合同模板.pdf", "fileName": "合同模板.pdf", "page": 3, "snippet": "违约金"}
        ],
        "usage": {"inputTokens": 10, "outputTokens": 5},
    },
    {
        "id": "3", "type": "NodeCompleted", "runId": "run-7", "at": 1_900, "node": "write", "durationMs": 300,
        "usage": {"inputTokens": 20, "outputTokens": 15},
    },
    {
        "id": "4", "type": "ExecutionCompleted", "runId": "run-7", "at": 2_000,
        "output": "违约金为 20% [1]。", "model": "m",
    },
]  # fmt: skip


async def make_conversation(user: httpx.AsyncClient) -> str:
    agent = (await user.post("/api/agents", json={"name": "Law"})).json()
    return (await user.post(f"/api/agents/{agent['id']}/conversations", json={})).json()["id"]


async def tell(user: httpx.AsyncClient, conversation_id: str, *events: dict[str, Any]) -> httpx.Response:
    return await user.post(f"/api/conversations/{conversation_id}/executions", json={"events": events})


async def messages(user: httpx.AsyncClient, conversation_id: str) -> list[dict[str, Any]]:
    return (await user.get(f"/api/conversations/{conversation_id}/messages")).json()["items"]


@pytest.mark.requirement("004-R2.4")
async def test_run_of_another_engine_becomes_messages_with_all_its_rich_content(
    api: Api, alice: httpx.AsyncClient
):
    # GIVEN a conversation, and an engine that knows nothing of us but this address
    conversation_id = await make_conversation(alice)
    file_id = await keep_artifact(api.store, conversation_id)
    # WHEN it tells of a run, event by event, as they happen
    for event in (*RUN[:2], {**RUN[2], "artifactIds": [file_id]}):
        told = await tell(alice, conversation_id, event)
        assert told.json() == {"items": [{"runId": "run-7", "turnId": None}]}
    # THEN nothing stands in the conversation until the run has ended
    assert await messages(alice, conversation_id) == []
    turn_id = (await tell(alice, conversation_id, RUN[-1])).json()["items"][0]["turnId"]
    asked, reply = await messages(alice, conversation_id)
    assert (asked["role"], asked["content"]) == ("user", "合同违约条款是什么？")
    assert (reply["role"], reply["content"], reply["status"]) == (
        "assistant", "违约金为 20% [1]。", "COMPLETED",
    )  # fmt: skip
    assert reply["turnId"] == asked["turnId"] == turn_id
    assert [(it["kind"], it["title"], it["durationMs"]) for it in reply["thoughtProcess"]] == [
        ("node", "retrieve", 400), ("tool", "search", 300), ("retrieval", "合同违约条款是什么？", 0),
        ("node", "write", 300),
    ]  # fmt: skip
    assert [it["type"] for it in reply["parts"]] == [
        "thought",
        "tool_call",
        "retrieval",
        "thought",
        "file",
        "text",
    ]
    assert [(it["toolCallId"], it["status"], it["result"]) for it in reply["toolCalls"]] == [
        ("c1", "ok", {"hits": 1})
    ]
    assert [(it["index"], it["fileName"], it["page"]) for it in reply["citations"]] == [
        (1, "合同模板.pdf", 3)
    ]
    assert reply["artifactIds"] == [file_id]
    file = next(it for it in reply["parts"] if it["type"] == "file")
    assert (file["fileId"], file["fileName"], file["mediaType"], file["size"]) == (
        file_id,
        "a.txt",
        "text/plain",
        5,
    )
    assert (reply["usage"]["inputTokens"], reply["tokenCount"], reply["model"]) == (30, 20, "m")
    # AND its turn can be read and replayed like any other
    assert (await alice.get(f"/api/turns/{turn_id}")).json()["status"] == "COMPLETED"
    replayed = (await alice.get(f"/api/turns/{turn_id}/events")).text
    assert "违约金为 20%" in replayed
    assert replayed.rstrip().rsplit("event: ", 1)[1].startswith("done")
    # AND the conversation has got a title, as after a turn of ours
    shown = (await alice.get(f"/api/conversations/{conversation_id}")).json()
    assert (shown["title"], shown["messageCount"], shown["activeTurnId"]) == ("合同违约条款是什么？", 2, None)


@given(st.permutations(RUN), st.lists(st.sampled_from(RUN), max_size=4), st.integers(1, 4))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_order_and_repetition_change_nothing(
    order: list[dict[str, Any]],
    again: list[dict[str, Any]],
    batch: int,
):
    # Nodes that are told after both ends are too late by contract, so the start or the end comes last here.
    ends = [event for event in order if event["type"] != "NodeCompleted"]
    told = [event for event in [*order, *again] if event is not ends[-1]] + [ends[-1], *again]

    async def run() -> list[Any]:
        async with running_app() as app:
            conversation = await app.conversation()
            for begin in range(0, len(told), batch):
                await app.client.record(conversation.id, told[begin : begin + batch])
            return [message async for message in app.client.messages(conversation.id)]

    asked, reply = asyncio.run(run())
    assert (asked.content, reply.content) == (RUN[0]["input"], RUN[3]["output"])
    assert [step.title for step in reply.thought_process] == [
        "retrieve",
        "search",
        RUN[0]["input"],
        "write",
    ]
    assert reply.usage.input_tokens == 30


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [
        ({"type": "ExecutionFailed", "error": "out of memory", "output": "Half"}, "FAILED", "AGENTX_ERROR"),
        ({"type": "ExecutionCancelled", "output": "Half"}, "CANCELLED", None),
        ({"type": "ExecutionCompleted", "output": " \u3000"}, "FAILED", "AGENTX_ERROR"),
    ],
)
async def test_run_that_did_not_end_well_keeps_what_it_said(
    api: Api, alice: httpx.AsyncClient, end: dict[str, Any], status: str, code: str | None
):
    conversation_id = await make_conversation(alice)
    assert (await tell(alice, conversation_id, RUN[0], {**RUN[3], **end})).is_success
    reply = (await messages(alice, conversation_id))[-1]
    assert (reply["status"], reply.get("error", {}).get("code")) == (status, code)
    assert reply["content"].strip() in {"Half", ""}


async def test_events_told_at_the_same_moment_become_one_turn(api: Api, alice: httpx.AsyncClient):
    conversation_id = await make_conversation(alice)
    responses = await asyncio.gather(*(tell(alice, conversation_id, *RUN) for _ in range(10)))
    assert {response.json()["items"][0]["turnId"] for response in responses} != {None}
    assert len(await messages(alice, conversation_id)) == 2


async def test_nobody_records_in_other_peoples_conversations(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    conversation_id = await make_conversation(alice)
    refused = await tell(bob, conversation_id, *RUN)
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "CONVERSATION_NOT_FOUND")
    assert (await tell(alice, new_uuid(), *RUN)).status_code == 404
    assert await messages(alice, conversation_id) == []


@pytest.mark.parametrize(
    ("event", "status", "param"),
    [
        ({**RUN[0], "type": "NodeExploded"}, 422, "events[0].type"),
        ({**RUN[0], "input": "  "}, 400, "input"),
        ({**RUN[1], "node": None}, 422, "node"),
        ({**RUN[3], "type": "ExecutionFailed"}, 422, "error"),
        ({**RUN[0], "runId": ""}, 422, "runId"),
        ({**RUN[0], "at": "yesterday"}, 422, "events[0].at"),
        ({**RUN[0], "at": -1}, 422, "events[0].at"),
        ({**RUN[0], "at": 2**53}, 422, "events[0].at"),
        ({**RUN[1], "at": 253_402_300_800_000}, 422, "events[0].at"),
        ({**RUN[2], "artifactIds": [" "]}, 422, "artifactIds"),
        ({**RUN[0], "colour": "red"}, 422, "events[0].colour"),
    ],
)
async def test_bad_event_is_refused_with_its_field_and_nothing_is_kept(
    api: Api, alice: httpx.AsyncClient, event: dict[str, Any], status: int, param: str
):
    conversation_id = await make_conversation(alice)
    refused = await tell(alice, conversation_id, *RUN[1:3], event)
    assert (refused.status_code, refused.json()["error"]["param"]) == (status, param.replace("[0]", "[2]"))
    await tell(alice, conversation_id, RUN[0], RUN[3])
    assert (await messages(alice, conversation_id))[1]["thoughtProcess"] == []


async def test_ids_that_only_the_engine_knows_are_kept_and_shown_but_download_nothing(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    # GIVEN a file of the conversation, and ids of the engine's own, of nobody's, and of somebody else's files
    conversation_id = await make_conversation(alice)
    own = await keep_artifact(api.store, conversation_id)
    others = [await keep_artifact(api.store, await make_conversation(user)) for user in (alice, bob)]
    foreign = ["file-1", "s3://bucket/a b.pdf", new_uuid(), *others]
    # WHEN a run names them all
    named = [own.upper(), *foreign]
    told = await tell(alice, conversation_id, RUN[0], {**RUN[2], "artifactIds": named}, RUN[3])
    assert told.status_code == 200
    # THEN all are shown, in order, and only the conversation's own file can be downloaded
    reply = (await messages(alice, conversation_id))[1]
    assert reply["artifactIds"] == [own, *foreign]
    files = [it for it in reply["parts"] if it["type"] == "file"]
    assert [it.get("isElsewhere", False) for it in files] == [False, *[True] * 5]
    # Nothing tells an id that somebody else has from one that nobody has.
    assert len({str({**it, "fileId": ""}) for it in files[1:]}) == 1
    for format_ in ("md", "html"):
        report = (await alice.get(f"/api/conversations/{conversation_id}/report?format={format_}")).text
        assert report.count("/api/artifacts/") == 1
        assert "bucket/a b.pdf" in report
    exported = await alice.get(f"/api/conversations/{conversation_id}/export?format=json")
    assert all(it in exported.text for it in foreign)
    # A copy of the conversation has its own copy of the file, and the same ids of the engine.
    fork = await alice.post(f"/api/conversations/{conversation_id}/fork", json={"messageId": reply["id"]})
    copied = (await messages(alice, fork.json()["id"]))[1]["artifactIds"]
    assert copied[1:] == foreign
    assert (await alice.get(f"/api/artifacts/{copied[0]}")).status_code == 200


async def test_large_values_of_a_run_lie_beside_its_rows_and_come_back_whole(
    api: Api, alice: httpx.AsyncClient
):
    conversation_id = await make_conversation(alice)
    given_, gave = {"text": "长" * 20_000}, ["x" * 20_000, {"refs": {"result": "made up"}}]
    tool = {"toolCallId": "c1", "toolName": "copy", "arguments": given_, "result": gave}
    await tell(alice, conversation_id, RUN[0], {**RUN[1], "tools": [tool]})
    turn_id = (await tell(alice, conversation_id, RUN[3])).json()["items"][0]["turnId"]
    (call,) = (await messages(alice, conversation_id))[1]["toolCalls"]
    assert (call["arguments"], call["result"]) == (given_, gave)
    replayed = (await alice.get(f"/api/turns/{turn_id}/events")).text
    assert "x" * 20_000 in replayed
    assert '"refs":{"result":"0' not in replayed
    (stored,) = await api.store.log.read(TurnId(turn_id), 0)
    assert len(stored.events) < 10_000


async def test_recorder_hands_events_over_in_the_background():
    async with running_app() as app:
        conversation = await app.conversation()
        async with Recorder(app.client, conversation.id) as recorder:
            for event in [*RUN[:2], {"type": "nonsense"}, *RUN[2:]]:
                recorder.handle(event)  # not awaited: the engine goes on at once
        assert [it.content async for it in app.client.messages(conversation.id)] == [
            RUN[0]["input"], RUN[3]["output"],
        ]  # fmt: skip


async def test_recorder_of_a_server_that_is_gone_says_what_it_could_not_send():
    async with Client("http://127.0.0.1:1") as client:
        recorder = Recorder(client, new_uuid(), patience_s=0.05)
        with pytest.raises(NotReached, match="Couldn't record 4 events"):
            async with recorder:
                for event in RUN:
                    recorder.handle(event)
        assert recorder.unsent == RUN
        with pytest.raises(ZeroDivisionError):
            async with recorder:
                raise ZeroDivisionError
