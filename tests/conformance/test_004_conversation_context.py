"""Seed 004, conversation-context: conversations and rich messages, for pages and for outside engines."""

import ast
import asyncio
import sys
from dataclasses import FrozenInstanceError, fields
from typing import Any, get_args, get_type_hints

import httpx
import pytest

from tests.conftest import Api
from tests.making import (
    ALICE,
    NOW,
    all_messages,
    keep_agent,
    keep_begun,
    keep_conversation,
    keep_ended,
    keep_turn,
    make_agent,
)
from tests.test_architecture import FILES, imports, layer_of, module_of
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict, TurnInProgress
from threadkeep.domain.ids import ConversationId, PayloadId, TurnId, new_uuid
from threadkeep.domain.message import Message, MessageStatus, Usage
from threadkeep.domain.parts import RetrievalPart, TextPart, ThoughtPart, ToolCallPart
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Turn
from threadkeep.storage.store import Store


@pytest.fixture
async def agent_id(alice: httpx.AsyncClient) -> str:
    return (await alice.post("/api/agents", json={"name": "研究助手"})).json()["id"]


@pytest.fixture
async def conversation(api: Api, alice: httpx.AsyncClient, agent_id: str) -> Conversation:
    made = (await alice.post(f"/api/agents/{agent_id}/conversations")).json()
    conversation = await api.store.conversations.get(ALICE, ConversationId(made["id"]))
    assert conversation
    return conversation


async def keep_rich_turn(store: Store, conversation: Conversation) -> tuple[Conversation, Message]:
    """A turn in which the agent thought, used a tool, cited a page and made a file."""
    begun = conversation.begin_turn("合同违约条款是什么？", NOW)
    await keep_begun(store, begun)
    reply = begun.assistant_message
    call = ToolCall(
        turn_id=begun.turn.id,
        tool_call_id="call_1",
        message_id=reply.id,
        tool_name="search_documents",
        server="retriever",
        arguments={"query": "违约"},
        status=ToolCallStatus.RUNNING,
        created_at=NOW + 80,
    ).end(ToolCallStatus.OK, result={"hits": 1}, duration_ms=120, artifact_ids=(PayloadId(new_uuid()),))
    hits = (
        RetrievalHit("合同模板", "违约金为合同额的 20%", 0.92, file_name="合同模板.pdf", page=3),
        RetrievalHit("民法典", "第五百八十五条", 0.5, url="https://example.org/585"),
    )
    parts = (
        ThoughtPart(text="用户问违约条款", started_at=NOW, duration_ms=80, iteration=1),
        ToolCallPart(call=call, iteration=1),
        RetrievalPart(query="违约", hits=hits, at=NOW + 200, tool_call_id="call_1", iteration=1),
        TextPart(text="违约金为 20% [1]。", iteration=2),
    )
    reply = reply.finish(MessageStatus.COMPLETED, parts, NOW + 900, usage=Usage(300, 42))
    ended = begun.conversation.end_turn(begun.turn, reply, NOW + 900)
    await keep_ended(store, ended)
    return ended.conversation, reply


# Requirement 1: manage conversations


@pytest.mark.requirement("004-R1.1")
async def test_conversation_is_created_and_its_metadata_returned(alice: httpx.AsyncClient, agent_id: str):
    # WHEN a user starts a conversation
    started = await alice.post(f"/api/agents/{agent_id}/conversations", json={"metadata": {"from": "page"}})
    entered = await alice.put(f"/api/agents/{agent_id}/conversation")
    # THEN it is created, and its metadata are returned
    for response in (started, entered):
        assert response.status_code == 201
        made = response.json()
        assert (made["agentId"], made["userId"], made["messageCount"]) == (agent_id, "alice", 0)
        assert made["createdAt"].endswith("Z")
        found = (await alice.get(f"/api/conversations/{made['id']}")).json()
        assert {name: found[name] for name in made} == made
    assert started.json()["id"] != entered.json()["id"]
    assert started.json()["metadata"] == {"from": "page"}


