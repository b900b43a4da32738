"""Seed 002, conversation-system: conversations under a domain (an agent), over /api/domains."""

from typing import Any

import httpx
import pytest

from tests.conftest import Api
from tests.making import ALICE, all_messages, keep_turn
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, new_uuid
from threadkeep.domain.message import check_user_content
from threadkeep.storage.store import Store

BLANK: tuple[dict[str, str | None], ...] = (
    {},
    {"content": None},
    {"content": ""},
    {"content": "   "},
    {"content": "\n\t"},
    {"content": "\u3000"},
    {"content": "\u200b"},
)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def kept(store: Store, conversation_id: str) -> Conversation | None:
    return await store.conversations.get(ALICE, ConversationId(conversation_id))


@pytest.fixture
async def domain(alice: httpx.AsyncClient) -> dict[str, Any]:
    """A domain to talk to."""
    response = await alice.post("/api/domains", json={"name": "法律顾问"})
    assert response.status_code == 201
    return response.json()


@pytest.fixture
async def conversation(alice: httpx.AsyncClient, domain: dict[str, Any]) -> dict[str, Any]:
    """A conversation in it."""
    response = await alice.post(f"/api/domains/{domain['id']}/conversations", json={"title": "合同咨询"})
    assert response.status_code == 201
    return response.json()


@pytest.mark.requirement("CONV-001-S1", "002-API-1")
async def test_conversation_is_created_with_its_session(
    api: Api, alice: httpx.AsyncClient, domain: dict[str, Any]
):
    # When a user creates a conversation
    response = await alice.post(f"/api/domains/{domain['id']}/conversations")
    # Then it has a session, and the response has all five fields
    assert response.status_code == 201
    made = response.json()
    assert made["domainId"] == made["agentId"] == domain["id"]
    assert (made["title"], made["status"]) == (None, "active")
    assert len(made["sessionId"]) >= 43  # 256 random bits
    # And the row is stored together with the session id
    row = await kept(api.store, made["id"])
    assert row and (row.agent_id, row.session_id.reveal()) == (domain["id"], made["sessionId"])
    # And every conversation has a session of its own
    other = (await alice.post(f"/api/domains/{domain['id']}/conversations")).json()
    assert other["id"] != made["id"] and other["sessionId"] != made["sessionId"]


@pytest.mark.requirement("CONV-001-S2")
async def test_creating_fails_where_the_domain_does_not_exist(alice: httpx.AsyncClient):
    # Given a domain that is not there
    for absent in (new_uuid(), "不存在的领域"):
        # When a user creates a conversation in it
        response = await alice.post(f"/api/domains/{absent}/conversations")
        # Then the response is 404
        assert code(response) == (404, "DOMAIN_NOT_FOUND")
    assert (await alice.get("/api/conversations")).json()["items"] == []


@pytest.mark.requirement("CONV-002-S1", "002-API-2")
async def test_conversations_of_a_domain_are_listed(
    api: Api, alice: httpx.AsyncClient, domain: dict[str, Any]
):
    # Given 3 conversations in the domain and 1 in another
    path = f"/api/domains/{domain['id']}/conversations"
    first, second, third = [(await alice.post(path, json={"title": title})).json() for title in "一二三"]
    other = (await alice.post("/api/domains", json={"name": "代码顾问"})).json()
    await alice.post(f"/api/domains/{other['id']}/conversations")
    row = await kept(api.store, second["id"])
    assert row
    await keep_turn(api.store, row, "问", "答", row.updated_at + 60_000)
    # When the domain's conversations are listed
    listed = (await alice.get(path)).json()["items"]
    # Then the 3 come, latest update first
    assert [it["id"] for it in listed] == [second["id"], third["id"], first["id"]]
    assert [it["updatedAt"] for it in listed] == sorted((it["updatedAt"] for it in listed), reverse=True)
    # And each has its business data and nothing else
    for conversation in listed:
        assert {"id", "title", "status", "createdAt", "updatedAt"} <= conversation.keys()
        assert not {"messages", "sessionId"} & conversation.keys()
    # And page by page too
    page = (await alice.get(path, params={"limit": 2})).json()
    rest = (await alice.get(path, params={"limit": 2, "cursor": page["nextCursor"]})).json()
    assert page["items"] + rest["items"] == listed
    assert rest["nextCursor"] is None


@pytest.mark.requirement("CONV-003-S1", "002-API-3")
async def test_conversation_is_read_with_its_messages(
    api: Api, alice: httpx.AsyncClient, conversation: dict[str, Any]
):
    row = await kept(api.store, conversation["id"])
    assert row
    await keep_turn(api.store, row, "这份合同有什么风险？", "违约金过高。")
    # When its detail is read
    response = await alice.get(f"/api/conversations/{conversation['id']}")
    # Then the business data are there
    assert response.status_code == 200
    found = response.json()
    for name in ("id", "domainId", "sessionId", "title", "status", "createdAt"):
        assert found[name] == conversation[name]
    # And the messages
    assert [(message["role"], message["content"]) for message in found["messages"]] == [
        ("user", "这份合同有什么风险？"),
        ("assistant", "违约金过高。"),
    ]


@pytest.mark.requirement("CONV-003-S2")
async def test_reading_fails_where_the_conversation_does_not_exist(alice: httpx.AsyncClient):
    # Given a conversation that is not there
    for absent in (new_uuid(), "不存在的对话"):
        # When its detail is read
        response = await alice.get(f"/api/conversations/{absent}")
        # Then the response is 404
        assert code(response) == (404, "CONVERSATION_NOT_FOUND")


