"""Large conversations and large requests: each response has some megabytes at most, its cursor loses nothing,
and the event loop stays free meanwhile.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import msgspec
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, new_conversation, stored
from tests.http.replies import FOLLOWS, READS_OF_A_REPLY, SENDS, ReadReply, place_of
from tests.loop_time import watching_the_loop
from tests.making import NOW, keep_begun, keep_tree, keep_turn
from threadkeep.domain.events import LogChunk
from threadkeep.domain.execution import MOST_PARTS
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.parts import TextPart, ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.log.format import encode_chunk
from threadkeep.log.replies import events_of
from threadkeep.services import outside
from threadkeep.storage import messages as stored_messages

MOST = 20_000
TURNS = 12
Read = Callable[[httpx.AsyncClient, Json], Awaitable[list[Json]]]
"""Reads a conversation page by page; returns the pages."""


def pages_of(path: str, **query: Any) -> Read:
    async def read(client: httpx.AsyncClient, conversation: Json) -> list[Json]:
        pages: list[Json] = []
        cursor: dict[str, str] = {}
        while True:
            response = await client.get(path.format(**conversation), params={**query, **cursor})
            assert response.status_code == 200, response.text[:500]
            pages.append(response.json())
            if pages[-1]["nextCursor"] is None:
                return pages
            cursor = {"cursor": pages[-1]["nextCursor"]}

    return read


async def detail(client: httpx.AsyncClient, conversation: Json) -> list[Json]:
    first = (await client.get(f"/api/conversations/{conversation['id']}")).json()
    pages = [first["messages"][::-1]]
    while first["nextCursor"] is not None:
        path = f"/api/conversations/{conversation['id']}/messages"
        first = (await client.get(path, params={"cursor": first["nextCursor"], "limit": 50})).json()
        pages.append(first["items"])
    return [{"items": page} for page in pages]


async def openai_items(client: httpx.AsyncClient, conversation: Json) -> list[Json]:
    pages: list[Json] = []
    after: dict[str, str] = {}
    while True:
        path = f"/v1/conversations/{conversation['id']}/items"
        response = await client.get(path, params={"limit": 100, "order": "asc", **after})
        pages.append({"items": response.json()["data"]})
        if not response.json()["has_more"]:
            return pages
        after = {"after": response.json()["last_id"]}


READS: dict[str, Read] = {
    "messages": pages_of("/api/conversations/{id}/messages", limit=200),
    "messages, newest first": pages_of("/api/conversations/{id}/messages", limit=200, order="desc"),
    "messages of all branches": pages_of(
        "/api/conversations/{id}/messages", limit=200, include="overwritten"
    ),
    "conversation": detail,
    "share": pages_of("/api/shares/{token}", limit=200),
    "items": openai_items,
}


async def filled(api: Api, client: httpx.AsyncClient, size: int) -> Json:
    """A conversation of long replies, and a share of it."""
    conversation = await new_conversation(client)
    now = await stored(api, conversation)
    for number in range(TURNS):
        now = await keep_turn(api.store, now, f"Question {number}", f"{number} é " + "x" * size)
    made = await client.post(f"/api/conversations/{conversation['id']}/shares", json={"tools": True})
    return {**conversation, "token": made.json()["token"]}


def texts_in(page: Json) -> list[str]:
    """The texts of a page's messages or items, whatever it calls them."""
    listed: list[Json] = page.get("items") or page.get("messages") or []
    return [text for it in listed if (text := _text(it))]


