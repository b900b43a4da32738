"""Every list over HTTP: how much, from where, and cursors that somebody has touched."""

import string
from dataclasses import dataclass

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, items, main_chat, new_agent, new_conversation, refusal, stored
from tests.http.document import operations
from tests.making import (
    NOW,
    keep_briefing,
    keep_document,
    keep_feedback,
    keep_memory,
    keep_turn,
    make_compaction,
    opened,
)
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.domain.turn import Lease
from threadkeep.domain.user import User
from threadkeep.handling.cursors import Cursors

ALPHABET = string.ascii_letters + string.digits + "-_"
# A search gives nothing without a question, and a share needs its token; they have tests of their own.
ELSEWHERE = {
    "/api/search",
    "/api/shares/{share}",
    "/api/turns/{turn_id}/steps",
    "/api/admin/turns/{turn_id}/steps",
}
LISTS = [
    it for it in operations()
    if it.method == "GET" and "cursor" in it.query_names and it.path not in ELSEWHERE
]  # fmt: skip


@dataclass
class Lists:
    """Somebody who has at least three things in every list."""

    client: httpx.AsyncClient
    agent: Json
    conversation: Json

    @property
    def paths(self) -> dict[str, str]:
        """Every list, by its place in the document."""
        ids = {"agent_id": self.agent["id"], "conversation_id": self.conversation["id"]}
        return {it.path: it.url(**ids) for it in LISTS}

    async def cursor(self, path: str, **query: str) -> str:
        cursor = (await self.client.get(path, params={"limit": 1, **query})).json()["nextCursor"]
        assert cursor
        return cursor


@pytest.fixture
async def lists(api: Api) -> Lists:
    return await make_lists(api, "alice")


async def make_lists(api: Api, user: str) -> Lists:
    client = api.as_user(user, admin=True)
    agent, *_ = [await new_agent(client) for _ in range(3)]
    conversation, *_ = [await new_conversation(client, agent["id"]) for _ in range(3)]
    for talk in (conversation, await main_chat(client)):
        await keep_turn(api.store, await keep_turn(api.store, await stored(api, talk), "1", "2"), "3", "4")
    runs = [await run_with_tool(client, conversation["id"], run) for run in ("one", "two", "three")]
    assert all(response.is_success for response in runs)
    for other in ("bob", "carol"):
        await api.store.users.meet(UserId(other), NOW)
    for seq in (1, 2, 3):
        await api.store.compactions.add(make_compaction(conversation["id"], seq, seq))
        await keep_document(api.store, AgentId(agent["id"]), "text")
        await keep_briefing(api.store, agent["id"], UserId(user))
        await keep_memory(api.store, AgentId(agent["id"]), f"Likes tea no. {seq}.", UserId(user))
        rated = await stored(api, await new_conversation(client, agent["id"]))
        await keep_feedback(api.store, await keep_turn(api.store, rated, "Why?", "Because."))
        await keep_running(api, await stored(api, await new_conversation(client, agent["id"])))
    return Lists(client, agent, conversation)


async def keep_running(api: Api, conversation: Conversation) -> None:
    """A turn that runs as long as the test does: the server takes it for its own."""
    node_id = (await api.app.services()).running_turns.node_id
    begun = conversation.begin_turn("Why?", NOW, model="scripted")
    await api.store.turns.begin(opened(begun, Lease(node_id, 1, 10**9)))


async def run_with_tool(client: httpx.AsyncClient, conversation_id: str, run: str) -> httpx.Response:
    """A turn in which a tool was used."""
    events = [
        {"id": "1", "type": "ExecutionStarted", "at": 1, "input": "Why?"},
        {"id": "2", "type": "NodeCompleted", "at": 2, "node": "look", "tools": [{"toolName": "search"}]},
        {"id": "3", "type": "ExecutionCompleted", "at": 3, "output": "Because."},
    ]
    body = {"events": [{**event, "runId": run} for event in events]}
    return await client.post(f"/api/conversations/{conversation_id}/executions", json=body)


