"""The index of messages and titles, on every database."""

import asyncio
from typing import Any

import psycopg
import pytest

from tests.making import ALICE, NOW, keep_agent, keep_begun, keep_conversation, keep_turn
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId
from threadkeep.search.query import Query
from threadkeep.search.reading import first_places, terms_of
from threadkeep.storage import history as history_module
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.history import SearchFilter
from threadkeep.storage.store import Store
from threadkeep.testing.waiting import until

RENAME = Statement("UPDATE tk_conversations SET title = 'Field' WHERE id = :id")
WAITING = Statement(
    "SELECT 1",
    postgres="SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
)
ENTRIES = Statement("SELECT (SELECT COUNT(*) FROM tk_entries), (SELECT COUNT(*) FROM tk_searchable)")


async def follow(store: Store, conversation: Conversation) -> int:
    """Makes a conversation searchable; gives in how many steps."""
    steps = 1
    while await store.history.follow(conversation.id, limit=2):
        steps += 1
    return steps


async def texts(store: Store, query: str) -> list[str]:
    return [hit.snippet for hit in await store.history.search(ALICE, query, before=None, limit=10)]


async def test_conversation_is_behind_until_it_has_been_followed(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    for number in range(3):
        conversation = await keep_turn(store, conversation, f"question {number}", f"answer {number}")
    assert await store.history.behind(after=None, limit=10) == [conversation.id]
    assert await follow(store, conversation) >= 3
    assert await store.history.behind(after=None, limit=10) == []
    assert await texts(store, "answer") == ["answer 2", "answer 1", "answer 0"]
    # Following again changes nothing.
    await follow(store, conversation)
    assert await texts(store, "answer") == ["answer 2", "answer 1", "answer 0"]


async def test_reply_that_is_being_written_is_found_once_it_has_ended(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("a question", NOW, model="m")
    await keep_begun(store, begun)
    await follow(store, conversation)
    assert await texts(store, "question") == ["a question"]
    assert await store.history.behind(after=None, limit=10) == [conversation.id]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_who_deletes_a_user_is_never_given_up_for_what_is_being_made_searchable(
    store: Store, database: Database, database_url: str
):
    """As an application does in whose database we live: its deletion has come as far as the conversation."""
    conversation = await keep_conversation(store, await keep_agent(store), title="Farm")
    await follow(store, conversation)
    await database.execute(RENAME(id=conversation.id))
    async with await psycopg.AsyncConnection.connect(database_url) as host:
        await host.execute("SELECT id FROM tk_users WHERE id = %s FOR UPDATE", [ALICE])
        await host.execute("SELECT id FROM tk_conversations WHERE id = %s FOR UPDATE", [conversation.id])
        following = asyncio.create_task(follow(store, conversation))
        await until(lambda: _is_kept_waiting(database))
        await host.execute("DELETE FROM tk_users WHERE id = %s", [ALICE])
        await host.commit()
    assert await following == 1
    assert [*await database.fetch(ENTRIES())] == [(0, 0)]


async def _is_kept_waiting(database: Database) -> bool:
    return bool(await database.fetch(WAITING()))


async def test_beginning_of_the_last_word_finds_it(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    conversation = await keep_turn(store, conversation, "The lighthouse keeper", "Our organization, 灯塔")
    await follow(store, conversation)
    for query in ("lighth", "keep", "lighthouse kee", "lighth*", '"lighth"', "lighthouse:keep", "LIGHTH"):
        assert await texts(store, query) == ["The lighthouse keeper"], query
    assert await texts(store, "organiza") == await texts(store, "灯塔") == ["Our organization, 灯塔"]
    for query in (
        "li",
        "lighth keeper",
        "ighth",
        "塔灯",
        "lighthouses2",
        "lighth\0x",
        "'",
        ":*",
        "(((",
        "\\",
    ):
        assert await texts(store, query) == [], query


async def test_hits_can_be_limited_to_agents_and_a_time(store: Store):
    harbour, airport = await keep_agent(store), await keep_agent(store)
    for agent in (harbour, airport):
        conversation = await keep_conversation(store, agent, title="whales")
        await follow(store, await keep_turn(store, conversation, "whales", "none"))
    found = await store.history.search(ALICE, "whales", before=None, limit=10)
    assert len(found) == 4
    times = sorted({hit.created_at for hit in found})

    async def count(**which: Any) -> int:
        wanted = SearchFilter(**which)
        return len(await store.history.search(ALICE, "whales", before=None, limit=10, which=wanted))

    assert await count(agents=frozenset({harbour.id})) == 2
    assert await count(agents=frozenset({harbour.id, airport.id})) == 4
    assert await count(agents=frozenset[AgentId]()) == 0
    assert await count(since=times[0], until=times[-1] + 1) == 4
    assert await count(until=times[0]) == await count(since=times[-1] + 1) == 0
    assert await count(since=times[-1] + 1, agents=frozenset({harbour.id})) == 0


async def test_snippet_of_a_reply_is_text_and_that_of_a_question_as_typed(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    reply = "# Harbour\n\nThe **lighthouse** is at [the pier](https://example.org/pier).\n"
    await follow(store, await keep_turn(store, conversation, "a **lighthouse**", reply))
    hits = await store.history.search(ALICE, "lighthouse", before=None, limit=10)
    assert [hit.snippet for hit in hits] == ["Harbour\nThe lighthouse is at the pier.", "a **lighthouse**"]
    assert [hit.snippet[slice(*hit.highlights[0])] for hit in hits] == ["lighthouse", "lighthouse"]


async def test_purged_conversation_leaves_no_entry(store: Store, database: Database):
    agent = await keep_agent(store)
    kept = await keep_turn(store, await keep_conversation(store, agent), "a needle", "stays")
    gone = await keep_turn(store, await keep_conversation(store, agent, title="Farm"), "a needle", "goes")
    await follow(store, kept)
    await follow(store, gone)
    assert len(await texts(store, "needle")) == 2
    assert await store.conversations.purge(ALICE, gone.id)
    assert await texts(store, "needle") == ["a needle"]
    assert await texts(store, "farm") == []
    assert [*await database.fetch(ENTRIES())] == [(2, 1)]


async def test_very_long_message_is_found_by_its_beginning(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    words = " ".join(f"word{number}" for number in range(20_000))
    await keep_turn(store, conversation, f"beginning {words}", "违约" * 50_000)
    await follow(store, conversation)
    assert len(await texts(store, "beginning")) == 1
    assert len(await texts(store, "违约")) == 1


async def test_entries_of_one_moment_do_not_push_each_other_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    def same_moment(uuid: str) -> int:
        return 7

    monkeypatch.setattr(history_module, "entry_number", same_moment)
    agent = await keep_agent(store)
    for number in range(2):
        conversation = await keep_conversation(store, agent, title=f"lighthouse {number}")
        conversation = await keep_turn(store, conversation, f"lighthouse asked {number}", "lighthouse told")
        await store.history.follow(conversation.id, limit=10)
    found = await store.history.search(ALICE, "lighthouse", before=None, limit=10)
    assert len(found) == len({it.entry_id for it in found}) == 6
    assert len({it.message_id for it in found}) == 5


async def test_word_of_any_length_is_made_searchable_and_highlighted(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    await keep_turn(store, conversation, "zebra " + "a" * 200_000 + "ational", "\u0301\u0323" * 100_000)
    await follow(store, conversation)
    (hit,) = await store.history.search(ALICE, "zebras", before=None, limit=10)
    assert list(hit.highlights) == [(0, 5)]


async def test_search_highlights_a_bounded_amount_of_text(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(history_module, "MOST_HIGHLIGHTED", 30_000)
    conversation = await keep_conversation(store, await keep_agent(store))
    late = "word " * 3_000 + "zebra"
    for number in range(4):
        conversation = await keep_turn(store, conversation, late, f"zebra {number}")
    await follow(store, conversation)
    looked_at = list[str]()

    async def noting(text: str, query: Query, within: int) -> list[tuple[int, int]]:
        looked_at.append(text)
        return await first_places(text, query, within)

    monkeypatch.setattr(history_module, "first_places", noting)
    hits = await store.history.search(ALICE, "zebra", before=None, limit=20)
    assert len(hits) == 8
    assert sum(map(len, looked_at)) <= 30_000
    # The newest are highlighted; the others show how they begin.
    assert [bool(hit.highlights) for hit in hits[:2]] == [True, True]
    assert hits[-1].snippet == late[: len(hits[-1].snippet)]


async def test_message_that_ends_while_texts_are_read_is_found_by_the_next_step(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    conversation = await keep_conversation(store, await keep_agent(store), title="Farm")
    conversation = await keep_turn(store, conversation, "early", "early")

    async def meanwhile(text: str) -> list[str]:
        monkeypatch.setattr(history_module, "terms_of", terms_of)
        await keep_turn(store, conversation, "late zebra", "late")
        return await terms_of(text)

    monkeypatch.setattr(history_module, "terms_of", meanwhile)
    assert await store.history.follow(conversation.id, limit=10)
    assert await texts(store, "zebra") == []
    assert not await store.history.follow(conversation.id, limit=10)
    assert await texts(store, "zebra") == ["late zebra"]
