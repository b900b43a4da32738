"""Seed 003, chatbot-persistence: one conversation a user with the default agent, and its messages.

How quick something is, is proven by what the database has to read for it, which does not depend on the
machine: `make bench` measures the times.
"""

import asyncio
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.conformance.test_000_conversation_persistence import Listening
from tests.conftest import Api
from tests.making import (
    ALICE,
    BOB,
    NOW,
    all_messages,
    keep_agent,
    keep_begun,
    keep_conversation,
    keep_ended,
    keep_turn,
    make_agent,
    said,
)
from tests.postgres import Postgres
from threadkeep import Settings, User, create_app
from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.errors import InvalidRequest, MessageContentRequired, StorageConflict
from threadkeep.domain.ids import ConversationId, MessageId, UserId, is_uuid, new_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus, MessageWindow
from threadkeep.domain.parts import ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import TurnOrigin
from threadkeep.storage.database.connector import Database, Query, Row, Statement
from threadkeep.storage.store import Store, open_store, sqlite_path, store_on

BLANKS = ("", "   ", "\n\t", "\u3000", "\u200b")

ADD_MESSAGE = Statement(
    """INSERT INTO tk_messages (id, conversation_id, seq, role, content_type, content, status, on_path,
        created_at)
    VALUES (:id, :conversation_id, :seq, :role, 'text', :content, 'COMPLETED', TRUE, 0)"""
)
DELETE_CONVERSATION = Statement("DELETE FROM tk_conversations WHERE id = :id")
SET_OWNER = Statement("UPDATE tk_conversations SET user_id = :user_id WHERE id = :id")
TABLES_OF_CONVERSATIONS = Statement(
    """SELECT tables.name FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
    WHERE columns.name = 'conversation_id' ORDER BY 1""",
    postgres="""SELECT table_name FROM information_schema.columns
    WHERE column_name = 'conversation_id' AND table_schema = current_schema() ORDER BY 1""",
)


async def own_chat(api: Api, client: httpx.AsyncClient) -> Conversation:
    """The one conversation of a user with the chatbot, as it is kept."""
    user = UserId((await client.get("/api/me")).json()["id"])
    agents = (await client.get("/api/agents")).json()["items"]
    (default,) = [agent for agent in agents if agent["isDefault"]]
    chat = (await client.put(f"/api/agents/{default['id']}/conversation")).json()
    conversation = await api.store.conversations.get(user, ConversationId(chat["id"]))
    assert conversation
    return conversation


async def chat_messages(client: httpx.AsyncClient, **query: int) -> list[dict[str, Any]]:
    response = await client.get("/api/chat/messages", params=query)
    assert response.status_code == 200
    return response.json()["items"]


async def listed(client: httpx.AsyncClient) -> list[str]:
    return [it["id"] for it in (await client.get("/api/conversations")).json()["items"]]


async def talk(store: Store, conversation: Conversation, turns: int) -> Conversation:
    for number in range(turns):
        at = conversation.updated_at + 1000
        conversation = await keep_turn(
            store, conversation, f"问 {number}", f"答 {number}", at, origin=TurnOrigin.RECORDED
        )
    return conversation


def talk_texts(turns: int) -> list[str]:
    return [f"{word} {number}" for number in range(turns) for word in "问答"]


async def count(database: Database, table: str, conversation: Conversation) -> int:
    counting = Statement(f"SELECT count(*) FROM {table} WHERE conversation_id = :id")
    ((number,),) = await database.fetch(counting(id=conversation.id))
    return number


def message_row(conversation: Conversation, **changes: Any) -> Query:
    """A message that the database is asked to keep behind the store's back."""
    row: dict[str, Any] = {"id": new_uuid(), "seq": 1, "role": "user", "content": "?"}
    return ADD_MESSAGE(**row | {"conversation_id": conversation.id} | changes)


# User story 1: conversations are kept