def test_these_are_the_lists():
    assert {it.path for it in LISTS} == {
        "/api/agents",
        "/api/domains",
        "/api/agents/{agent_id}/conversations",
        "/api/domains/{agent_id}/conversations",
        "/api/agents/{agent_id}/documents",
        "/api/domains/{agent_id}/documents",
        "/api/agents/{agent_id}/feedback",
        "/api/domains/{agent_id}/feedback",
        "/api/agents/{agent_id}/memories",
        "/api/domains/{agent_id}/memories",
        "/api/conversations",
        "/api/conversations/{conversation_id}/messages",
        "/api/conversations/{conversation_id}/compactions",
        "/api/briefings",
        "/api/conversations/{conversation_id}/tool-results",
        "/api/tool-results",
        "/api/chat/messages",
        "/api/admin/audit",
        "/api/admin/turns",
        "/api/admin/users",
    }


async def test_every_list_gives_each_item_once_by_cursor_and_by_offset(lists: Lists):
    for path in lists.paths.values():
        whole = (await lists.client.get(path, params={"limit": 200})).json()
        assert whole.keys() == {"items", "nextCursor"}
        assert whole["nextCursor"] is None
        assert len(whole["items"]) >= 3
        for limit in (1, 2, 3):
            assert await items(lists.client, path, limit=limit) == whole["items"], path
        for offset in range(len(whole["items"]) + 2):
            page = (await lists.client.get(path, params={"limit": 2, "offset": offset})).json()
            assert page["items"] == whole["items"][offset : offset + 2], path
            assert (page["nextCursor"] is None) == (offset + 2 >= len(whole["items"]))


async def test_offset_page_can_be_continued_by_its_cursor(lists: Lists):
    for path in lists.paths.values():
        whole = (await lists.client.get(path)).json()["items"]
        cursor = (await lists.client.get(path, params={"limit": 1, "offset": 1})).json()["nextCursor"]
        assert await items(lists.client, path, cursor=cursor) == whole[2:], path


