"""Seed 000, conversation-persistence: conversations of a user with an agent, texts and briefing cards."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

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
    keep_turn,
)
from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import BriefingId, ConversationId, new_uuid
from threadkeep.storage.database.connector import Database, Plan, Query, Rows
from threadkeep.storage.store import Store, store_on

T = TypeVar("T")


class Listening:
    """A database that remembers what it was asked, in order."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.heard: list[Query] = []

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        return self._database.dialect

    async def fetch(self, query: Query) -> Rows:
        self.heard.append(query)
        return await self._database.fetch(query)

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        self.heard.append(query)
        return await self._database.execute(query, urgent=urgent, apart=apart)

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        return await self._database.read(lambda: self._overhear(plan()))

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        return await self._database.write(lambda: self._overhear(plan()))

    def listen(self, channel: str) -> AsyncGenerator[str]:
        return self._database.listen(channel)

    async def close(self) -> None:
        await self._database.close()

    def _overhear(self, plan: Plan[T]) -> Plan[T]:
        try:
            query = next(plan)
            while True:
                self.heard.append(query)
                query = plan.send((yield query))
        except StopIteration as stop:
            return stop.value

    def verbs(self, table: str) -> list[str]:
        """What was done with a table: SELECT, INSERT …"""
        statements = [query.statement.sqlite.split() for query in self.heard]
        return [words[0] for words in statements if table in words]


async def make_agent_b(client: httpx.AsyncClient, name: str = "B") -> str:
    return (await client.post("/api/agents", json={"name": name})).json()["id"]


async def start_main(client: httpx.AsyncClient, agent_id: str) -> dict[str, Any]:
    response = await client.put(f"/api/agents/{agent_id}/conversation")
    assert response.status_code in {200, 201}
    return response.json()


async def detail(client: httpx.AsyncClient, conversation_id: str) -> dict[str, Any]:
    return (await client.get(f"/api/conversations/{conversation_id}")).json()


async def context(
    client: httpx.AsyncClient, conversation: Conversation, **query: int
) -> list[dict[str, str]]:
    response = await client.get(f"/api/conversations/{conversation.id}/context", params=query)
    return response.json()["messages"]


async def as_kept(store: Store, conversation_id: str) -> Conversation:
    conversation = await store.conversations.get(ALICE, ConversationId(conversation_id))
    assert conversation
    return conversation


async def keep_card(
    store: Store, conversation: Conversation, title: str, summary: str, now: int = NOW
) -> Conversation:
    """A briefing of the conversation's agent, kept and put into the conversation as a card."""
    briefing = Briefing(
        id=BriefingId(new_uuid()),
        agent_id=conversation.agent_id,
        user_id=conversation.user_id,
        title=title,
        summary=summary,
        priority=Priority.P1,
        data={"rate": 0.5},
        actions=({"type": "start_conversation", "label": "继续对话"},),
        created_at=now,
    )
    await store.briefings.add(briefing)
    grown, message = conversation.add_card(briefing, now)
    await store.messages.add_card(grown, message)
    return grown


@pytest.fixture
async def agent(api: Api) -> Agent:
    return await keep_agent(api.store)


@pytest.fixture
async def conversation(api: Api, agent: Agent) -> Conversation:
    return await keep_conversation(api.store, agent)


@pytest.mark.requirement("REQ-CONV-001-S3")
async def test_conversations_with_two_agents_stay_separate(api: Api, alice: httpx.AsyncClient):
    # Given two conversations of a user, with agents B and C
    agent_b, agent_c = await make_agent_b(alice, "B"), await make_agent_b(alice, "C")
    with_b, with_c = await start_main(alice, agent_b), await start_main(alice, agent_c)
    assert with_b["id"] != with_c["id"]
    await keep_turn(api.store, await as_kept(api.store, with_c["id"]), "c?", "c.")
    c_before = await detail(alice, with_c["id"])

    # When the user talks to agent B
    assert (await start_main(alice, agent_b))["id"] == with_b["id"]
    await keep_turn(api.store, await as_kept(api.store, with_b["id"]), "b?", "b.", NOW + 5)

    # Then only that conversation is touched
    b_after = await detail(alice, with_b["id"])
    assert (b_after["userId"], b_after["agentId"]) == ("alice", agent_b)
    assert [message["content"] for message in b_after["messages"]] == ["b?", "b."]
    assert b_after["startedAt"] == with_b["startedAt"]
    assert b_after["lastMessageAt"] == b_after["messages"][-1]["completedAt"]
    # And conversation C remains separate, in every field
    assert await detail(alice, with_c["id"]) == c_before