@pytest.mark.requirement("CONV-004-S1", "002-API-4")
@pytest.mark.parametrize("steps", [["?purge=true"], ["", "?purge=true"]], ids=["at once", "after hiding"])
async def test_conversation_is_deleted_with_its_session_and_messages(
    api: Api, alice: httpx.AsyncClient, domain: dict[str, Any], conversation: dict[str, Any], steps: list[str]
):
    row = await kept(api.store, conversation["id"])
    assert row
    await keep_turn(api.store, row, "问", "答")
    path = f"/api/conversations/{conversation['id']}"
    for step in steps:
        # When the user deletes it, then that succeeds
        assert (await alice.delete(path + step)).status_code == 204
        # And the conversation, its session and its messages are gone for everyone who asks
        assert code(await alice.get(path)) == (404, "CONVERSATION_NOT_FOUND")
        assert code(await alice.get(f"{path}/messages")) == (404, "CONVERSATION_NOT_FOUND")
        assert code(await alice.post(f"{path}/session")) == (404, "CONVERSATION_NOT_FOUND")
        assert (await alice.get(f"/api/domains/{domain['id']}/conversations")).json()["items"] == []
    # And the purge removes the row, the session and by cascade the messages
    assert await api.store.conversations.restore(ALICE, row.id) is None
    assert await all_messages(api.store, row) == []


@pytest.mark.requirement("CONV-005-S2")
async def test_sending_an_empty_message_fails(alice: httpx.AsyncClient, conversation: dict[str, Any]):
    path = f"/api/conversations/{conversation['id']}/messages"
    for body in BLANK:
        # When an empty message is sent, then the response is 400
        assert code(await alice.post(path, json=body)) == (400, "MESSAGE_CONTENT_REQUIRED")
    assert (await alice.get(path)).json()["items"] == []


@pytest.mark.requirement("CONV-005-S3")
async def test_sending_a_message_that_is_too_long_fails(
    alice: httpx.AsyncClient, conversation: dict[str, Any]
):
    path = f"/api/conversations/{conversation['id']}/messages"
    # When more than 10000 characters are sent (characters, not bytes)
    response = await alice.post(path, json={"content": "字" * 10_001})
    # Then the response is 400
    assert code(response) == (400, "MESSAGE_TOO_LONG")
    assert (await alice.get(path)).json()["items"] == []
    # And 10000 are not too many
    assert check_user_content("字" * 10_000, most=10_000)


@pytest.mark.requirement("002-ERR-CONVERSATION_NOT_FOUND")
async def test_every_conversation_route_responds_conversation_not_found(alice: httpx.AsyncClient):
    path = f"/api/conversations/{new_uuid()}"
    for method, rest, body in (
        ("GET", "", None),
        ("PATCH", "", {"title": "新"}),
        ("DELETE", "", None),
        ("DELETE", "?purge=true", None),
        ("POST", "/restore", None),
        ("GET", "/messages", None),
        ("POST", "/messages", {"content": "你好"}),
        ("GET", "/context", None),
    ):
        response = await alice.request(method, path + rest, json=body)
        assert code(response) == (404, "CONVERSATION_NOT_FOUND"), (method, rest)


@pytest.mark.requirement("002-ERR-DOMAIN_NOT_FOUND")
async def test_every_domain_route_responds_domain_not_found(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, domain: dict[str, Any]
):
    # A domain that never was, one that was deleted, and somebody else's are alike
    hidden = (await bob.post("/api/domains", json={"name": "别人的领域"})).json()
    await alice.delete(f"/api/domains/{domain['id']}")
    for absent in (new_uuid(), domain["id"], hidden["id"]):
        for method, rest, body in (
            ("GET", "", None),
            ("PATCH", "", {"name": "新"}),
            ("DELETE", "", None),
            ("PUT", "/conversation", None),
            ("POST", "/conversations", {}),
            ("GET", "/conversations", None),
        ):
            response = await alice.request(method, f"/api/domains/{absent}{rest}", json=body)
            assert code(response) == (404, "DOMAIN_NOT_FOUND"), (method, rest)


@pytest.mark.requirement("002-ERR-MESSAGE_CONTENT_REQUIRED")
async def test_blank_content_is_refused_wherever_one_can_send(
    alice: httpx.AsyncClient, conversation: dict[str, Any]
):
    for path in (f"/api/conversations/{conversation['id']}/messages", "/api/chat"):
        for body in BLANK:
            response = await alice.post(path, json=body)
            assert code(response) == (400, "MESSAGE_CONTENT_REQUIRED"), (path, body)
            assert response.json()["error"]["param"] == "content"


@pytest.mark.requirement("002-ERR-MESSAGE_TOO_LONG")
async def test_limit_of_a_message_is_the_domains_own(alice: httpx.AsyncClient, conversation: dict[str, Any]):
    path = f"/api/conversations/{conversation['id']}/messages"
    settings = {"settings": {"maxMessageChars": 5}}
    assert (await alice.patch(f"/api/domains/{conversation['domainId']}", json=settings)).status_code == 200
    response = await alice.post(path, json={"content": "六个字的消息"})
    assert code(response) == (400, "MESSAGE_TOO_LONG")
    assert response.json()["error"]["details"] == {"most": 5, "length": 6}