async def test_twenty_come_where_no_limit_is_given(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    for _ in range(21):
        await new_conversation(alice, agent["id"])
    page = (await alice.get("/api/conversations")).json()
    assert len(page["items"]) == 20
    assert len(await items(alice, "/api/conversations", cursor=page["nextCursor"])) == 1


@ONLY_SQLITE
async def test_malformed_query_is_refused_with_the_parameter_named(lists: Lists):
    huge = "9" * 5000
    bad = {
        "limit": ["0", "201", "10000", "-1", "abc", "", "1.5", "１", "0x10", "null", huge],
        "offset": ["-1", "abc", "", "1000000001", "1.5", huge],
        "cursor": ["", "null", "x", "=", "%00", "%ff", "é", "🙂", " ", "a" * 5000, "../../etc/passwd"],
        "foo": ["1", ""],
        "Limit": ["5"],
        "%00": ["1"],
    }
    for path in lists.paths.values():
        for name, values in bad.items():
            for value in values:
                response = await lists.client.get(f"{path}?{name}={value}")
                refusal(response, 422, "INVALID_REQUEST", name if name != "%00" else None)
        both = await lists.client.get(path, params={"cursor": await lists.cursor(path), "offset": 0})
        refusal(both, 422, "INVALID_REQUEST", "offset")


@ONLY_SQLITE
async def test_cursor_with_any_character_changed_is_refused(lists: Lists):
    for path in lists.paths.values():
        cursor = await lists.cursor(path)
        # One change at every place, and every change at the last one, where base64 has bits to spare.
        changed = {
            f"{cursor[:at]}{ALPHABET[(ALPHABET.index(cursor[at]) + 1) % 64]}{cursor[at + 1 :]}"
            for at in range(len(cursor))
        }
        changed |= {cursor[:-1] + letter for letter in ALPHABET} - {cursor}
        for tampered in changed:
            response = await lists.client.get(path, params={"cursor": tampered})
            refusal(response, 422, "INVALID_REQUEST", "cursor")


@ONLY_SQLITE
async def test_cursor_cut_or_padded_is_refused(lists: Lists):
    for path in lists.paths.values():
        cursor = await lists.cursor(path)
        cut = [cursor[:length] for length in range(len(cursor))]
        padded = [f"{cursor}{more}" for more in ("A", "AA", "AAAA", "=", "==", "\n", " ")]
        for tampered in (*cut, cursor[1:], *padded, cursor * 2, cursor.swapcase(), cursor[::-1]):
            response = await lists.client.get(path, params={"cursor": tampered})
            refusal(response, 422, "INVALID_REQUEST", "cursor")


@ONLY_SQLITE
async def test_cursor_of_another_list_is_refused(lists: Lists):
    cursors = {path: await lists.cursor(path) for path in lists.paths.values()}
    same = {path: path.replace("/api/domains", "/api/agents") for path in cursors}
    for path in cursors:
        for origin, cursor in cursors.items():
            response = await lists.client.get(path, params={"cursor": cursor})
            if same[path] == same[origin]:
                assert response.status_code == 200
            else:
                refusal(response, 422, "INVALID_REQUEST", "cursor")


@ONLY_SQLITE
async def test_cursor_with_another_filter_is_refused(lists: Lists):
    other = await new_agent(lists.client)
    await new_conversation(lists.client, other["id"])
    by_agent = f"/api/agents/{lists.agent['id']}/conversations"
    messages = f"/api/conversations/{lists.conversation['id']}/messages"
    feedback = f"/api/agents/{lists.agent['id']}/feedback"
    cases: list[tuple[str, Json, str, Json]] = [
        ("/api/conversations", {}, "/api/conversations", {"status": "active"}),
        ("/api/conversations", {"status": "active"}, "/api/conversations", {"status": "archived"}),
        (by_agent, {}, by_agent, {"status": "active"}),
        (by_agent, {}, f"/api/agents/{other['id']}/conversations", {}),
        (messages, {"order": "desc"}, messages, {"order": "asc"}),
        (messages, {"order": "asc"}, messages, {"order": "desc"}),
        (messages, {}, messages, {"include": "overwritten"}),
        (messages, {"include": "overwritten"}, messages, {}),
        (feedback, {}, feedback, {"rating": "up"}),
        (feedback, {"rating": "up"}, feedback, {"rating": "down"}),
        (feedback, {}, feedback, {"model": "scripted"}),
        (feedback, {}, feedback, {"from": "2020-01-01T00:00:00Z"}),
        (feedback, {}, feedback, {"to": "2040-01-01T00:00:00Z"}),
        (feedback, {}, f"/api/agents/{other['id']}/feedback", {}),
    ]
    for path, query, other_path, other_query in cases:
        cursor = await lists.cursor(path, **query)
        response = await lists.client.get(other_path, params={**other_query, "cursor": cursor})
        refusal(response, 422, "INVALID_REQUEST", "cursor")


@ONLY_SQLITE
async def test_cursor_of_another_user_is_refused(api: Api, lists: Lists):
    other = await make_lists(api, "mallory")
    for place, path in lists.paths.items():
        cursor = await lists.cursor(path)
        refusal(
            await other.client.get(other.paths[place], params={"cursor": cursor}),
            *(422, "INVALID_REQUEST", "cursor"),
        )


async def test_cursor_of_another_users_conversation_tells_nothing_of_it(api: Api, lists: Lists):
    cursor = await lists.cursor(f"/api/conversations/{lists.conversation['id']}/messages")
    mallory = api.as_user("mallory")
    for id_ in (lists.conversation["id"], new_uuid(), "no-uuid"):
        response = await mallory.get(f"/api/conversations/{id_}/messages", params={"cursor": cursor})
        refusal(response, 422, "INVALID_REQUEST", "cursor")
        refusal(await mallory.get(f"/api/conversations/{id_}/messages"), 404, "CONVERSATION_NOT_FOUND")


ALICE = User(UserId("alice"))
CURSORS = Cursors(b"k" * 32)


@given(st.integers() | st.text() | st.tuples(st.integers(), st.text()), st.text(), st.text(min_size=1))
def test_cursor_gives_its_position_back_for_its_list_and_user_only(
    position: object, listing: str, stranger: str
):
    kind = type(position) if not isinstance(position, tuple) else tuple[int, str]
    cursor = CURSORS.write(ALICE, listing, position)
    assert CURSORS.read(ALICE, listing, cursor, kind) == position
    for reader, user, where in (
        (CURSORS, User(UserId(f"alice{stranger}")), listing),
        (CURSORS, ALICE, listing + stranger),
        (Cursors(b"l" * 32), ALICE, listing),
    ):
        with pytest.raises(InvalidRequest):
            reader.read(user, where, cursor, kind)


def test_cursor_of_another_kind_of_position_is_refused():
    for position, kind in ((1, str), ("x", int), (None, int), ([1, "x"], int), ("x", tuple[int, str])):
        cursor = CURSORS.write(ALICE, "list", position)
        with pytest.raises(InvalidRequest):
            CURSORS.read(ALICE, "list", cursor, kind)


@given(st.text())
def test_made_up_cursor_is_refused(cursor: str):
    with pytest.raises(InvalidRequest):
        CURSORS.read(ALICE, "list", cursor, int)