@pytest.mark.requirement("REQ-CONV-002-S1")
async def test_text_message_is_stored(api: Api, alice: httpx.AsyncClient, conversation: Conversation):
    # Given a conversation; when the user's text begins a turn
    await keep_begun(api.store, conversation.begin_turn("为什么会这样?", NOW))
    # Then a message is created with type, role and content, and all that every message must contain
    message = (await detail(alice, conversation.id))["messages"][0]
    assert message["contentType"] == "text"
    assert message["role"] == "user"
    assert message["content"] == "为什么会这样?"
    assert message["conversationId"] == conversation.id
    assert message["createdAt"] == "2027-01-15T08:00:00.000Z"


@pytest.mark.requirement("REQ-CONV-002-S2")
async def test_briefing_card_is_stored(api: Api, alice: httpx.AsyncClient, conversation: Conversation):
    # Given a briefing; when it is added to a conversation
    await keep_card(api.store, conversation, "代码返工率50%", "最近7天...")
    # Then a message is created with its type and role, and structured briefing data as content
    (message,) = (await detail(alice, conversation.id))["messages"]
    assert message["contentType"] == "briefing_card"
    assert message["role"] == "system"
    assert message["conversationId"] == conversation.id
    content = message["content"]
    assert content.pop("briefingId")
    assert content == {
        "title": "代码返工率50%",
        "summary": "最近7天...",
        "priority": "P1",
        "sentAt": message["createdAt"],
        "data": {"rate": 0.5},
        "actions": [{"type": "start_conversation", "label": "继续对话"}],
    }


@pytest.mark.requirement("REQ-CONV-002-S3")
async def test_mixed_messages_come_back_in_chronological_order(
    api: Api, alice: httpx.AsyncClient, conversation: Conversation
):
    # Given 2 briefing cards and 3 text messages, mixed
    grown = await keep_card(api.store, conversation, "第一", "一", NOW)
    grown = await keep_turn(api.store, grown, "问题", "回答", NOW + 10)
    grown = await keep_card(api.store, grown, "第二", "二", NOW + 20)
    await keep_begun(api.store, grown.begin_turn("又一个问题", NOW + 30))
    # When messages are retrieved (the reply to the last one is not there yet)
    response = await alice.get(f"/api/conversations/{conversation.id}/messages")
    messages = [message for message in response.json()["items"] if message["content"]]
    # Then all are returned in chronological order regardless of their type
    texts = [it["content"] if it["contentType"] == "text" else it["content"]["title"] for it in messages]
    assert texts == ["第一", "问题", "回答", "第二", "又一个问题"]
    assert [it["createdAt"] for it in messages] == sorted(it["createdAt"] for it in messages)


@pytest.mark.requirement("REQ-CONV-003-S1")
async def test_concurrent_requests_create_one_conversation(alice: httpx.AsyncClient):
    for _ in range(10):
        # Given user A meets agent B for the first time
        path = f"/api/agents/{await make_agent_b(alice)}/conversation"
        # When two requests need the conversation at once
        one, two = await asyncio.gather(alice.put(path), alice.put(path))
        # Then only one is created, and both requests resolve to it
        assert {one.status_code, two.status_code} == {200, 201}
        assert one.json() == two.json()
        listed = (await alice.get(f"{path}s")).json()["items"]
        assert [conversation["id"] for conversation in listed] == [one.json()["id"]]


