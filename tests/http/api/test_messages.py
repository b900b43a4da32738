"""Messages over HTTP: pages, what a message shows, context for other engines, and sending."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import ONLY_SQLITE, SECRET, Api
from tests.http.calls import Json, items, main_chat, new_conversation, refusal, stored
from tests.http.direct import run_sql
from tests.making import (
    ALICE,
    NOW,
    keep_begun,
    keep_ended,
    keep_feedback,
    keep_turn,
    said,
)
from tests.talking import JSON, talking
from threadkeep import Settings, create_app
from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.feedback import Rating
from threadkeep.domain.ids import AgentId, BriefingId, PayloadId, new_uuid
from threadkeep.domain.message import Failure, MessageStatus, Usage
from threadkeep.domain.money import Cost
from threadkeep.domain.parts import RetrievalPart, TextPart, ThoughtPart, ToolCallPart
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.testing import Say, ScriptedModel, scripted_settings

BLANK = ["", " ", "\n", "\t \r\n", "\u3000", "\u200b", "\ufeff\u2060\u00a0", "\u2028\u115f\u3164"]


async def talk_of(api: Api, client: httpx.AsyncClient, turns: int) -> Json:
    """A conversation of so many turns: `q1`, `a2`, `q3`, `a4` …"""
    conversation = await new_conversation(client)
    talk = await stored(api, conversation)
    for seq in range(1, 2 * turns, 2):
        talk = await keep_turn(api.store, talk, f"q{seq}", f"a{seq + 1}")
    return conversation


def card(title: str = "Review耗时超标", summary: str = "中位耗时30小时", **changes: Any) -> Briefing:
    """A briefing, sent on 2026-01-07 at 10:00 UTC."""
    values: dict[str, Any] = {
        "id": BriefingId(new_uuid()),
        "agent_id": AgentId(new_uuid()),
        "user_id": ALICE,
        "title": title,
        "summary": summary,
        "priority": Priority.P1,
        "data": None,
        "actions": (),
        "created_at": 1_767_780_000_000,
    }
    return Briefing(**(values | changes))


async def put_card(api: Api, conversation: Json, briefing: Briefing) -> None:
    talk, message = (await stored(api, conversation)).add_card(briefing, NOW)
    await api.store.messages.add_card(talk, message)


def overwrite(database_url: str, conversation: Json, *seqs: int) -> None:
    for seq in seqs:
        run_sql(
            database_url,
            "UPDATE tk_messages SET on_path = FALSE WHERE conversation_id = ? AND seq = ?",
            *(conversation["id"], seq),
        )


def archive(database_url: str, conversation: Json, to_seq: int, summary: str) -> None:
    """What compacting leaves behind."""
    run_sql(
        database_url,
        """INSERT INTO tk_compactions (id, conversation_id, from_seq, to_seq, summary, archived_count,
            tokens_before, tokens_after, created_at) VALUES (?, ?, 1, ?, ?, ?, 100, 10, ?)""",
        *(new_uuid(), conversation["id"], to_seq, summary, to_seq, NOW),
    )
    run_sql(
        database_url,
        "UPDATE tk_conversations SET archived_to_seq = ? WHERE id = ?",
        *(to_seq, conversation["id"]),
    )


def seqs_of(messages: Sequence[Json]) -> list[int]:
    return [message["seq"] for message in messages]


# Pages


async def test_messages_come_oldest_first_and_newest_first_on_demand(api: Api, alice: httpx.AsyncClient):
    conversation = await talk_of(api, alice, 12)
    path = f"/api/conversations/{conversation['id']}/messages"
    page = (await alice.get(path)).json()
    assert seqs_of(page["items"]) == list(range(1, 21))
    assert page["nextCursor"]
    assert [it["content"] for it in page["items"][:3]] == ["q1", "a2", "q3"]
    assert [it["role"] for it in page["items"][:3]] == ["user", "assistant", "user"]
    assert seqs_of(await items(alice, path, order="asc", limit=5)) == list(range(1, 25))
    assert seqs_of(await items(alice, path, order="desc", limit=5)) == list(range(24, 0, -1))
    assert (await alice.get(path, params={"limit": 24})).json()["nextCursor"] is None


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(turns=st.integers(0, 6), limit=st.integers(1, 15), order=st.sampled_from(["asc", "desc", None]))
async def test_pages_have_no_gap_and_no_repeat_whatever_their_size(
    api: Api, alice: httpx.AsyncClient, turns: int, limit: int, order: str | None
):
    path = f"/api/conversations/{(await talk_of(api, alice, turns))['id']}/messages"
    query = {"limit": limit} | ({"order": order} if order else {})
    expected = list(range(1, 2 * turns + 1))
    pages: list[list[int]] = []
    cursor = None
    while not pages or cursor:
        page = (await alice.get(path, params=query | ({"cursor": cursor} if cursor else {}))).json()
        pages.append(seqs_of(page["items"]))
        cursor = page["nextCursor"]
    assert [seq for page in pages for seq in page] == (expected[::-1] if order == "desc" else expected)
    assert all(len(page) == limit for page in pages[:-1])
    assert pages[-1] or not turns
    by_offset = [
        seq
        for offset in range(0, max(1, len(expected)), limit)
        for seq in seqs_of((await alice.get(path, params=query | {"offset": offset})).json()["items"])
    ]
    assert by_offset == [seq for page in pages for seq in page]


async def test_cursor_goes_on_where_it_was_while_messages_are_added(api: Api, alice: httpx.AsyncClient):
    conversation = await talk_of(api, alice, 3)
    path = f"/api/conversations/{conversation['id']}/messages"
    first = {
        order: (await alice.get(path, params={"order": order, "limit": 4})).json()
        for order in ("asc", "desc")
    }
    await keep_turn(api.store, await stored(api, conversation), "q7", "a8")
    older = await items(alice, path, order="desc", limit=4, cursor=first["desc"]["nextCursor"])
    newer = await items(alice, path, order="asc", limit=4, cursor=first["asc"]["nextCursor"])
    assert seqs_of(older) == [2, 1]
    assert seqs_of(newer) == [5, 6, 7, 8]


async def test_window_by_seq_leaves_its_bounds_out(api: Api, alice: httpx.AsyncClient):
    conversation = await talk_of(api, alice, 5)
    path = f"/api/conversations/{conversation['id']}/messages"
    cases: list[tuple[Json, list[int]]] = [
        ({"afterSeq": 7}, [8, 9, 10]),
        ({"beforeSeq": 4}, [1, 2, 3]),
        ({"afterSeq": 3, "beforeSeq": 7}, [4, 5, 6]),
        ({"afterSeq": 3, "beforeSeq": 7, "order": "desc"}, [6, 5, 4]),
        ({"afterSeq": 3, "beforeSeq": 7, "limit": 2, "offset": 1}, [5, 6]),
        ({"afterSeq": 10}, []),
        ({"afterSeq": 2**62}, []),
        ({"beforeSeq": 0}, []),
        ({"beforeSeq": 1}, []),
        ({"afterSeq": 5, "beforeSeq": 3}, []),
        ({"afterSeq": 0, "beforeSeq": 2**62}, list(range(1, 11))),
    ]
    for query, expected in cases:
        assert seqs_of((await alice.get(path, params=query)).json()["items"]) == expected, query
    for order, expected in (("asc", [3, 4, 5, 6, 7]), ("desc", [7, 6, 5, 4, 3])):
        assert seqs_of(await items(alice, path, order=order, limit=2, afterSeq=2, beforeSeq=8)) == expected


async def test_cursor_stays_within_the_window_it_is_used_with(api: Api, alice: httpx.AsyncClient):
    conversation = await talk_of(api, alice, 5)
    path = f"/api/conversations/{conversation['id']}/messages"
    for order, window in (("desc", {"beforeSeq": 0}), ("asc", {"afterSeq": 10})):
        cursor = (await alice.get(path, params={"order": order, "limit": 2})).json()["nextCursor"]
        query = {"order": order, "cursor": cursor, **window}
        assert (await alice.get(path, params=query)).json()["items"] == []


async def test_overwritten_messages_are_shown_on_demand(
    api: Api, alice: httpx.AsyncClient, database_url: str
):
    conversation = await talk_of(api, alice, 4)
    overwrite(database_url, conversation, 2, 3, 8)
    path = f"/api/conversations/{conversation['id']}/messages"
    for limit in (1, 2, 3, 5):
        assert seqs_of(await items(alice, path, limit=limit)) == [1, 4, 5, 6, 7]
        assert seqs_of(await items(alice, path, limit=limit, order="desc")) == [7, 6, 5, 4, 1]
        whole = await items(alice, path, limit=limit, include="overwritten")
        assert seqs_of(whole) == list(range(1, 9))
    assert [it["status"] for it in whole[:4]] == ["COMPLETED", "OVERWRITTEN", "OVERWRITTEN", "COMPLETED"]
    assert whole[1]["content"] == "a2"
    detail = (await alice.get(f"/api/conversations/{conversation['id']}")).json()
    assert seqs_of(detail["messages"]) == [1, 4, 5, 6, 7]


async def test_archived_messages_are_in_the_page_and_flagged(
    api: Api, alice: httpx.AsyncClient, database_url: str
):
    conversation = await talk_of(api, alice, 3)
    archive(database_url, conversation, 4, "They asked twice.")
    listed = await items(alice, f"/api/conversations/{conversation['id']}/messages")
    assert [it["archived"] for it in listed] == [True] * 4 + [False] * 2
    detail = (await alice.get(f"/api/conversations/{conversation['id']}")).json()
    assert detail["messages"] == listed
    assert detail["summary"] == "They asked twice."


# What a message shows


async def test_rich_reply_shows_every_field_of_the_contract(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    begun = (await stored(api, conversation)).begin_turn("图表？", NOW, model="some-model")
    await keep_begun(api.store, begun)
    turn, reply = begun.turn, begun.assistant_message
    document, artifact = new_uuid(), PayloadId(new_uuid())
    hits = (
        RetrievalHit("合同", "第三条", 0.9, file_name="a.pdf", document_id=document, page=3),
        RetrievalHit("Web", "…", 0.5, url="https://example.org/"),
    )
    chart: Json = {"series": [{"data": [1, 2.5, None]}]}
    plot = ToolCall(turn.id, "c1", reply.id, "plot", "charts", {"rows": [1]}, ToolCallStatus.RUNNING, NOW)
    fail = replace(plot, tool_call_id="c2", tool_name="search", server="web", arguments={})
    plotted = plot.end(
        ToolCallStatus.OK,
        result={"ok": [True]},
        chart_data=chart,
        duration_ms=40,
        artifact_ids=(artifact,),
    )
    failed = fail.end(ToolCallStatus.ERROR, error="unreachable", duration_ms=2)
    parts = (
        RetrievalPart(query="图表", hits=hits, at=NOW + 3),
        ThoughtPart(text="画图", started_at=NOW + 5, duration_ms=40, iteration=1),
        ToolCallPart(call=plotted, iteration=1),
        ToolCallPart(call=failed, iteration=1),
        TextPart(text="见图 [1]", iteration=2),
    )
    usage = Usage(12, 34, estimated=True, cost=Cost("0.0012", "USD"))
    rich = reply.finish(MessageStatus.COMPLETED, parts, NOW + 100, usage=usage)
    ended = begun.conversation.end_turn(turn, rich, NOW + 100)
    await keep_ended(api.store, ended)
    await keep_feedback(api.store, ended.conversation, Rating.DOWN, note="错了", share_text=True)

    asked, shown = await items(alice, f"/api/conversations/{conversation['id']}/messages")
    assert shown == {
        "id": reply.id,
        "conversationId": conversation["id"],
        "seq": 2,
        "parentId": asked["id"],
        "turnId": turn.id,
        "runId": turn.id,
        "role": "assistant",
        "contentType": "text",
        "content": "见图 [1]",
        "parts": [
            {
                "type": "retrieval",
                "query": "图表",
                "hits": [
                    {
                        "source": "合同",
                        "text": "第三条",
                        "score": 0.9,
                        "documentId": document,
                        "page": 3,
                        "fileName": "a.pdf",
                    },
                    {"source": "Web", "text": "…", "score": 0.5, "url": "https://example.org/"},
                ],
                "iteration": 0,
            },
            {
                "type": "thought",
                "text": "画图",
                "startedAt": "2027-01-15T08:00:00.005Z",
                "durationMs": 40,
                "iteration": 1,
            },
            {
                "type": "tool_call",
                "toolCallId": "c1",
                "toolName": "plot",
                "server": "charts",
                "arguments": {"rows": [1]},
                "status": "ok",
                "result": {"ok": [True]},
                "chartData": chart,
                "artifactIds": [artifact],
                "durationMs": 40,
                "iteration": 1,
            },
            {
                "type": "tool_call",
                "toolCallId": "c2",
                "toolName": "search",
                "server": "web",
                "arguments": {},
                "status": "error",
                "result": None,
                "error": "unreachable",
                "durationMs": 2,
                "iteration": 1,
            },
            {"type": "text", "text": "见图 [1]", "iteration": 2},
        ],
        "status": "COMPLETED",
        "thoughtProcess": [
            {
                "kind": "retrieval",
                "title": "图表",
                "detail": "合同, Web",
                "startedAt": "2027-01-15T08:00:00.003Z",
                "durationMs": 0,
            },
            {
                "kind": "thought",
                "title": "Thought",
                "detail": "画图",
                "startedAt": "2027-01-15T08:00:00.005Z",
                "durationMs": 40,
            },
            {
                "kind": "tool",
                "title": "plot",
                "detail": "",
                "startedAt": "2027-01-15T08:00:00.000Z",
                "durationMs": 40,
                "toolCallId": "c1",
            },
            {
                "kind": "tool",
                "title": "search",
                "detail": "unreachable",
                "startedAt": "2027-01-15T08:00:00.000Z",
                "durationMs": 2,
                "toolCallId": "c2",
            },
        ],
        "citations": [
            {
                "index": 1,
                "title": "合同",
                "snippet": "第三条",
                "score": 0.9,
                "fileName": "a.pdf",
                "documentId": document,
                "page": 3,
            },
            {"index": 2, "title": "Web", "snippet": "…", "score": 0.5, "url": "https://example.org/"},
        ],
        "artifactIds": [artifact],
        "toolCalls": [
            {
                "toolCallId": "c1",
                "toolName": "plot",
                "server": "charts",
                "arguments": {"rows": [1]},
                "status": "ok",
                "result": {"ok": [True]},
                "chartData": chart,
                "durationMs": 40,
            },
            {
                "toolCallId": "c2",
                "toolName": "search",
                "server": "web",
                "arguments": {},
                "status": "error",
                "result": None,
                "error": "unreachable",
                "durationMs": 2,
            },
        ],
        "tokenCount": 34,
        "usage": {
            "inputTokens": 12,
            "outputTokens": 34,
            "cacheReadTokens": 0,
            "cacheWriteTokens": 0,
            "estimated": True,
        },
        "model": "some-model",
        "cost": {"amount": "0.0012", "currency": "USD"},
        "archived": False,
        "createdAt": "2027-01-15T08:00:00.000Z",
        "completedAt": "2027-01-15T08:00:00.100Z",
        "feedback": {"rating": "down", "note": "错了", "shareText": True},
    }
    assert asked.keys() == shown.keys() - {"feedback"}  # only answers are rated
    assert asked["thoughtProcess"] == asked["citations"] == asked["artifactIds"] == asked["toolCalls"] == []
    assert asked["tokenCount"] is asked["usage"] is asked["model"] is None


async def test_failed_reply_shows_why_and_keeps_its_text(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    begun = (await stored(api, conversation)).begin_turn("?", NOW)
    await keep_begun(api.store, begun)
    path = f"/api/conversations/{conversation['id']}"
    running = (await alice.get(path)).json()
    assert running["activeTurnId"] == begun.turn.id
    assert (running["messages"][1]["status"], running["messages"][1]["content"]) == ("PENDING", "")
    assert running["messages"][1]["completedAt"] is None
    assert "error" not in running["messages"][1]
    failure = Failure("AGENTX_ERROR", "The model gateway failed.", retryable=True)
    failed = begun.assistant_message.finish(MessageStatus.FAILED, said("Well, "), NOW + 1, error=failure)
    await keep_ended(api.store, begun.conversation.end_turn(begun.turn, failed, NOW + 1))
    ended = (await alice.get(path)).json()
    assert ended["activeTurnId"] is None
    assert (ended["messages"][1]["status"], ended["messages"][1]["content"]) == ("FAILED", "Well, ")
    assert ended["messages"][1]["error"] == {
        "code": "AGENTX_ERROR",
        "message": "The model gateway failed.",
        "retryable": True,
    }


async def test_briefing_card_is_an_object(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    briefing = card(data={"hours": [30]}, actions=({"id": "start_conversation", "label": "讨论"},))
    await put_card(api, conversation, briefing)
    (message,) = await items(alice, f"/api/conversations/{conversation['id']}/messages")
    assert (message["role"], message["contentType"]) == ("system", "briefing_card")
    assert message["content"] == {
        "briefingId": briefing.id,
        "title": "Review耗时超标",
        "summary": "中位耗时30小时",
        "priority": "P1",
        "sentAt": "2026-01-07T10:00:00.000Z",
        "data": {"hours": [30]},
        "actions": [{"id": "start_conversation", "label": "讨论"}],
    }
    assert message["turnId"] is message["runId"] is None


# Context for other engines


async def test_context_has_the_latest_messages_as_role_and_content(api: Api, alice: httpx.AsyncClient):
    conversation = await talk_of(api, alice, 15)
    path = f"/api/conversations/{conversation['id']}/context"
    context = (await alice.get(path)).json()
    assert context.keys() == {"messages"}
    assert [it["content"] for it in context["messages"]][:2] == ["q11", "a12"]
    assert len(context["messages"]) == 20
    assert context["messages"][-1] == {"role": "assistant", "content": "a30"}
    short = (await alice.get(path, params={"limit": 3})).json()["messages"]
    assert short == context["messages"][-3:]
    assert len((await alice.get(path, params={"limit": 200})).json()["messages"]) == 30
    assert (await alice.get(f"{path.replace('context', 'messages')}")).json()["items"][0]["content"] == "q1"


@pytest.mark.parametrize(("configured", "expected"), [(4, 4), (0, 30)])
async def test_context_is_as_long_as_the_agent_takes(
    api: Api, alice: httpx.AsyncClient, configured: int, expected: int
):
    conversation = await talk_of(api, alice, 15)
    await alice.patch(
        f"/api/agents/{conversation['agentId']}", json={"settings": {"contextMessages": configured}}
    )
    context = (await alice.get(f"/api/conversations/{conversation['id']}/context")).json()
    assert len(context["messages"]) == expected


async def test_overwritten_and_empty_messages_stay_out_of_the_context_and_do_not_count(
    api: Api, alice: httpx.AsyncClient, database_url: str
):
    conversation = await talk_of(api, alice, 4)
    overwrite(database_url, conversation, 4, 6)
    begun = (await stored(api, conversation)).begin_turn("q9", NOW)
    await keep_begun(api.store, begun)
    cancelled = begun.assistant_message.finish(MessageStatus.CANCELLED, said(" \n"), NOW + 1)
    await keep_ended(api.store, begun.conversation.end_turn(begun.turn, cancelled, NOW + 1))
    path = f"/api/conversations/{conversation['id']}/context"
    contents = ["q1", "a2", "q3", "q5", "q7", "a8", "q9"]
    for limit in range(1, 10):
        context = (await alice.get(path, params={"limit": limit})).json()["messages"]
        assert [it["content"] for it in context] == contents[-limit:]


async def test_thought_process_stays_out_of_the_context(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    begun = (await stored(api, conversation)).begin_turn("?", NOW)
    await keep_begun(api.store, begun)
    thought = ThoughtPart(text="secret thought", started_at=NOW, duration_ms=1, iteration=1)
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, (thought, *said("!")), NOW + 1)
    await keep_ended(api.store, begun.conversation.end_turn(begun.turn, reply, NOW + 1))
    response = await alice.get(f"/api/conversations/{conversation['id']}/context")
    assert response.json()["messages"] == [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "!"},
    ]
    assert "secret" not in response.text


@ONLY_SQLITE
async def test_card_reads_in_the_context_as_the_contract_prints_it(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    await put_card(api, conversation, card())
    await put_card(api, conversation, card(summary="长" * 500, priority=Priority.P0))
    await put_card(api, conversation, card(summary="长" * 501, priority=Priority.P3))
    context = (await alice.get(f"/api/conversations/{conversation['id']}/context")).json()["messages"]
    assert context == [
        {
            "role": "user",
            "content": "[简报 2026-01-07 10:00]\n标题：Review耗时超标\n摘要：中位耗时30小时\n优先级：P1",
        },
        {
            "role": "user",
            "content": f"[简报 2026-01-07 10:00]\n标题：Review耗时超标\n摘要：{'长' * 500}\n优先级：P0",
        },
        {
            "role": "user",
            "content": f"[简报 2026-01-07 10:00]\n标题：Review耗时超标\n摘要：{'长' * 500}...\n优先级：P3",
        },
    ]


@ONLY_SQLITE
async def test_card_is_dated_in_the_configured_time_zone(database_url: str):
    zoned = Settings.load({}, database_url=database_url, jwt_secret=SECRET, timezone="Asia/Shanghai")
    app = create_app(zoned)
    async with app.lifespan():
        api = Api(app, (await app.services()).store, [])
        async with api.as_user("alice") as alice:
            conversation = await new_conversation(alice)
            await put_card(api, conversation, card())
            context = (await alice.get(f"/api/conversations/{conversation['id']}/context")).json()
    assert context["messages"][0]["content"].startswith("[简报 2026-01-07 18:00]\n")


async def test_summary_stands_first_for_archived_messages(
    api: Api, alice: httpx.AsyncClient, database_url: str
):
    conversation = await talk_of(api, alice, 4)
    archive(database_url, conversation, 2, "They said hello.")
    archive(database_url, conversation, 4, "They said hello twice.")
    path = f"/api/conversations/{conversation['id']}/context"
    for limit, rest in ((200, ["q5", "a6", "q7", "a8"]), (2, ["q7", "a8"]), (1, ["a8"])):
        first, *others = (await alice.get(path, params={"limit": limit})).json()["messages"]
        assert first["content"].endswith("\nThey said hello twice.")
        assert [it["content"] for it in others] == rest


@ONLY_SQLITE
async def test_context_limit_has_the_bounds_of_every_list(alice: httpx.AsyncClient):
    path = f"/api/conversations/{(await new_conversation(alice))['id']}/context"
    for limit in ("0", "201", "10000", "-1", "abc", ""):
        refusal(await alice.get(path, params={"limit": limit}), 422, "INVALID_REQUEST", "limit")
    refusal(await alice.get(path, params={"cursor": "x"}), 422, "INVALID_REQUEST", "cursor")
    assert (await alice.get(path)).json() == {"messages": []}


# Sending


@ONLY_SQLITE
async def test_content_that_says_nothing_is_refused(alice: httpx.AsyncClient):
    path = f"/api/conversations/{(await new_conversation(alice))['id']}/messages"
    bodies: list[Any] = [{}, {"content": None}, *({"content": blank} for blank in BLANK)]
    for where in (path, "/api/chat"):
        for body in bodies:
            refusal(await alice.post(where, json=body), 400, "MESSAGE_CONTENT_REQUIRED", "content")
        refusal(await alice.post(where), 400, "MESSAGE_CONTENT_REQUIRED", "content")
    assert await items(alice, path) == []


@ONLY_SQLITE
async def test_content_of_a_wrong_type_is_refused(alice: httpx.AsyncClient):
    path = f"/api/conversations/{(await new_conversation(alice))['id']}/messages"
    for where in (path, "/api/chat"):
        for wrong in (1, 1.5, True, ["x"], {"text": "x"}):
            response = await alice.post(where, json={"content": wrong})
            refusal(response, 422, "INVALID_REQUEST", "content")
        refusal(
            await alice.post(where, json={"content": "x", "role": "system"}), 422, "INVALID_REQUEST", "role"
        )
        refusal(await alice.post(where, json=["x"]), 422, "INVALID_REQUEST")


@ONLY_SQLITE
async def test_content_longer_than_the_agent_takes_is_refused(alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    path = f"/api/conversations/{conversation['id']}/messages"
    error = refusal(
        await alice.post(path, json={"content": "题" * 10_001}), 400, "MESSAGE_TOO_LONG", "content"
    )
    assert error["details"] == {"most": 10_000, "length": 10_001}
    # Characters count, however many bytes they have.
    refusal(await alice.post(path, json={"content": "🙂" * 10_000}), 409, "GATEWAY_NOT_CONFIGURED")
    agent = f"/api/agents/{conversation['agentId']}"
    await alice.patch(agent, json={"settings": {"maxMessageChars": 5}})
    refusal(await alice.post(path, json={"content": "123456"}), 400, "MESSAGE_TOO_LONG", "content")
    await alice.patch(agent, json={"settings": {"maxMessageChars": 0}})
    refusal(await alice.post(path, json={"content": "x" * 1_000_000}), 409, "GATEWAY_NOT_CONFIGURED")


async def test_valid_message_is_told_that_no_model_is_configured_and_leaves_no_trace(
    alice: httpx.AsyncClient,
):
    path = f"/api/conversations/{(await new_conversation(alice))['id']}"
    before = (await alice.get(path)).json()
    for content in ("你好", " \u200bx", "\u3000。"):
        refusal(
            await alice.post(f"{path}/messages", json={"content": content}), 409, "GATEWAY_NOT_CONFIGURED"
        )
    assert (await alice.get(path)).json() == before


# Chat in one call


async def test_chat_is_the_main_conversation_with_the_default_agent(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    refusal(await alice.post("/api/chat", json={"content": "x" * 200_000}), 409, "GATEWAY_NOT_CONFIGURED")
    assert await items(alice, "/api/conversations") == []
    conversation = await main_chat(alice)
    assert conversation["isMain"] is True
    (default,) = await items(alice, "/api/agents")
    assert conversation["agentId"] == default["id"]
    main = await alice.put(f"/api/agents/{default['id']}/conversation")
    assert (main.status_code, main.json()["id"]) == (200, conversation["id"])
    await keep_turn(api.store, await stored(api, conversation), "谁？", "我。")
    listed = (await alice.get("/api/chat/messages")).json()
    assert [it["content"] for it in listed["items"]] == ["谁？", "我。"]
    assert (await bob.get("/api/chat/messages")).json()["items"] == []


async def test_reading_the_chat_does_not_begin_it(alice: httpx.AsyncClient):
    assert (await alice.get("/api/chat/messages")).json() == {"items": [], "nextCursor": None}
    assert await items(alice, "/api/conversations") == []
    for query, param in (("limit=0", "limit"), ("cursor=x", "cursor"), ("cursor=x&offset=0", "offset")):
        refusal(await alice.get(f"/api/chat/messages?{query}"), 422, "INVALID_REQUEST", param)


async def test_latest_chat_messages_are_read_as_those_of_any_conversation(api: Api, alice: httpx.AsyncClient):
    path = "/api/chat/messages"
    for query in ("order=desc", "beforeSeq=3", "afterSeq=3", "include=overwritten"):
        assert (await alice.get(f"{path}?{query}")).json() == {"items": [], "nextCursor": None}
    talk = await stored(api, await main_chat(alice))
    for number in range(4):
        talk = await keep_turn(api.store, talk, f"q{number}", f"a{number}")
    assert seqs_of(await items(alice, path, limit=3, order="desc")) == list(range(8, 0, -1))
    for query, seqs in (("order=desc&limit=2", [8, 7]), ("afterSeq=6", [7, 8]), ("beforeSeq=3", [1, 2])):
        assert seqs_of((await alice.get(f"{path}?{query}")).json()["items"]) == seqs
    refusal(await alice.get(f"{path}?order=up"), 422, "INVALID_REQUEST", "order")


async def test_chat_messages_are_paged_by_offset_and_by_cursor(api: Api, alice: httpx.AsyncClient):
    talk = await stored(api, await main_chat(alice))
    for number in range(4):
        talk = await keep_turn(api.store, talk, f"q{number}", f"a{number}")
    assert seqs_of(await items(alice, "/api/chat/messages", limit=3)) == list(range(1, 9))
    page = (await alice.get("/api/chat/messages", params={"limit": 3, "offset": 4})).json()
    assert seqs_of(page["items"]) == [5, 6, 7]
    for query, param in (("limit=0", "limit"), ("offset=-1", "offset"), ("cursor=x", "cursor"), ("q=1", "q")):
        refusal(await alice.get(f"/api/chat/messages?{query}"), 422, "INVALID_REQUEST", param)


async def test_deleted_chat_begins_anew(api: Api, alice: httpx.AsyncClient):
    conversation = await main_chat(alice)
    await keep_turn(api.store, await stored(api, conversation), "?", "!")
    await alice.delete(f"/api/conversations/{conversation['id']}")
    assert (await alice.get("/api/chat/messages")).json()["items"] == []
    refusal(await alice.post("/api/chat", json={"content": "x"}), 409, "GATEWAY_NOT_CONFIGURED")
    assert await items(alice, "/api/conversations") == []
    assert (await main_chat(alice))["id"] != conversation["id"]


async def test_chat_of_two_hundred_at_once_is_one_conversation(
    database_url: str, model: ScriptedModel, tmp_path: Path
):
    model.otherwise = [Say("Because.")]
    async with talking(scripted_settings(model, data=tmp_path, database_url=database_url)) as talk:
        async with asyncio.TaskGroup() as group:
            begun = [
                group.create_task(talk.client.post("/api/chat", json={"content": "x"}, headers=JSON))
                for _ in range(100)
            ]
            for _ in range(100):
                group.create_task(talk.client.get("/api/chat/messages"))
        assert 202 in {it.result().status_code for it in begun}
        assert len(await items(talk.client, "/api/conversations")) == 1
