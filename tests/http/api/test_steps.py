"""The steps of an agent in code: for its user, with results for its author, without content for admins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import httpx
import msgspec
import pytest
from msgspec import Raw

from tests.conftest import Api
from tests.http.calls import Json, new_agent, new_conversation, refusal, stored
from tests.making import NOW, keep_begun, opening_of
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.events import (
    ApprovalRequest,
    Done,
    EventBody,
    LogChunk,
    StepChanged,
    Text,
    TurnEvent,
)
from threadkeep.domain.ids import ConversationId, TurnId, new_uuid
from threadkeep.domain.message import MessageStatus, Usage
from threadkeep.domain.turn import TurnCode
from threadkeep.engine.fold import Folding
from threadkeep.engine.journal import JOURNAL_ENTRIES, CodeStarted, JournalEntry, StepBegun, StepEnded
from threadkeep.log.format import LogEntry, encode_chunk
from threadkeep.services.approvals import request_id_of
from threadkeep.wire.programs import NOTHING, Effect, ProgramError

SECRET_RESULT = "what-only-the-author-reads"
SECRET_TITLE = "what-only-its-user-reads"


def step(
    id_: str, name: str, status: str = "ok", *, effect: Effect = "read"
) -> Sequence[EventBody | JournalEntry]:
    """A step from its begin to its end."""
    key = f"/{name}/h/{id_}"
    title = f"{SECRET_TITLE} {id_}"
    error = ProgramError("shop.Gone", SECRET_RESULT) if status == "error" else None
    value = Raw(msgspec.json.encode(SECRET_RESULT)) if error is None else NOTHING
    return (
        StepChanged(id_, name, "step", "running", title=title),
        StepBegun(key, id_, name, "step", effect),
        StepEnded(
            key,
            "error" if error else "ok",
            NOW,
            value=value,
            error=error,
            duration_ms=7,
            size=len(bytes(value)),
        ),
        StepChanged(id_, name, "step", "error" if error else "ok", title=title, duration_ms=7),
    )


@dataclass(frozen=True, slots=True)
class Turned:
    """A turn of a program, as kept in the store."""

    begun: BegunTurn
    api: Api

    @property
    def id(self) -> TurnId:
        return self.begun.turn.id

    async def end(self, *written: EventBody | JournalEntry) -> None:
        """Writes the rest of its log and journal, and ends it."""
        reply = self.begun.assistant_message
        done = Done("COMPLETED", reply.id, Usage(0, 0), "end_turn")
        chunk = chunk_of(self.id, (*written, Text("Done."), done))
        folding = Folding()
        for entry in entries_of(self.id, (*written, Text("Done."), done)):
            if isinstance(entry, TurnEvent):
                folding.add(entry)
        finished = reply.finish(MessageStatus.COMPLETED, tuple(folding.parts), NOW + 1, usage=Usage(0, 0))
        ended = self.begun.conversation.end_turn(self.begun.turn, finished, NOW + 1)
        await self.api.store.turns.end(ended, chunk, 1)

    async def steps(self, client: httpx.AsyncClient, **query: str) -> Json:
        response = await client.get(f"/api/turns/{self.id}/steps", params=query)
        assert response.status_code == 200, response.text
        return response.json()


def entries_of(turn_id: TurnId, bodies: Sequence[EventBody | JournalEntry]) -> list[LogEntry]:
    entries: list[LogEntry] = []
    seq = 1
    for body in bodies:
        if isinstance(body, JOURNAL_ENTRIES):
            entries.append(body)
        else:
            seq += 1
            entries.append(TurnEvent(turn_id, seq, NOW + seq, body))
    return entries


def chunk_of(turn_id: TurnId, bodies: Sequence[EventBody | JournalEntry]) -> LogChunk:
    entries = entries_of(turn_id, bodies)
    last = max(it.seq for it in entries if isinstance(it, TurnEvent))
    return LogChunk(turn_id, 2, last, encode_chunk(entries))


async def turned(api: Api, client: httpx.AsyncClient, agent_id: str | None = None) -> Turned:
    """A turn that runs."""
    conversation = await stored(api, await new_conversation(client, agent_id))
    begun = conversation.begin_turn("Refund order 7.", NOW)
    begun = replace(begun, turn=replace(begun.turn, code=TurnCode("orders", 3)))
    await keep_begun(api.store, begun)
    assert opening_of(begun).last_seq == 1
    return Turned(begun, api)


CODE = CodeStarted("orders", 3)


async def test_user_sees_steps_in_order_and_their_author_the_results(api: Api):
    alice = api.as_user("alice")
    turn = await turned(api, alice)
    hidden = step("3", "look")[1:3]
    await turn.end(CODE, *step("1", "find"), *step("2", "refund", "error", effect="write"), *hidden)
    shown = await turn.steps(alice)
    assert shown["code"] == {"key": "orders", "version": 3}
    assert [(it["stepId"], it["name"], it["status"]) for it in shown["items"]] == [
        ("1", "find", "ok"), ("2", "refund", "error"),
    ]  # fmt: skip
    first = shown["items"][0]
    assert first == {
        "stepId": "1", "name": "find", "title": f"{SECRET_TITLE} 1", "kind": "step", "status": "ok",
        "effect": "read", "attempt": 1, "startedAt": first["startedAt"], "durationMs": 7,
        "bytes": len(SECRET_RESULT) + 2,
    }  # fmt: skip
    # The agent is hers: so are its errors, and if she asks, results and what the code hides.
    assert shown["items"][1]["error"] == {"type": "shop.Gone", "message": SECRET_RESULT}
    whole = await turn.steps(alice, values="true")
    assert [it.get("value") for it in whole["items"]] == [SECRET_RESULT, None, SECRET_RESULT]
    assert [it.get("hidden", False) for it in whole["items"]] == [False, False, True]


async def test_user_of_somebody_elses_agent_gets_no_results_errors_and_hidden_steps(api: Api):
    alice, bob = api.as_user("alice"), api.as_user("bob")
    agent = await new_agent(alice, visibility="public")
    turn = await turned(api, bob, agent["id"])
    await turn.end(CODE, *step("1", "find"), *step("2", "refund", "error"), *step("3", "look")[1:3])
    shown = await turn.steps(bob, values="true")
    assert SECRET_RESULT not in str(shown)
    assert [it["title"] for it in shown["items"]] == [f"{SECRET_TITLE} 1", f"{SECRET_TITLE} 2"]
    # Its author isn't the turn's user.
    refusal(await alice.get(f"/api/turns/{turn.id}/steps"), 404, "TURN_NOT_FOUND")
    refusal(await bob.get(f"/api/admin/turns/{turn.id}/steps"), 403, "FORBIDDEN")


async def test_admin_sees_the_steps_of_a_running_turn_without_content(api: Api):
    alice, root = api.as_user("alice"), api.as_user("root", admin=True)
    turn = await turned(api, alice)
    waiting = StepBegun("/ask/h/1", "2", "ask", "question", "read")
    asked = ApprovalRequest(
        request_id_of(turn.begun.turn, "ask//ask/h/1"), ApprovalKind.QUESTION, SECRET_TITLE, NOW
    )
    await api.store.log.append([(chunk_of(turn.id, (CODE, *step("1", "find"), waiting, asked)), 1)])
    response = await root.get(f"/api/admin/turns/{turn.id.upper()}/steps")
    assert response.status_code == 200
    assert SECRET_RESULT not in response.text and SECRET_TITLE not in response.text
    shown = response.json()
    assert [(it["name"], it["kind"], it["status"]) for it in shown["items"]] == [
        ("find", "step", "ok"), ("ask", "question", "running"),
    ]  # fmt: skip
    assert (await turn.steps(alice))["items"][1]["title"] == SECRET_TITLE
    refusal(await root.get(f"/api/admin/turns/{new_uuid()}/steps"), 404, "TURN_NOT_FOUND")
    refusal(await root.get("/api/admin/turns/7/steps"), 404, "TURN_NOT_FOUND")


async def test_steps_come_page_by_page(api: Api):
    alice = api.as_user("alice")
    turn = await turned(api, alice)
    many = [entry for number in range(1, 8) for entry in step(str(number), f"s{number}")]
    await turn.end(CODE, *many)
    page = await turn.steps(alice, limit="3")
    assert [it["name"] for it in page["items"]] == ["s1", "s2", "s3"]
    page = await turn.steps(alice, limit="3", cursor=page["nextCursor"])
    assert [it["name"] for it in page["items"]] == ["s4", "s5", "s6"]
    assert (await turn.steps(alice, limit="1", offset="6"))["nextCursor"] is None
    assert len((await turn.steps(alice))["items"]) == 7
    other = await turned(api, alice)
    await other.end(CODE)
    wrong = await alice.get(f"/api/turns/{other.id}/steps", params={"cursor": page["nextCursor"]})
    refusal(wrong, 422, "INVALID_REQUEST", "cursor")


async def test_large_result_comes_from_where_it_is_kept(api: Api):
    alice = api.as_user("alice")
    turn = await turned(api, alice)
    ref, content = new_uuid(), msgspec.json.encode([SECRET_RESULT] * 1000)
    conversation_id = ConversationId(turn.begun.conversation.id)
    await api.store.states.add_value(TurnId(turn.id), conversation_id, ref, content)
    begun, ended = (
        StepBegun("/find/h/1", "1", "find", "step", "read"),
        StepEnded("/find/h/1", "ok", NOW, ref=ref),
    )
    await turn.end(CODE, StepChanged("1", "find", "step", "running"), begun, ended)
    shown = await turn.steps(alice, values="true")
    assert shown["items"][0]["value"] == [SECRET_RESULT] * 1000


@pytest.mark.parametrize("values", ["true", "false"])
async def test_steps_are_listed_from_the_reply_once_the_log_is_trimmed(api: Api, values: str):
    alice = api.as_user("alice")
    turn = await turned(api, alice)
    await turn.end(CODE, *step("1", "find"), *step("2", "refund", "error"))
    assert await api.store.log.trim(NOW + 2) > 0
    shown = await turn.steps(alice, values=values)
    assert (shown["code"], SECRET_RESULT in str(shown)) == ({"key": "orders", "version": 3}, False)
    assert [(it["name"], it["status"], it["effect"], it["bytes"]) for it in shown["items"]] == [
        ("find", "ok", None, None), ("refund", "error", None, None),
    ]  # fmt: skip


async def test_steps_are_listed_from_the_reply_if_the_journal_is_damaged(
    api: Api, caplog: pytest.LogCaptureFixture
):
    alice = api.as_user("alice")
    turn = await turned(api, alice)
    damaged = StepEnded("/find/h/9", "ok", NOW, value=Raw(b"{"))
    await turn.end(CODE, *step("1", "find"), damaged)
    assert [it["name"] for it in (await turn.steps(alice))["items"]] == ["find"]
    assert "couldn't read the steps" in caplog.text
    caplog.clear()