@pytest.mark.requirement("003-US1.3")
async def test_two_users_have_separate_conversations(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    # Given two different users; when each says something to the chatbot
    alices, bobs = await own_chat(api, alice), await own_chat(api, bob)
    await keep_turn(api.store, alices, "I am Alice", "Hello Alice")
    await keep_turn(api.store, bobs, "I am Bob", "Hello Bob")
    # Then each has a conversation record of their own
    assert (alices.user_id, bobs.user_id) == ("alice", "bob")
    assert (await listed(alice), await listed(bob)) == ([alices.id], [bobs.id])
    assert [it["content"] for it in await chat_messages(alice)] == ["I am Alice", "Hello Alice"]
    assert [it["content"] for it in await chat_messages(bob)] == ["I am Bob", "Hello Bob"]


# User story 2: messages are kept


@pytest.mark.requirement("003-US2.1")
async def test_message_of_the_user_is_recorded(api: Api, alice: httpx.AsyncClient):
    # Given an active conversation; when the user's message begins a turn that nobody has answered yet
    chat = await own_chat(api, alice)
    await keep_begun(api.store, chat.begin_turn("Add a task", NOW))
    # Then a record is there with role, content, link to the conversation and creation time
    message, _ = await chat_messages(alice)
    assert (message["role"], message["content"]) == ("user", "Add a task")
    assert message["conversationId"] == chat.id
    assert message["createdAt"] == "2027-01-15T08:00:00.000Z"


@pytest.mark.requirement("003-US2.2")
async def test_response_of_the_assistant_is_recorded(api: Api, alice: httpx.AsyncClient):
    # Given an active conversation; when the assistant's response ends the turn
    chat = await own_chat(api, alice)
    await keep_turn(api.store, chat, "Add a task", "Done: **water the plants**")
    # Then a record is there with role, content, link to the conversation and creation time
    _, message = await chat_messages(alice)
    assert (message["role"], message["content"]) == ("assistant", "Done: **water the plants**")
    assert message["conversationId"] == chat.id
    assert message["createdAt"] == "2027-01-15T08:00:00.000Z"


@pytest.mark.requirement("003-US2.3")
async def test_ten_messages_come_back_oldest_first(api: Api, alice: httpx.AsyncClient):
    # Given a conversation with 10 messages
    await talk(api.store, await own_chat(api, alice), 5)
    # When the history is retrieved
    messages = await chat_messages(alice)
    # Then all 10 come in chronological order
    assert [message["content"] for message in messages] == talk_texts(5)
    assert all(one["createdAt"] <= next_one["createdAt"] for one, next_one in pairwise(messages))


# User story 3: messages are read fast


@pytest.mark.requirement("003-US3.1", "FR-012", "SC-002")
@pytest.mark.usefixtures("crowded")
async def test_conversation_of_a_user_is_found_by_reading_one_row(database: Database):
    # Given many users with a conversation each
    listening = Listening(database)
    store = await store_on(listening)
    agent = make_agent(owner=None, is_default=True)
    await store.agents.add_shipped(agent)
    users = [UserId(f"user {number}") for number in range(500)]
    await asyncio.gather(
        *(
            store.conversations.get_or_add_main(Conversation.start(user, agent.id, NOW, is_main=True))
            for user in users
        )
    )
    await collect_statistics(database)
    for user in (users[0], users[250], users[-1]):
        # When a user's conversation is looked up
        listening.heard.clear()
        found, is_new = await store.conversations.get_or_add_main(
            Conversation.start(user, agent.id, NOW, is_main=True)
        )
        assert (found.user_id, is_new) == (user, False)
        # Then an index leads to its one row, however many users there are
        (lookup,) = listening.heard
        await check_reads_only(database, lookup, index="tk_conversations_main", rows=1)
        # And so it does for the list of all that the user has
        listening.heard.clear()
        await store.conversations.page(user, ConversationFilter(), after=None, offset=0, limit=20)
        (listing,) = listening.heard
        await check_reads_only(database, listing, index="tk_conversations_by_user", rows=1)


@pytest.mark.requirement("003-US3.2", "FR-013")
async def test_hundred_messages_are_read_in_order_by_reading_hundred_rows(database: Database):
    # Given a conversation with 100 messages, and nine others that grew at the same time
    listening = Listening(database)
    store = await store_on(listening)
    agent = await keep_agent(store)
    conversations = [await keep_conversation(store, agent) for _ in range(10)]
    await asyncio.gather(*(talk(store, conversation, 50) for conversation in conversations))
    await collect_statistics(database)
    # When messages are retrieved in chronological order
    listening.heard.clear()
    messages = await store.messages.page(conversations[5].id, MessageWindow(), offset=0, limit=100)
    assert [message.content for message in messages] == talk_texts(50)
    # Then the index by conversation and position leads to these 100 rows and no other
    (reading,) = listening.heard
    await check_reads_only(database, reading, index="tk_messages_on_path", rows=100)


@pytest.mark.requirement("003-US3.3")
async def test_only_the_most_recent_twenty_messages_are_returned(api: Api, alice: httpx.AsyncClient):
    # Given a conversation with 100 messages
    chat = await talk(api.store, await own_chat(api, alice), 50)
    # When the most recent 20 are requested
    path = f"/api/conversations/{chat.id}/messages"
    page = (await alice.get(path, params={"order": "desc", "limit": 20})).json()
    # Then only those are returned, and the way to the next page
    assert [message["content"] for message in page["items"]] == talk_texts(50)[:-21:-1]
    older = (
        await alice.get(path, params={"order": "desc", "limit": 20, "cursor": page["nextCursor"]})
    ).json()
    assert [message["content"] for message in older["items"]] == talk_texts(50)[-21:-41:-1]


@pytest.mark.requirement("SC-003")
async def test_most_recent_fifty_of_many_messages_are_read_by_reading_fifty_rows(database: Database):
    # Given a conversation with more than 500 messages
    listening = Listening(database)
    store = await store_on(listening)
    conversation = await talk(store, await keep_conversation(store, await keep_agent(store)), 300)
    await collect_statistics(database)
    # When the most recent 50 are retrieved
    listening.heard.clear()
    latest = MessageWindow(newest_first=True)
    messages = await store.messages.page(conversation.id, latest, offset=0, limit=50)
    assert [message.content for message in messages] == talk_texts(300)[:-51:-1]
    # Then 50 rows are read, the others are not touched
    (reading,) = listening.heard
    await check_reads_only(database, reading, index="tk_messages_on_path", rows=50)


async def collect_statistics(database: Database) -> None:
    """What PostgreSQL does by itself a while after much was written."""
    if database.dialect == "postgres":
        await database.execute(Statement("ANALYZE")())


async def check_reads_only(database: Database, query: Query, *, index: str, rows: int) -> None:
    """The query is answered by way of the index: it gives so many rows, and reads no other."""
    assert len(await database.fetch(query)) == rows
    if database.dialect == "sqlite":
        # A sort would be a second step; that no path is being moved is asked once.
        step, *lookups = [row[-1] for row in await explain(database, query)]
        assert all(it.startswith(("SCALAR SUBQUERY ", "SEARCH tk_path_moves ")) for it in lookups)
        assert step.startswith("SEARCH ") and f" USING INDEX {index} (" in step
    else:
        (((plan,),),) = await explain(database, query)
        # What PostgreSQL has read it may still put in order, where that is cheaper than reading in order.
        steps = list(steps_of(plan["Plan"]))
        (reading,) = [step for step in steps if "Relation Name" in step]
        assert reading["Node Type"] in {"Index Scan", "Bitmap Heap Scan"}
        # Without branches the index of all messages leads to the same rows at the same cost; with one
        # conversation a user, so does the index of their bytes.
        (used,) = [step["Index Name"] for step in steps if "Index Name" in step]
        assert used in {index, "tk_messages_by_seq", "tk_conversations_bytes"}
        assert (reading["Actual Rows"], reading.get("Rows Removed by Filter", 0)) == (rows, 0)


def steps_of(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for inner in step.get("Plans", ()):
        if inner.get("Relation Name") != "tk_path_moves":  # asked once
            yield from steps_of(inner)


async def explain(database: Database, query: Query) -> Sequence[Row]:
    names = iter(query.statement.sqlite_names)
    sqlite = re.sub(r"\?", lambda _: f":{next(names)}", query.statement.sqlite)
    numbered = query.statement.postgres_names
    postgres = re.sub(r"\$(\d+)", lambda mark: f":{numbered[int(mark[1]) - 1]}", query.statement.postgres)
    explaining = Statement(
        f"EXPLAIN QUERY PLAN {sqlite}", postgres=f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {postgres}"
    )
    return await database.fetch(explaining(**query.values))


# User story 4: messages go with their conversation


@pytest.mark.requirement("003-US4.1")
@pytest.mark.parametrize("by", ["owner", "admin action", "account cleanup"])
async def test_deleting_a_conversation_deletes_its_messages(api: Api, alice: httpx.AsyncClient, by: str):
    # Given a conversation with 5 messages, the last of them not yet answered
    chat = await talk(api.store, await own_chat(api, alice), 2)
    begun = chat.begin_turn("?", NOW)
    await keep_begun(api.store, begun)
    assert [it.content for it in await all_messages(api.store, chat)][:5] == [*talk_texts(2), "?"]
    # When the conversation is deleted
    client, path = {
        "owner": (alice, f"/api/conversations/{chat.id}?purge=true"),
        "admin action": (api.as_user("root", admin=True), "/api/users/alice"),
        "account cleanup": (alice, "/api/users/alice"),
    }[by]
    assert (await client.delete(path)).status_code == 204
    # Then its messages are deleted too
    assert await all_messages(api.store, chat) == []
    again = alice if by == "owner" else api.as_new_user("alice")  # who was deleted signs in again
    assert (await again.get(f"/api/conversations/{chat.id}/messages")).status_code == 404
    assert await chat_messages(again) == []


@pytest.mark.requirement("003-US4.2")
@pytest.mark.parametrize(
    "path", ["/api/conversations/{id}", "/api/conversations/{id}?purge=true", "/api/users/alice"]
)
async def test_deleting_one_users_conversation_leaves_the_other_users_alone(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient, path: str
):
    # Given two conversations, of user A and user B
    alices = await talk(api.store, await own_chat(api, alice), 2)
    bobs = await talk(api.store, await own_chat(api, bob), 2)
    before = (await bob.get(f"/api/conversations/{bobs.id}")).json()
    # When user A's is deleted
    assert (await alice.delete(path.format(id=alices.id))).status_code == 204
    # Then nothing of user B's has changed
    assert (await bob.get(f"/api/conversations/{bobs.id}")).json() == before
    assert [message["content"] for message in await chat_messages(bob)] == talk_texts(2)


# Edge cases


@pytest.mark.requirement("003-EC1")
async def test_empty_message_is_rejected(api: Api, alice: httpx.AsyncClient):
    chat = await own_chat(api, alice)
    for path in ("/api/chat", f"/api/conversations/{chat.id}/messages"):
        response = await alice.post(path, json={"content": ""})
        assert response.status_code == 400
        assert response.json()["error"]["code"] == "MESSAGE_CONTENT_REQUIRED"
    assert await chat_messages(alice) == []


@pytest.mark.requirement("003-EC2")
async def test_very_long_message_is_stored_whole(api: Api, alice: httpx.AsyncClient):
    # The chatbot sets no limit of its own
    agents = (await api.as_user("root", admin=True).get("/api/agents")).json()["items"]
    assert [agent["settings"]["maxMessageChars"] for agent in agents if agent["isDefault"]] == [0]
    # And a message far over 10,000 characters is stored and read back as it was
    question, reply = "很长的问题 " * 50_000, "A long answer. " * 50_000
    await keep_turn(api.store, await own_chat(api, alice), question, reply)
    assert [message["content"] for message in await chat_messages(alice)] == [question, reply]


@pytest.mark.requirement("003-EC3")
async def test_simultaneous_requests_make_one_conversation_for_a_user(api: Api, alice: httpx.AsyncClient):
    # When many requests need the user's conversation at once, for the first time
    chats = await asyncio.gather(*(own_chat(api, alice) for _ in range(50)))
    # Then there is one, and nobody was turned away
    assert {chat.id for chat in chats} == set(await listed(alice))
    assert len(await listed(alice)) == 1


@pytest.mark.requirement("003-EC4")
async def test_conversation_with_thousands_of_messages_is_read_page_by_page(
    api: Api, alice: httpx.AsyncClient
):
    # Given a conversation with thousands of messages
    chat = await talk(api.store, await own_chat(api, alice), 1_000)
    # When it is read, then never more than a page comes at once
    path = f"/api/conversations/{chat.id}"
    assert len((await alice.get(path)).json()["messages"]) == 50
    assert len(await chat_messages(alice)) == 20
    assert (await alice.get(f"{path}/messages", params={"limit": 201})).status_code == 422
    # And page by page everything is there, without gap or repeat
    texts: list[str] = []
    query: dict[str, Any] = {"limit": 200}
    while True:
        page = (await alice.get(f"{path}/messages", params=query)).json()
        assert len(page["items"]) <= 200
        texts += [message["content"] for message in page["items"]]
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    assert texts == talk_texts(1_000)


@pytest.mark.requirement("003-EC5")
async def test_message_cannot_exist_without_its_conversation(store: Store, database: Database):
    # Given a conversation that is gone
    conversation = await keep_conversation(store, await keep_agent(store))
    assert await store.conversations.purge(ALICE, conversation.id)
    # When a message refers to it, then it is refused: by the store, and by the foreign key itself
    with pytest.raises(StorageConflict):
        await keep_begun(store, conversation.begin_turn("?", NOW))
    with pytest.raises(StorageConflict):
        await database.execute(message_row(conversation))
    assert await all_messages(store, conversation) == []


# Functional requirements


@pytest.mark.requirement("FR-001", "FR-005")
async def test_conversations_and_all_their_messages_outlive_the_process(database_url: str):
    store = await open_store(database_url)
    agent = await keep_agent(store)
    alices, bobs = [
        await talk(store, await keep_conversation(store, agent, user), 10) for user in (ALICE, BOB)
    ]
    before = [await all_messages(store, conversation) for conversation in (alices, bobs)]
    await store.close()

    store = await open_store(database_url)
    assert await store.conversations.get(ALICE, alices.id) == alices
    assert await store.conversations.get(BOB, bobs.id) == bobs
    after = [await all_messages(store, conversation) for conversation in (alices, bobs)]
    await store.close()
    assert after == before
    assert [[message.content for message in messages] for messages in after] == [talk_texts(10)] * 2


@pytest.mark.requirement("FR-002")
async def test_conversation_has_one_id_and_one_user(store: Store, database: Database):
    agent = await keep_agent(store)
    conversations = [await keep_conversation(store, agent, user) for user in (ALICE, BOB) for _ in range(5)]
    assert len({conversation.id for conversation in conversations}) == 10
    assert all(is_uuid(conversation.id) for conversation in conversations)
    mine = conversations[0]
    # The id is taken, for everybody
    with pytest.raises(StorageConflict):
        await store.conversations.add(replace(Conversation.start(BOB, agent.id, NOW), id=mine.id))
    # There is always exactly one user, whom we know
    for nobody in (None, "a user we never heard of"):
        with pytest.raises(StorageConflict):
            await database.execute(SET_OWNER(id=mine.id, user_id=nobody))
    assert await store.conversations.get(ALICE, mine.id) == mine
    assert await store.conversations.get(BOB, mine.id) is None


@pytest.mark.requirement("FR-002")
async def test_conversation_belongs_to_the_user_who_signed_in(api: Api, alice: httpx.AsyncClient):
    chat = await own_chat(api, alice)
    assert (await alice.get(f"/api/conversations/{chat.id}")).json()["userId"] == "alice"
    assert (await api.client().get("/api/chat/messages")).status_code == 401


@pytest.mark.requirement("FR-003")
async def test_user_has_at_most_one_conversation_with_the_chatbot(api: Api, alice: httpx.AsyncClient):
    chat = await own_chat(api, alice)
    assert (await own_chat(api, alice)).id == chat.id
    await chat_messages(alice)
    await alice.post("/api/chat", json={"content": ""})
    assert await listed(alice) == [chat.id]
    # The database itself refuses a second one
    with pytest.raises(StorageConflict):
        await api.store.conversations.add(Conversation.start(ALICE, chat.agent_id, NOW, is_main=True))
    assert await listed(alice) == [chat.id]


@pytest.mark.requirement("FR-004")
async def test_conversation_tracks_when_it_was_created_and_last_updated(api: Api, alice: httpx.AsyncClient):
    chat = await own_chat(api, alice)
    path = f"/api/conversations/{chat.id}"
    new = (await alice.get(path)).json()
    assert new["createdAt"] == new["updatedAt"]
    await keep_turn(api.store, chat, "?", ".", chat.created_at + 60_000)
    used = (await alice.get(path)).json()
    assert used["createdAt"] == new["createdAt"]
    assert used["updatedAt"] == used["messages"][-1]["completedAt"] > new["updatedAt"]


@pytest.mark.requirement("FR-006")
async def test_message_has_one_id_and_one_conversation(store: Store, database: Database):
    agent = await keep_agent(store)
    one, other = [await talk(store, await keep_conversation(store, agent), 5) for _ in range(2)]
    messages = [*await all_messages(store, one), *await all_messages(store, other)]
    assert len({message.id for message in messages}) == 20
    assert all(is_uuid(message.id) for message in messages)
    assert [message.conversation_id for message in messages] == [one.id] * 10 + [other.id] * 10
    # The id is taken, for every conversation; and there is no message outside of one
    with pytest.raises(StorageConflict):
        await database.execute(message_row(other, id=messages[0].id, seq=99))
    with pytest.raises(StorageConflict):
        await database.execute(message_row(other, conversation_id=None, seq=99))
    assert [*await all_messages(store, one), *await all_messages(store, other)] == messages


@pytest.mark.requirement("FR-007")
async def test_message_records_who_what_and_when(api: Api, alice: httpx.AsyncClient):
    chat = await own_chat(api, alice)
    await keep_turn(api.store, chat, "Show my tasks", "1. Water the plants 🌱", NOW)
    assert [(it["role"], it["content"], it["createdAt"]) for it in await chat_messages(alice)] == [
        ("user", "Show my tasks", "2027-01-15T08:00:00.000Z"),
        ("assistant", "1. Water the plants 🌱", "2027-01-15T08:00:00.000Z"),
    ]


@pytest.mark.requirement("FR-008")
async def test_messages_of_a_conversation_come_oldest_first(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    # Two conversations that grow at the same time, all of it within the same millisecond
    alices, bobs = await own_chat(api, alice), await own_chat(api, bob)
    for number in range(8):
        alices = await keep_turn(api.store, alices, f"问 {number}", f"答 {number}")
        bobs = await keep_turn(api.store, bobs, "b?", "b.")
    messages = await chat_messages(alice)
    assert [message["content"] for message in messages] == talk_texts(8)
    assert [message["seq"] for message in messages] == list(range(1, 17))


@pytest.mark.requirement("FR-009")
async def test_blank_or_missing_content_is_rejected_at_the_door(api: Api, alice: httpx.AsyncClient):
    chat = await own_chat(api, alice)
    bodies: list[dict[str, str | None]] = [{}, {"content": None}, *({"content": blank} for blank in BLANKS)]
    for path in ("/api/chat", f"/api/conversations/{chat.id}/messages"):
        for body in bodies:
            response = await alice.post(path, json=body)
            assert response.status_code == 400
            assert response.json()["error"]["code"] == "MESSAGE_CONTENT_REQUIRED"
    assert await chat_messages(alice) == []


@pytest.mark.requirement("FR-009")
async def test_blank_or_missing_content_is_rejected_by_domain_and_database(store: Store, database: Database):
    conversation = await keep_conversation(store, await keep_agent(store))
    for blank in BLANKS:
        with pytest.raises(MessageContentRequired):
            conversation.begin_turn(blank, NOW)
        for role in ("user", "assistant"):
            with pytest.raises(StorageConflict):
                await database.execute(message_row(conversation, role=role, content=blank))
    with pytest.raises(StorageConflict):
        await database.execute(message_row(conversation, content=None))
    # And an empty reply of the model is no answer
    reply = conversation.begin_turn("?", NOW).assistant_message
    with pytest.raises(MessageContentRequired):
        reply.finish(MessageStatus.COMPLETED, said(" \n"), NOW)
    assert await all_messages(store, conversation) == []


@pytest.mark.requirement("FR-010")
async def test_messages_are_retrieved_by_limit_and_offset(api: Api, alice: httpx.AsyncClient):
    chat = await talk(api.store, await own_chat(api, alice), 25)
    for path in ("/api/chat/messages", f"/api/conversations/{chat.id}/messages"):
        pages = [
            (await alice.get(path, params={"limit": 15, "offset": offset})).json()["items"]
            for offset in (0, 15, 30, 45, 60)
        ]
        assert [len(page) for page in pages] == [15, 15, 15, 5, 0]
        assert [message["content"] for page in pages for message in page] == talk_texts(25)
        for wrong in ({"limit": 0}, {"limit": 10_000}, {"offset": -1}):
            assert (await alice.get(path, params=wrong)).status_code == 422


@pytest.mark.requirement("FR-011")
async def test_removing_a_conversation_removes_its_messages_by_cascade(store: Store, database: Database):
    agent = await keep_agent(store)
    gone, kept = [await talk(store, await keep_conversation(store, agent), 3) for _ in range(2)]
    # Nobody but the database itself takes care of it
    await database.execute(DELETE_CONVERSATION(id=gone.id))
    assert await all_messages(store, gone) == []
    assert len(await all_messages(store, kept)) == 6


HOST_TABLES = (
    "CREATE TABLE users (id text PRIMARY KEY, email text NOT NULL UNIQUE)",
    """CREATE TABLE tasks (
        id integer PRIMARY KEY, user_id text NOT NULL REFERENCES users (id), title text NOT NULL)""",
    "CREATE INDEX tasks_by_user ON tasks (user_id)",
    "INSERT INTO users VALUES ('alice', 'alice@example.org'), ('bob', 'bob@example.org')",
    "INSERT INTO tasks VALUES (1, 'alice', 'water the plants'), (2, 'bob', 'buy milk')",
)
HOST_ROWS = ("SELECT * FROM users ORDER BY id", "SELECT * FROM tasks ORDER BY id")
HOST_STRUCTURE = {
    "sqlite": (
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name NOT LIKE 'tk#_%' ESCAPE '#' ORDER BY 2",
    ),
    "postgresql": (
        """SELECT table_name, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name NOT LIKE 'tk#_%' ESCAPE '#' ORDER BY 1, 2""",
        "SELECT indexdef FROM pg_indexes WHERE tablename IN ('users', 'tasks') ORDER BY 1",
        """SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid IN ('users'::regclass, 'tasks'::regclass) ORDER BY 1""",
        """SELECT tgname FROM pg_trigger
        WHERE NOT tgisinternal AND tgrelid IN ('users'::regclass, 'tasks'::regclass)""",
        "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1",
    ),
}  # fmt: skip


def ask(url: str, *statements: str) -> list[list[Any]]:
    """What the host application sees of its own database; not through us."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as connection:
            return [connection.execute(statement).fetchall() for statement in statements]
    with psycopg.connect(url, autocommit=True) as connection:
        cursors = [connection.execute(statement.encode()) for statement in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


@pytest.fixture(params=["sqlite", "postgres"])
def host_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The database of an application that has users and tasks, and knows nothing of us."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/host/tasks.db"
        sqlite_path(url).parent.mkdir()
    else:
        server: Postgres = request.getfixturevalue("postgres")
        url = server.create_database()
    ask(url, *HOST_TABLES)
    return url


@pytest.mark.requirement("FR-014")
async def test_conversations_live_beside_existing_users_and_tasks(host_url: str):
    looking = (*HOST_ROWS, *HOST_STRUCTURE[host_url.partition(":")[0]])
    # Given a database with users and tasks
    before = ask(host_url, *looking)
    # When its users talk to the chatbot, and one of them is deleted with us
    settings = Settings.load({}, database_url=host_url, database_pool_size=2)
    app = create_app(settings, current_user=lambda request: User(UserId(request.headers["x-user"])))
    async with app.lifespan(), httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        api = Api(app, (await app.services()).store, [])
        client.base_url = "http://localhost"
        for user in ("alice", "bob"):
            client.headers["x-user"] = user
            await talk(api.store, await own_chat(api, client), 2)
            assert [message["content"] for message in await chat_messages(client)] == talk_texts(2)
        assert (await client.delete("/api/users/bob")).status_code == 204
        # Then the application goes on using its tables
        for title in ("buy oat milk", "buy milk"):
            await asyncio.to_thread(ask, host_url, f"UPDATE tasks SET title = '{title}' WHERE id = 2")
    # And nothing of them has changed, neither structure nor rows
    assert ask(host_url, *looking) == before
    # And all that we added carries our prefix
    assert ask(host_url, "SELECT count(*) FROM tk_messages") == [[(4,)]]


@pytest.mark.requirement("FR-015")
async def test_role_is_one_of_the_defined_values(store: Store, database: Database):
    conversation = await keep_conversation(store, await keep_agent(store))
    for role in ("bot", "tool", "USER", "user ", ""):
        with pytest.raises(InvalidRequest):
            Message(
                id=MessageId(new_uuid()),
                conversation_id=conversation.id,
                seq=1,
                turn_id=None,
                role=role,  # pyright: ignore[reportArgumentType]
                parts=said("?"),
                status=MessageStatus.COMPLETED,
                created_at=NOW,
            )
        with pytest.raises(StorageConflict):
            await database.execute(message_row(conversation, role=role))
    assert await all_messages(store, conversation) == []
    # The defined ones are kept
    for seq, role in enumerate(MessageRole, 1):
        await database.execute(message_row(conversation, seq=seq, role=role))
    assert [message.role for message in await all_messages(store, conversation)] == list(MessageRole)


# Success criteria


@pytest.mark.requirement("SC-004")
async def test_no_user_can_access_another_users_conversation_or_messages(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    chat = await talk(api.store, await own_chat(api, alice), 2)
    path = f"/api/conversations/{chat.id}"
    before = (await alice.get(path)).json()
    for client in (bob, api.as_user("root", admin=True)):
        for method, rest, body in (
            ("GET", "", None),
            ("PATCH", "", {"title": "mine"}),
            ("DELETE", "", None),
            ("DELETE", "?purge=true", None),
            ("POST", "/restore", None),
            ("POST", "/session", None),
            ("GET", "/messages", None),
            ("POST", "/messages", {"content": "?"}),
            ("GET", "/context", None),
        ):
            # Exactly as if there were no such conversation
            response = await client.request(method, path + rest, json=body)
            absent = await client.request(method, f"/api/conversations/{new_uuid()}{rest}", json=body)
            assert response.status_code == absent.status_code == 404
            errors = [it.json()["error"] | {"requestId": ""} for it in (response, absent)]
            assert errors[0] == errors[1]
        assert await listed(client) == []
        assert await chat_messages(client) == []
    assert (await api.client().get(path)).status_code == 401
    assert (await alice.get(path)).json() == before


@pytest.mark.requirement("SC-005")
async def test_deleting_a_conversation_leaves_no_orphan_in_any_table(store: Store, database: Database):
    # Given a conversation of which there is a trace in several tables, and another one
    agent = await keep_agent(store)
    gone, kept = await keep_conversation(store, agent), await keep_conversation(store, agent)
    for conversation in (gone, kept):
        begun = conversation.begin_turn("?", NOW)
        await keep_begun(store, begun)
        call = ToolCall(
            begun.turn.id,
            "call_1",
            begun.assistant_message.id,
            "list_tasks",
            "todo",
            {},
            ToolCallStatus.RUNNING,
            NOW,
        ).end(ToolCallStatus.OK, result=[])
        parts = (ToolCallPart(call=call, iteration=1), *said("."))
        reply = begun.assistant_message.finish(MessageStatus.COMPLETED, parts, NOW)
        ended = begun.conversation.end_turn(begun.turn, reply, NOW)
        await keep_ended(store, ended)
    tables = [name for (name,) in await database.fetch(TABLES_OF_CONVERSATIONS())]
    before = {table: await count(database, table, gone) for table in tables}
    assert (before["tk_messages"], before["tk_turns"], before["tk_tool_calls"]) == (2, 1, 1)
    # When it is deleted for good
    assert await store.conversations.purge(ALICE, gone.id)
    # Then no table has a row of it any more, and every row of the other is there
    assert [await count(database, table, gone) for table in tables] == [0] * len(tables)
    assert {table: await count(database, table, kept) for table in tables} == before


@pytest.mark.requirement("SC-007")
async def test_sender_of_every_message_is_stored(store: Store):
    # Many conversations at once, so that one could be taken for another
    agent = await keep_agent(store)
    conversations = [await keep_conversation(store, agent, user) for user in (ALICE, BOB) for _ in range(10)]
    await asyncio.gather(*(talk(store, conversation, 10) for conversation in conversations))
    for conversation in conversations:
        messages = await all_messages(store, conversation)
        assert [message.content for message in messages] == talk_texts(10)
        for message in messages:
            asked = str(message.content).startswith("问")
            assert message.role is (MessageRole.USER if asked else MessageRole.ASSISTANT)


@pytest.mark.requirement("SC-008")
async def test_limit_twenty_offset_zero_gives_the_first_twenty_messages(api: Api, alice: httpx.AsyncClient):
    await talk(api.store, await own_chat(api, alice), 25)
    messages = await chat_messages(alice, limit=20, offset=0)
    assert [message["content"] for message in messages] == talk_texts(10)
