"""Exports of ChatGPT and Claude become conversations like our own."""

import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Api
from tests.exchange.foreign import DAY, branched, chatgpt, claude, said
from tests.exchange.making import kept_of, opened_store
from tests.making import ALICE, BOB
from threadkeep.cli.exchange import import_file
from threadkeep.domain.ids import UserId
from threadkeep.domain.message import Message
from threadkeep.settings import Settings


def told(messages: list[Message]) -> list[tuple[str, object, str]]:
    return [(message.role, message.content, message.shown_status) for message in messages]


def write(file: Path, *conversations: Any) -> Path:
    file.write_text(json.dumps(conversations), encoding="utf-8")
    return file


async def imported(settings: Settings, user: UserId = ALICE) -> list[dict[str, Any]]:
    async with opened_store(settings) as store:
        kept = await kept_of(store, user)
    return [kept[id_] for id_ in kept["order"]]


async def test_branches_of_chatgpt_are_branches_of_one_conversation(here: Settings, tmp_path: Path):
    file = tmp_path / "chatgpt.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("conversations.json", json.dumps([branched()]))
        archive.writestr("user.json", "{}")
    assert await import_file(here, file, ALICE, None) == 0
    (current,) = await imported(here)
    messages = current["messages"]
    assert told(messages) == [
        ("user", "What is a lease?", "COMPLETED"),
        ("assistant", "No idea.", "OVERWRITTEN"),
        ("assistant", "A contract to rent.", "COMPLETED"),
        ("user", "And the deposit?", "OVERWRITTEN"),
        ("assistant", "Three rents.", "OVERWRITTEN"),
        ("user", "[image]\n\nAnd this one?", "COMPLETED"),
        ("assistant", "A house.", "COMPLETED"),
    ]
    seqs = {message.id: message.seq for message in messages}
    assert [seqs.get(message.parent_id) for message in messages] == [None, 1, 1, 3, 4, 3, 6]
    reply = current["messages"][2]
    assert (reply.model, reply.created_at) == ("gpt-4o", (DAY + 6) * 1000)
    assert [(it.kind, it.detail) for it in reply.thought_process] == [("thought", "Law\n\nHm."), ("tool", "")]
    assert [(it.tool_name, it.arguments, it.result) for it in reply.tool_calls] == [
        ("search", {"q": "lease"}, "A contract.")
    ]
    assert [(it.turn.origin, it.turn.status) for it in current["turns"]] == [("recorded", "COMPLETED")] * 4
    conversation = current["conversation"]
    assert (conversation.title, conversation.message_count, conversation.last_seq) == ("Leases", 4, 7)
    assert conversation.tip_id == messages[-1].id
    assert (conversation.created_at, conversation.updated_at) == (DAY * 1000, (DAY + 100) * 1000)


async def test_claude_comes_with_thoughts_tools_and_attached_texts(here: Settings, tmp_path: Path):
    file = write(tmp_path / "conversations.json", claude())
    assert await import_file(here, file, ALICE, "Claude") == 0
    (kept,) = await imported(here)
    asked, reply, thanks = kept["messages"]
    assert asked.content == "How much?\n\n[lease.txt]\nThree rents.\n\n[photo.png]"
    assert (reply.content, reply.thought_process[0].detail) == ("Three rents, says the lease.", "It says so.")
    (call,) = reply.tool_calls
    assert (call.tool_name, call.arguments, call.result) == ("reader", {"file": "lease.txt"}, None)
    assert json.loads(kept["contents"][call.refs["result"]]) == "x" * 20_000
    assert (thanks.content, thanks.turn_id) == ("Thanks!", None)
    async with opened_store(here) as store:
        agent = await store.agents.get(kept["conversation"].agent_id)
    assert agent and (agent.name, agent.owner_id) == ("Claude", ALICE)


async def test_second_run_adds_nothing_also_after_a_stop_halfway(here: Settings, tmp_path: Path):
    many = [
        chatgpt({"q": (None, said("user", f"Question {n}?"))}, "q", id=f"c{n}", conversation_id=f"c{n}")
        for n in range(9)
    ]
    await import_file(here, write(tmp_path / "some.json", *many[:4]), ALICE, None)
    await import_file(here, write(tmp_path / "all.json", *many), ALICE, None)
    before = await imported(here)
    assert len(before) == 9
    await import_file(here, tmp_path / "all.json", ALICE, None)
    assert await imported(here) == before
    await import_file(here, tmp_path / "all.json", BOB, None)
    assert len(await imported(here, BOB)) == 9
    assert await imported(here) == before


async def test_imported_messages_are_listed_by_their_times_found_and_gone_on_from(
    api: Api, alice: httpx.AsyncClient, database_url: str, tmp_path: Path
):
    """On PostgreSQL beside a running server; on SQLite the folder is locked, which is told."""
    del api
    settings = Settings.load({}, data=tmp_path / "data", database_url=database_url)
    older = claude(uuid="older", updated_at="2020-01-01T00:00:00Z", name="Older")
    file = write(tmp_path / "conversations.json", older, branched())
    if database_url.startswith("sqlite"):
        with pytest.raises(Exception, match="in use by another Threadkeep"):
            await import_file(settings, file, ALICE, None)
        return
    assert await import_file(settings, file, ALICE, None) == 0
    listed = (await alice.get("/api/conversations")).json()["items"]
    assert [it["title"] for it in listed] == ["Leases", "Older"]
    found = (await alice.get("/api/search", params={"q": "contract rent"})).json()["items"]
    current = listed[0]
    assert {it["conversationId"] for it in found} == {current["id"]}
    shown = (await alice.get(f"/api/conversations/{current['id']}/messages")).json()["items"]
    assert [it["role"] for it in shown] == ["user", "assistant"] * 2
    assert shown[1]["siblings"]["index"] == shown[2]["siblings"]["index"] == 1
    edited = (await alice.get("/api/search", params={"q": "deposit"})).json()["items"][0]
    assert not edited["onPath"]
    body = {"messageId": edited["messageId"], "tip": shown[-1]["id"]}
    assert (await alice.post(f"/api/conversations/{current['id']}/path", json=body)).status_code == 200
    chosen = (await alice.get(f"/api/conversations/{current['id']}/messages")).json()["items"]
    assert chosen[-1]["content"] == "Three rents."
    turn = (await alice.get(f"/api/turns/{shown[1]['turnId']}")).json()
    assert turn["status"] == "COMPLETED"