@pytest.mark.requirement("004-R1.2")
async def test_own_conversations_with_the_agent_are_listed_newest_activity_first(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    # Given conversations of two users with a public agent, and some with another agent
    public = {"name": "公开", "visibility": "public"}
    agent, other = [(await alice.post("/api/agents", json=public)).json()["id"] for _ in range(2)]
    path = f"/api/agents/{agent}/conversations"
    own = [(await alice.post(path)).json()["id"] for _ in range(5)]
    await bob.post(path)
    await alice.post(f"/api/agents/{other}/conversations")
    oldest = await api.store.conversations.get(ALICE, ConversationId(own[0]))
    assert oldest
    await keep_turn(api.store, oldest, "?", ".", oldest.updated_at + 60_000)
    # WHEN a user lists them THEN the user's own with this agent come, in pages, latest update first
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await alice.get(path, params={"limit": 2, **cursor})).json()
        assert len(page["items"]) <= 2
        seen += [it["id"] for it in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert seen == [own[0], own[4], own[3], own[2], own[1]]
    by_offset = (await alice.get(path, params={"limit": 2, "offset": 2})).json()["items"]
    assert [it["id"] for it in by_offset] == seen[2:4]


@pytest.mark.requirement("004-R1.3")
async def test_deleted_conversation_is_hidden_with_all_its_messages(
    api: Api, alice: httpx.AsyncClient, conversation: Conversation
):
    await keep_turn(api.store, conversation, "?", ".")
    path = f"/api/conversations/{conversation.id}"
    before = (await alice.get(path)).json()
    # WHEN the user deletes it
    assert (await alice.delete(path)).status_code == 204
    # THEN it is not found any more
    for method, rest, body in (
        ("GET", "", None),
        ("PATCH", "", {"title": "新"}),
        ("DELETE", "", None),
        ("GET", "/messages", None),
        ("POST", "/messages", {"content": "?"}),
        ("GET", "/context", None),
    ):
        assert (await alice.request(method, path + rest, json=body)).status_code == 404
    assert (await alice.get("/api/conversations")).json()["items"] == []
    # AND nothing more can be added to it
    with pytest.raises(StorageConflict):
        await keep_turn(api.store, conversation, "?", ".")
    # AND it is only soft-deleted: it can be brought back with all its messages
    assert (await alice.post(f"{path}/restore")).status_code == 200
    assert (await alice.get(path)).json() == before


# Requirement 2: record messages


@pytest.mark.requirement("004-R2.1")
async def test_user_message_is_recorded(api: Api, alice: httpx.AsyncClient, conversation: Conversation):
    # WHEN the user's message begins a turn
    begun = conversation.begin_turn("帮我看看这份合同", NOW)
    await keep_begun(api.store, begun)
    # THEN a message of the user is recorded, before any answer
    message = (await alice.get(f"/api/conversations/{conversation.id}")).json()["messages"][0]
    assert (message["role"], message["content"]) == ("user", "帮我看看这份合同")
    assert (message["status"], message["runId"]) == ("COMPLETED", begun.turn.id)


@pytest.mark.requirement("004-R2.2")
async def test_assistant_message_is_recorded_with_all_its_rich_content(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    # WHEN a workflow puts something out
    _, reply = await keep_rich_turn(store, conversation)
    # THEN a message of the assistant is recorded
    _, kept = await all_messages(store, conversation)
    assert (kept.role, kept.content) == ("assistant", "违约金为 20% [1]。")
    # AND its thought process: steps, durations, tool calls
    assert [(step.kind, step.detail, step.duration_ms) for step in kept.thought_process] == [
        ("thought", "用户问违约条款", 80),
        ("tool", "", 120),
        ("retrieval", "合同模板, 民法典", 0),
    ]
    (call,) = kept.tool_calls
    assert kept.thought_process[1].tool_call_id == call.tool_call_id
    assert (call.tool_name, call.arguments, call.result) == (
        "search_documents",
        {"query": "违约"},
        {"hits": 1},
    )
    # AND its citations (file names, URLs) and artifacts
    assert [(it.file_name, it.url) for it in kept.citations] == [
        ("合同模板.pdf", None),
        (None, "https://example.org/585"),
    ]
    assert len(kept.artifact_ids) == 1
    # AND its tokens
    assert (kept.token_count, kept.usage) == (42, Usage(300, 42))
    # AND nothing of it came back otherwise than it was recorded
    assert kept == reply


# Requirement 3: read history and context


@pytest.mark.requirement("004-R3.1")
async def test_conversation_is_loaded_with_the_rich_fields_of_its_messages(
    api: Api, alice: httpx.AsyncClient, conversation: Conversation
):
    _, reply = await keep_rich_turn(api.store, conversation)
    # WHEN a front end loads the conversation THEN it gets the messages
    detail = (await alice.get(f"/api/conversations/{conversation.id}")).json()
    asked, replied = detail["messages"]
    assert (asked["role"], replied["role"]) == ("user", "assistant")
    # AND their rich fields
    assert replied["thoughtProcess"] == [
        {
            "kind": "thought",
            "title": "Thought",
            "detail": "用户问违约条款",
            "startedAt": "2027-01-15T08:00:00.000Z",
            "durationMs": 80,
        },
        {
            "kind": "tool",
            "title": "search_documents",
            "detail": "",
            "startedAt": "2027-01-15T08:00:00.080Z",
            "durationMs": 120,
            "toolCallId": "call_1",
        },
        {
            "kind": "retrieval",
            "title": "违约",
            "detail": "合同模板, 民法典",
            "startedAt": "2027-01-15T08:00:00.200Z",
            "durationMs": 0,
            "toolCallId": "call_1",
        },
    ]
    assert replied["citations"] == [
        {
            "index": 1,
            "title": "合同模板",
            "snippet": "违约金为合同额的 20%",
            "score": 0.92,
            "fileName": "合同模板.pdf",
            "page": 3,
        },
        {
            "index": 2,
            "title": "民法典",
            "snippet": "第五百八十五条",
            "score": 0.5,
            "url": "https://example.org/585",
        },
    ]
    assert replied["artifactIds"] == list(reply.artifact_ids)
    assert [call["toolName"] for call in replied["toolCalls"]] == ["search_documents"]
    assert (replied["runId"], replied["status"], replied["tokenCount"]) == (reply.turn_id, "COMPLETED", 42)
    # AND the fields are there for every message, also where they are empty
    assert (asked["thoughtProcess"], asked["citations"], asked["artifactIds"]) == ([], [], [])
    # AND the same by the list of messages
    listed = (await alice.get(f"/api/conversations/{conversation.id}/messages")).json()["items"]
    assert listed == detail["messages"]


@pytest.mark.requirement("004-R3.2")
async def test_engine_gets_the_latest_messages_without_thought_processes(
    api: Api, alice: httpx.AsyncClient, conversation: Conversation
):
    grown = await keep_turn(api.store, conversation, "第一个问题", "第一个回答")
    grown, _ = await keep_rich_turn(api.store, grown)
    await keep_turn(api.store, grown, "第三个问题", "第三个回答")
    # WHEN an engine asks for context THEN it gets the latest N messages, with role and content only
    response = await alice.get(f"/api/conversations/{conversation.id}/context", params={"limit": 4})
    assert response.json() == {
        "messages": [
            {"role": "user", "content": "合同违约条款是什么？"},
            {"role": "assistant", "content": "违约金为 20% [1]。"},
            {"role": "user", "content": "第三个问题"},
            {"role": "assistant", "content": "第三个回答"},
        ]
    }


# Non-functional requirements


def imported_by(*rooms: str) -> dict[str, set[str]]:
    """What each module of these rooms imports."""
    return {
        module_of(file): set(imports(ast.parse(file.read_text("utf-8"))))
        for file in FILES
        if layer_of(module_of(file)) in rooms
    }


@pytest.mark.requirement("004-NFR-modularity-1")
def test_conversation_is_the_aggregate_root_and_decides_what_is_added():
    # The domain knows nothing but itself and the language
    for module, imported in imported_by("domain").items():
        for name in imported:
            own = name.startswith("threadkeep.domain.")
            assert own or name.split(".")[0] in sys.stdlib_module_names, f"{module} imports {name}"
    # Messages come into being by the aggregate, numbered by it
    conversation = Conversation.start(ALICE, make_agent().id, NOW)
    begun = conversation.begin_turn("?", NOW)
    asked, reply = begun.user_message, begun.assistant_message
    assert asked and (asked.seq, reply.seq) == (1, 2)
    assert asked.conversation_id == reply.conversation_id == conversation.id
    assert begun.conversation.message_count == 2
    # The aggregate guards its rules
    with pytest.raises(TurnInProgress):
        begun.conversation.begin_turn("!", NOW)
    # And nobody can go round it
    for value, name in ((conversation, "last_seq"), (asked, "parts")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 7)


@pytest.mark.requirement("004-NFR-modularity-2")
def test_database_is_known_only_behind_the_repository():
    innermost, users = (
        {"domain", "ports", "wire", "context", "engine", "http"},
        {"log", "runtime", "jobs", "services", "imports", "exports", "handling", "protocols"},
    )
    inside = imported_by(*innermost, *users)
    assert {"threadkeep.services.conversations", "threadkeep.http.api.conversations"} <= inside.keys()
    # The innermost rooms and HTTP know nothing of storage; use cases know its repositories, one per noun
    for module, imported in inside.items():
        hidden = "threadkeep.storage" if layer_of(module) in innermost else "threadkeep.storage.database"
        for name in imported:
            assert not name.startswith(hidden), f"{module} imports {name}"
            assert name.split(".")[0] not in {"sqlite3", "psycopg", "psycopg_pool"}, (
                f"{module} imports {name}"
            )
    # The use cases know the store of repositories, and both databases stand behind it
    assert "threadkeep.storage.store" in inside["threadkeep.services.conversations"]
    assert {"threadkeep.storage.database.sqlite", "threadkeep.storage.database.postgres"} <= imported_by(
        "storage"
    ).keys()


@pytest.mark.requirement("004-NFR-modularity-3")
def test_conversations_are_tied_to_executions_by_id_only():
    # What is kept, and where, knows nothing of what runs turns
    running = {"engine", "log", "jobs", "services", "gateways", "mcp", "tools", "protocols", "http"}
    for module, imported in imported_by("domain", "ports", "storage").items():
        for name in imported:
            assert not (name.startswith("threadkeep.") and layer_of(name) in running), (
                f"{module} imports {name}"
            )
    # A conversation and a message name their turn by its id, and hold no turn
    assert get_type_hints(Conversation)["active_turn_id"] == TurnId | None
    assert get_type_hints(Message)["turn_id"] == TurnId | None
    for value in (Conversation, Message):
        hints = get_type_hints(value)
        for field in fields(value):
            assert Turn not in {hints[field.name], *get_args(hints[field.name])}


@pytest.mark.requirement("004-NFR-performance-2")
async def test_messages_of_many_writers_at_once_are_all_kept(store: Store):
    agent = await keep_agent(store)
    conversations = [await keep_conversation(store, agent) for _ in range(100)]

    async def talk(conversation: Conversation) -> Conversation:
        for number in range(3):
            conversation = await keep_turn(store, conversation, f"问 {number}", f"答 {number}")
        return conversation

    # Nobody is turned away, and whatever was acknowledged is there
    for conversation in await asyncio.gather(*map(talk, conversations)):
        assert await store.conversations.get(ALICE, conversation.id) == conversation
        texts = [message.content for message in await all_messages(store, conversation)]
        assert texts == ["问 0", "答 0", "问 1", "答 1", "问 2", "答 2"]


@pytest.mark.requirement("004-NFR-security-1")
async def test_users_reach_only_their_own_conversations(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    # Given both talk to the same agent
    public = {"name": "公开", "visibility": "public"}
    agent = (await alice.post("/api/agents", json=public)).json()["id"]
    path = f"/api/agents/{agent}/conversations"
    alices: dict[str, Any] = (await alice.post(path, json={"title": "甲"})).json()
    bobs: dict[str, Any] = (await bob.post(path, json={"title": "乙"})).json()
    # Then nobody can say who they are but by signing in
    assert (alices["userId"], bobs["userId"]) == ("alice", "bob")
    assert (await bob.post(path, json={"userId": "alice"})).status_code == 422
    assert (await bob.get("/api/conversations", params={"userId": "alice"})).status_code == 422
    assert (await api.client().get("/api/conversations")).status_code == 401
    # And each sees and changes one's own only, the agent's owner and admins included
    for client, own, other in ((alice, alices, bobs), (bob, bobs, alices)):
        for listing in (path, "/api/conversations"):
            assert [it["id"] for it in (await client.get(listing)).json()["items"]] == [own["id"]]
        for method, body in (("GET", None), ("PATCH", {"title": "丙"}), ("DELETE", None)):
            response = await client.request(method, f"/api/conversations/{other['id']}", json=body)
            assert response.status_code == 404
    admin = api.as_user("root", admin=True)
    assert (await admin.get("/api/conversations")).json()["items"] == []
    for conversation in (alices, bobs):
        assert (await admin.get(f"/api/conversations/{conversation['id']}")).status_code == 404
    for client, own in ((alice, alices), (bob, bobs)):
        found = (await client.get(f"/api/conversations/{own['id']}")).json()
        assert {name: found[name] for name in own} == own