@pytest.mark.requirement("REQ-CONV-003-S2")
async def test_get_or_create_queries_before_it_inserts(database: Database):
    # Given a request to get or create the conversation of (user A, agent B)
    listening = Listening(database)
    store = await store_on(listening)
    agent = await keep_agent(store)
    listening.heard.clear()
    # When there is none, then the system first queries, and inserts as it found nothing
    made, is_new = await store.conversations.get_or_add_main(
        Conversation.start(ALICE, agent.id, NOW, is_main=True)
    )
    assert is_new
    assert listening.verbs("tk_conversations") == ["SELECT", "INSERT"]
    # When there is one, then the query is all that happens
    listening.heard.clear()
    found, is_new = await store.conversations.get_or_add_main(
        Conversation.start(ALICE, agent.id, NOW + 1, is_main=True)
    )
    assert (found, is_new) == (made, False)
    assert listening.verbs("tk_conversations") == ["SELECT"]
    assert len(listening.heard) == 1


@pytest.mark.requirement("REQ-CONV-004-S1")
async def test_context_has_the_briefings_followed_by_the_user_message(
    api: Api, alice: httpx.AsyncClient, conversation: Conversation
):
    # Given two cards and a user's message that waits for its answer
    grown = await keep_card(api.store, conversation, "返工率50%", "最近7天翻倍")
    grown = await keep_card(api.store, grown, "Review耗时超标", "中位耗时30小时")
    await keep_begun(api.store, grown.begin_turn("这两个问题有关联吗？", NOW))
    # When the context of the reply is built
    first, second, third = await context(alice, conversation)
    # Then it has the formatted briefings, told apart from text, followed by the user message
    assert first["content"].startswith("[简报 ")
    assert "标题：返工率50%\n摘要：最近7天翻倍\n" in first["content"]
    assert second["content"].startswith("[简报 ")
    assert "标题：Review耗时超标\n摘要：中位耗时30小时\n" in second["content"]
    assert third == {"role": "user", "content": "这两个问题有关联吗？"}


@pytest.mark.requirement("REQ-CONV-004-S2")
async def test_context_respects_the_message_limit(
    api: Api, alice: httpx.AsyncClient, conversation: Conversation
):
    # Given a conversation with 50 messages
    grown = conversation
    for number in range(25):
        grown = await keep_turn(api.store, grown, f"问 {number}", f"答 {number}", NOW + 10 * number)
    assert len(await all_messages(api.store, grown)) == 50
    # When the context is built with limit=20
    limited = await context(alice, conversation, limit=20)
    # Then only the most recent 20 are in it, in chronological order, as a dialogue
    assert limited == [
        {"role": role, "content": f"{word} {number}"}
        for number in range(15, 25)
        for role, word in (("user", "问"), ("assistant", "答"))
    ]
    # And 20 is the default
    assert await context(alice, conversation) == limited


@pytest.mark.requirement("REQ-CONV-004-S3")
async def test_briefing_card_is_formatted_for_the_model(
    api: Api, alice: httpx.AsyncClient, conversation: Conversation
):
    # Given a briefing card of 2026-01-07 10:00 with title, summary and priority P1
    ten_o_clock = int(datetime(2026, 1, 7, 10, 0, tzinfo=UTC).timestamp() * 1000)
    grown = await keep_card(api.store, conversation, "Review耗时超标", "中位耗时30小时", ten_o_clock)
    await keep_card(api.store, grown, "长", "长" * 501, ten_o_clock)
    # When it is included in the context
    card, long_card = await context(alice, conversation)
    # Then it is formatted exactly so
    assert card["content"] == (
        "[简报 2026-01-07 10:00]\n"
        "标题：Review耗时超标\n"
        "摘要：中位耗时30小时\n"
        "优先级：P1"
    )  # fmt: skip
    # And a summary that is too long ends in dots
    assert f"\n摘要：{'长' * 500}...\n" in long_card["content"]
