"""`search_history`: the archived messages of this conversation, and of no other."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.making import ALICE, BOB, keep_agent, keep_conversation, keep_turn, make_compaction
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.ports.tools import Caller, Returned
from threadkeep.storage.store import Store
from threadkeep.tools.history import HistoryServer

TALK = [
    ("合同的违约金是多少？", "违约金是合同金额的百分之二十。"),
    ("Who signs for them?", "Ms Okafor signs, on the 3rd of May."),
    ("And where?", "In Lagos. " + "Padding. " * 400 + "The notary is in Marina Street."),
    ("Not archived: Okafor?", "Yes."),
]


async def archived_talk(store: Store, agent: Agent, user: UserId = ALICE, to_seq: int = 6) -> Conversation:
    conversation = await keep_conversation(store, agent, user)
    for asked, replied in TALK:
        conversation = await keep_turn(store, conversation, asked, replied)
    if to_seq:
        await store.compactions.add(make_compaction(conversation.id, 1, to_seq))
    return replace(conversation, archived_to_seq=to_seq)


async def caller(agent: Agent, conversation: Conversation, user: UserId = ALICE) -> Caller:
    return Caller(agent, User(user), conversation)


async def search(server: HistoryServer, who: Caller, arguments: Mapping[str, Any]) -> Returned:
    steps = [step async for step in server.call(who, "search_history", arguments)]
    assert isinstance(steps[-1], Returned)
    return steps[-1]


async def numbers(server: HistoryServer, who: Caller, query: str, **more: Any) -> list[int]:
    found = await search(server, who, {"query": query, **more})
    assert found.status == "ok"
    return [it["number"] for it in found.result["messages"]]


async def test_archived_messages_are_found_in_any_language(store: Store):
    agent = await keep_agent(store)
    server, who = HistoryServer(store), await caller(agent, await archived_talk(store, agent))
    assert [tool.name for tool in await server.tools(who)] == ["search_history"]
    assert (await numbers(server, who, "违约金"))[:2] == [2, 1]
    assert await numbers(server, who, "Okafor signing") == [4, 3]
    assert await numbers(server, who, "okafor", limit=1) == [4]
    assert await numbers(server, who, "Oka") == [4]
    assert await numbers(server, who, "zebra") == []


async def test_long_message_is_shown_where_the_words_are(store: Store):
    agent = await keep_agent(store)
    server, who = HistoryServer(store), await caller(agent, await archived_talk(store, agent))
    (found,) = (await search(server, who, {"query": "notary"})).result["messages"]
    assert found["role"] == "assistant"
    assert found["text"].startswith("…")
    assert found["text"].endswith("The notary is in Marina Street.")
    assert len(found["text"]) < 700


async def test_without_archived_messages_there_is_no_tool(store: Store):
    agent = await keep_agent(store)
    conversation = await archived_talk(store, agent, to_seq=0)
    server, who = HistoryServer(store), await caller(agent, conversation)
    assert await server.tools(who) == ()
    assert await numbers(server, who, "Okafor") == []


async def test_nobody_elses_history_is_searched(store: Store):
    agent = await keep_agent(store, visibility="public")
    hers = await archived_talk(store, agent)
    server, who = HistoryServer(store), await caller(agent, hers, BOB)
    assert await server.tools(who) == ()
    assert await numbers(server, who, "Okafor") == []


@ONLY_SQLITE
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": " …"},
        {"query": 5},
        {"query": "a", "limit": 0},
        {"query": "a", "limit": "x"},
    ],
)
async def test_wrong_arguments_are_told(store: Store, arguments: dict[str, Any]):
    agent = await keep_agent(store)
    server, who = HistoryServer(store), await caller(agent, await archived_talk(store, agent))
    returned = await search(server, who, arguments)
    assert returned.status == "error"
    assert returned.error


async def test_only_the_beginning_of_a_long_message_is_searched(store: Store):
    agent = await keep_agent(store)
    conversation = await keep_conversation(store, agent)
    conversation = await keep_turn(store, conversation, "zebra " + "a" * 100_000, "b" * 100_000 + " zebra")
    await store.compactions.add(make_compaction(conversation.id, 1, 2))
    who = await caller(agent, replace(conversation, archived_to_seq=2))
    assert await numbers(HistoryServer(store), who, "zebra") == [1]