def _text(item: Json) -> str:
    parts: str | list[Json] = item.get("parts") or item.get("content") or item["text"]
    return parts if isinstance(parts, str) else "".join(part.get("text") or "" for part in parts)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_pages_end_where_they_are_large_and_lose_nothing(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, read: Read
):
    conversation = await filled(api, alice, MOST // 3)
    (*whole, rest) = await read(alice, conversation)
    assert not whole
    monkeypatch.setattr(stored_messages, "MOST_PAGE_BYTES", MOST)
    monkeypatch.setattr("threadkeep.services.sharing.shares.MOST_PAGE_BYTES", MOST)
    monkeypatch.setattr("threadkeep.protocols.openai.conversation_items.MOST_PAGE_BYTES", MOST)
    pages = await read(alice, conversation)
    assert len(pages) >= TURNS // 4
    assert [text for page in pages for text in texts_in(page)] == texts_in(rest)
    assert all(sum(map(len, texts_in(page))) < 2 * MOST for page in pages)


@ONLY_SQLITE
async def test_histories_of_other_clients_have_the_newest_that_fit(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    conversation = await filled(api, alice, MOST // 3)
    for module in ("threadkeep.protocols.ai_sdk.routes", "threadkeep.protocols.ag_ui.history"):
        monkeypatch.setattr(f"{module}.MOST_HISTORY_BYTES", MOST)
    monkeypatch.setattr(outside, "MESSAGES_AT_ONCE", 3)
    pages = list[int]()
    page_of = api.store.messages.page_of

    async def counted(*which: Any, **limits: Any) -> Any:
        page = await page_of(*which, **limits)
        pages.append(len(page.messages) if page else 0)
        return page

    monkeypatch.setattr(api.store.messages, "page_of", counted)
    shown: list[Json] = (await alice.get(f"/api/ai-sdk/chat/{conversation['id']}")).json()["messages"]
    assert [it["role"] for it in shown] == ["assistant", "user", "assistant"] or len(shown) == 4
    assert shown[-1]["parts"][-1]["text"].startswith(f"{TURNS - 1} ")
    assert sum(pages) <= 6, "older pages are not read"
    pages.clear()
    body: Json = {"threadId": conversation["id"], "runId": "r", "messages": [], "tools": [], "context": []}
    connected = await alice.post("/api/ag-ui/agent/default/connect", json=body)
    assert (
        connected.status_code == 200 and f'"{TURNS - 1} ' in connected.text and '"0 é' not in connected.text
    )
    assert sum(pages) <= 6


@ONLY_SQLITE
@pytest.mark.parametrize(
    "path",
    [
        "/api/conversations/{id}/messages?limit=200",
        "/api/conversations/{id}",
        "/api/conversations/{id}/context?limit=200",
        "/api/shares/{token}",
        "/api/ai-sdk/chat/{id}",
        "/v1/conversations/{id}/items",
    ],
)
async def test_loop_stays_free_while_a_large_conversation_is_read(
    api: Api, alice: httpx.AsyncClient, path: str
):
    conversation = await filled(api, alice, 2_000_000)
    async with watching_the_loop() as busy:
        response = await alice.get(path.format(**conversation))
    assert response.status_code == 200, response.text[:500]
    assert len(response.content) < 13_000_000
    assert busy.longest_s < 0.05, busy.what


async def test_loop_stays_free_while_the_largest_run_of_another_engine_is_recorded(
    api: Api, alice: httpx.AsyncClient
):
    conversation = await new_conversation(alice)
    path = f"/api/conversations/{conversation['id']}/executions"
    tools = [{"toolName": "t", "arguments": {"at": "the sea"}, "result": "x" * 2_000}] * 9
    nodes: list[Json] = [
        {"id": f"{n}", "type": "NodeCompleted", "runId": "r", "at": n, "node": "n", "tools": tools}
        for n in range(MOST_PARTS // 10)
    ]
    ends: list[Json] = [
        {"id": "start", "type": "ExecutionStarted", "runId": "r", "at": 0, "input": "When?"},
        {"id": "end", "type": "ExecutionCompleted", "runId": "r", "at": 9_999, "output": "x" * 2_000_000},
    ]
    async with watching_the_loop() as busy:
        for events in (nodes, ends, nodes, ends):
            content = msgspec.json.encode({"events": events})
            response = await alice.post(path, content=in_pieces(content))
            assert response.status_code == 200, response.text[:500]
    (run,) = response.json()["items"]
    assert run["turnId"]
    assert busy.longest_s < 0.05, busy.what


CALLS = 3_000
Reads = dict[str, ReadReply]


async def with_calls(api: Api, client: httpx.AsyncClient) -> Json:
    """A conversation whose reply has very many calls, with a log that is one chunk."""
    conversation = await new_conversation(client)
    begun = (await stored(api, conversation)).begin_turn("Question", NOW, model="scripted")
    await keep_begun(api.store, begun)
    reply = begun.assistant_message
    call = ToolCall(
        turn_id=begun.turn.id,
        tool_call_id="",
        message_id=reply.id,
        tool_name="t",
        server="s",
        arguments={},
        status=ToolCallStatus.OK,
        created_at=NOW,
        result="x" * 50,
    )
    calls = [ToolCallPart(iteration=1, call=replace(call, tool_call_id=f"c{n}")) for n in range(CALLS)]
    parts = (*calls, TextPart(text="done", iteration=2))
    ended = begun.conversation.end_turn(
        begun.turn, reply.finish(MessageStatus.COMPLETED, parts, NOW + 1), NOW + 1
    )
    _, *log = events_of(ended.turn, ended.assistant_message)
    await api.store.turns.end(ended, LogChunk(ended.turn.id, 2, log[-1].seq, encode_chunk(log)), 1)
    return conversation


async def slow_reads(api: Api, client: httpx.AsyncClient, place: Json, reads: Reads) -> dict[str, str]:
    """Those that keep the event loop, and with what."""
    slow: dict[str, str] = {}
    for name, read in reads.items():
        async with watching_the_loop() as busy:
            came = await read(api, client, place)
        assert came, name
        if busy.longest_s >= 0.05:
            slow[name] = busy.what
    return slow


@ONLY_SQLITE
@pytest.mark.parametrize("has_log", [True, False], ids=["log", "replay"])
async def test_loop_stays_free_while_a_reply_of_many_parts_is_read(
    api: Api, alice: httpx.AsyncClient, has_log: bool
):
    place = await place_of(alice, await with_calls(api, alice))
    if not has_log:
        await api.store.log.trim(2**60)
    alice.event_hooks = {}  # it checks what comes, which takes long
    assert await slow_reads(api, alice, place, {**READS_OF_A_REPLY, **FOLLOWS, **SENDS}) == {}


def _items(count: int, text: str) -> list[Json]:
    return [{"role": "user", "content": text} for _ in range(count)]


def _function(number: int, parameters: Json) -> Json:
    return {"type": "function", "name": f"t{number}", "parameters": parameters}


_ZEROS: dict[str, Any] = {"type": "object", "": [0] * 10_000, "x": [{"$ref": "#//0"}] * 1_500}
_PARTS = [{"type": "input_text", "text": "x"}] * 29_000
_FILE = {
    "type": "input_file",
    "filename": "a.txt",
    "file_data": "data:text/plain;base64," + "QUJD" * 2_000_000,
}
_HISTORY = [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}] * 30_000
_RUN: Json = {"at": 1_000, "node": "n", "type": "NodeCompleted", "tools": [{"toolName": "t"}] * 8}
WRITES: dict[str, tuple[str, Json]] = {
    "events of runs": (
        "/api/conversations/{id}/executions",
        {"events": [{**_RUN, "id": f"{n}", "runId": f"{n % 8}"} for n in range(1_000)]},
    ),
    "artifacts of a run": (
        "/api/conversations/{id}/executions",
        {
            "events": [
                {**_RUN, "id": f"{n}", "runId": f"{n}", "artifactIds": ["{id}"] * 999} for n in range(40)
            ]
        },
    ),
    "references in tools": (
        "/v1/responses",
        {"input": "hi", "store": False, "tools": [_function(n, _ZEROS) for n in range(3)]},
    ),
    "parts of an item": (
        "/v1/conversations/{id}/items",
        {"items": [_items(1, "x")[0] | {"content": _PARTS}]},
    ),
    "long items": ("/v1/conversations/{id}/items", {"items": _items(20, "x" * 300_000)}),
    "file in a request": ("/v1/responses", {"input": [{"role": "user", "content": [_FILE]}]}),
    "replies that are claimed": ("/v1/responses", {"conversation": "{id}", "input": _HISTORY}),
    "history of a completion": ("/v1/chat/completions", {"messages": _HISTORY[:19_999]}),
    "history of the AI SDK": (
        "/api/ai-sdk/chat",
        {"id": "a", "messages": [{"id": f"{n}", "role": "user", "parts": []} for n in range(40_000)]},
    ),
    "parts of the AI SDK": (
        "/api/ai-sdk/chat",
        {
            "id": "a",
            "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": ""}] * 90_000}],
        },
    ),
    "history of AG-UI": (
        "/api/ag-ui/agent/default/run",
        {"threadId": "t", "runId": "r", "messages": [{"id": f"{n}", **it} for n, it in enumerate(_HISTORY)]},
    ),
}


