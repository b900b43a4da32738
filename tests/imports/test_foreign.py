"""Exports of ChatGPT and Claude become conversations like our own."""

import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.files.making import encode, photograph, png_bomb
from tests.imports.foreign import DAY, branched, chatgpt, claude, said
from tests.imports.making import kept_of, opened_store
from tests.making import ALICE, BOB
from threadkeep.cli.moving import import_file
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


@ONLY_SQLITE
async def test_files_of_chatgpt_that_the_archive_has_are_files_of_messages(
    here: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def pointer(asset: str) -> dict[str, str]:
        return {"content_type": "image_asset_pointer", "asset_pointer": asset}

    house = encode(photograph(64, 48), "PNG")
    attached = {"attachments": [{"id": "file-1", "name": "house.png"}, {"id": "file-4", "name": "lease.md"}]}
    drawn = {"author": {"role": "tool", "name": "dalle.text2im"}}
    conversation = chatgpt(
        {
            "q1": (None, said("user", pointer("file-service://file-1"), "This?", metadata=attached)),
            "call": ("q1", said("assistant", "A house", at=DAY + 1, recipient="dalle.text2im")),
            "drawn": ("call", said("tool", pointer("sediment://file_2"), at=DAY + 2) | drawn),
            "a1": ("drawn", said("assistant", "Here.", at=DAY + 3)),
            "q2": ("a1", said("user", pointer("sediment://file_3"), at=DAY + 4)),
            "a2": ("q2", said("assistant", "Hm.", pointer("file-service://file-6"), "Gone.", at=DAY + 5)),
            "q3": ("a2", said("user", pointer("file-service://file-5"), "And?", at=DAY + 6)),
        },
        "q3",
    )
    archived = tmp_path / "chatgpt.zip"
    with zipfile.ZipFile(archived, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([conversation]))
        archive.writestr("file-1-IMG_1.png", house)
        archive.writestr("dalle-generations/file_2-a-house.png", house)
        archive.writestr("../../../file_3-evil.png", house)
        archive.writestr("file-4-lease.md", "# Lease")
        archive.writestr("file-5-bomb.png", png_bomb())
    assert await import_file(here, archived, ALICE, None) == 0
    (kept,) = await imported(here)
    q1, a1, q2, a2, q3 = kept["messages"]
    assert [part.type for part in q1.parts] == ["file", "file", "text"]
    picture, lease = q1.files
    assert (picture.file_name, picture.media_type, picture.width) == ("house.png", "image/png", 64)
    assert kept["contents"][picture.file_id] == house
    assert kept["contents"][picture.refs["preview"]].startswith(b"RIFF")
    assert kept["contents"][lease.file_id] == b"# Lease"
    assert [part.type for part in a1.parts] == ["tool_call", "file", "text"]
    assert a1.parts[1].file_name == "a-house.png"
    assert [(part.type, part.file_name) for part in q2.parts] == [("file", "evil.png")]
    assert (a2.content, q3.content) == ("Hm.\n\n[image]\n\nGone.", "[image]\n\nAnd?")
    async with opened_store(here) as store:
        assert await store.files.visible(ALICE, [picture.file_id])
    told = capsys.readouterr().out
    assert "Added: 1 conversation, 5 messages, 4 files." in told
    assert "lists a file by name only: bomb.png: This image is larger than" in told
    assert await import_file(here, archived, ALICE, None) == 0
    assert "1 already present" in capsys.readouterr().out
    assert not list((here.data / "uploads").iterdir())


@ONLY_SQLITE
async def test_damaged_and_endless_files_of_an_archive_are_named_only(
    here: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("threadkeep.imports.files.MOST_FILE_BYTES", 1_000_000)
    pointers = [
        {"content_type": "image_asset_pointer", "asset_pointer": f"sediment://file_{n}"} for n in range(2)
    ]
    conversation = chatgpt({"q1": (None, said("user", *pointers, "These?"))}, "q1")
    file = tmp_path / "chatgpt.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([conversation]))
        archive.writestr("file_0-zeros.txt", b"0" * 50_000_000)
        archive.writestr("file_1-cut.txt", b"some text that was cut off", zipfile.ZIP_STORED)
    file.write_bytes(file.read_bytes().replace(b"some text", b"SOME TEXT"))
    assert await import_file(here, file, ALICE, None) == 0
    (kept,) = await imported(here)
    assert [message.content for message in kept["messages"]] == ["[image]\n\n[image]\n\nThese?"]
    told = capsys.readouterr().out
    assert "zeros.txt is larger than 1,000,000 bytes" in told
    assert "cut.txt is damaged" in told


async def test_claude_comes_with_thoughts_tools_and_attached_texts(here: Settings, tmp_path: Path):
    file = write(tmp_path / "conversations.json", claude())
    assert await import_file(here, file, ALICE, "Claude") == 0
    (kept,) = await imported(here)
    asked, reply, thanks = kept["messages"]
    assert asked.content == "How much?\n\n[photo.png]"
    (lease,) = asked.files
    assert (lease.file_name, lease.media_type) == ("lease.txt", "text/plain")
    assert kept["contents"][lease.file_id] == b"Three rents."
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