async def in_pieces(body: bytes) -> AsyncGenerator[bytes]:
    """A body as a connection brings it."""
    for start in range(0, len(body), 64 * 1024):
        await asyncio.sleep(0)
        yield body[start : start + 64 * 1024]


@ONLY_SQLITE
@pytest.mark.parametrize(("path", "body"), WRITES.values(), ids=WRITES)
async def test_loop_stays_free_while_a_large_request_is_read(
    api: Api, alice: httpx.AsyncClient, path: str, body: Json
):
    conversation = await filled(api, alice, 1_000)
    content = msgspec.json.encode(body).replace(b"{id}", conversation["id"].encode())
    async with watching_the_loop() as busy:
        response = await alice.post(path.format(**conversation), content=in_pieces(content))
    assert response.status_code != 500, response.text[:500]
    assert busy.longest_s < 0.05, (busy.what, response.text[:200])


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/api/conversations/{id}/messages?limit=200&include=overwritten", 10),
        ("/api/conversations/{id}/messages?limit=200&include=overwritten&order=desc", 10),
        ("/api/conversations/{id}/messages?limit=200", 1),
        ("/api/conversations/{id}", 1),
        ("/api/shares/{token}", None),
        ("/api/ai-sdk/chat/{id}", None),
        ("/v1/conversations/{id}/items", None),
    ],
)
async def test_message_with_thousands_of_siblings_is_read_with_the_nearest(
    api: Api, alice: httpx.AsyncClient, path: str, most: int | None
):
    agent = (await alice.get("/api/agents")).json()["items"][0]["id"]
    kept = await keep_tree(api.store, agent, [None] * 5_000)
    made = await alice.post(f"/api/conversations/{kept.id}/shares", json={"tools": True})
    alice.event_hooks = {}  # they check the response in the same slice
    async with watching_the_loop() as busy:
        response = await alice.get(path.format(id=kept.id, token=made.json()["token"]))
    assert response.status_code == 200, response.text[:500]
    assert len(response.content) < 1_000_000
    assert busy.longest_s < 0.05, busy.what
    if most is not None:
        shown: list[Json] = response.json().get("items") or response.json()["messages"]
        assert [len(it["siblings"]["ids"]) for it in shown] == [1000] * most
        assert all(it["siblings"]["ids"][it["siblings"]["index"]] == it["id"] for it in shown)
