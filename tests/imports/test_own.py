"""What is exported and brought in again is the same, message by message; nothing comes twice."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.imports.making import (
    BOBS_PROMPT,
    RULES,
    SECRET_OF_SERVER,
    begin_without_end,
    keep_everything,
    kept_of,
    opened_store,
)
from tests.making import (
    ALICE,
    NOW,
    keep_agent,
    keep_begun,
    keep_conversation,
    keep_ended,
    keep_file,
    keep_turn,
    said,
)
from threadkeep.bootstrap import opened_jobs_and_store
from threadkeep.cli.moving import export_user, import_file
from threadkeep.domain.conversation import BegunTurn, Conversation, ConversationFilter
from threadkeep.domain.errors import InvalidRequest, StorageRefused, StorageUnavailable, UserNotFound
from threadkeep.domain.ids import ConversationId, DocumentId, UserId, new_uuid
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.engine.large_values import MOST_FILE_BYTES
from threadkeep.exports.records import payload_name
from threadkeep.exports.writing import LINES
from threadkeep.imports.files import MOST_PAYLOAD_BYTES
from threadkeep.imports.reading import reading
from threadkeep.jobs.documents import READ_JOB
from threadkeep.settings import Settings

CARLA = UserId("carla")


async def export_everything(here: Settings, file: Path) -> dict[str, Any]:
    async with opened_store(here) as store:
        await keep_everything(store, here)
        kept = await kept_of(store, ALICE)
    assert await export_user(here, ALICE, file) == 0
    return kept


async def read(settings: Settings, user: UserId) -> dict[str, Any]:
    async with opened_store(settings) as store:
        return await kept_of(store, user)


async def test_everything_comes_back_as_it_was(here: Settings, there: Settings, tmp_path: Path):
    file = tmp_path / "alice.zip"
    before = await export_everything(here, file)
    assert await import_file(there, file, ALICE, None) == 0
    after = await read(there, ALICE)
    assert len(before["order"]) == 3
    assert len(before["briefings"]) == len(before["agents"]) == 1
    # Bob's agent and the default one are others there: only whom a conversation is with differs.
    own = before["agents"][0].id
    for id_ in before["order"]:
        theirs, ours = before[id_]["conversation"], after[id_]["conversation"]
        assert theirs.agent_id == ours.agent_id or theirs.agent_id != own
        after[id_]["conversation"] = replace(ours, agent_id=theirs.agent_id)
    after["briefings"] = [replace(it, agent_id=before["briefings"][0].agent_id) for it in after["briefings"]]
    standing_in = [it for it in after["agents"] if it.id != own]
    after["agents"] = [it for it in after["agents"] if it.id == own]
    assert [(it.name, it.system_prompt) for it in standing_in] == [("Bob's", "")]
    assert after == before


async def test_files_of_messages_come_with_their_renditions(here: Settings, there: Settings, tmp_path: Path):
    file = tmp_path / "alice.zip"
    async with opened_store(here) as store:
        conversation = await keep_conversation(store, await keep_agent(store))
        uploaded = await keep_file(store, words="an image", renditions=("model", "preview"))
        (waiting,) = (await store.files.visible(ALICE, [uploaded])).values()
        begun = conversation.begin_turn("", NOW, files=(waiting.part,))
        await keep_begun(store, begun)
        await keep_ended(store, begun.conversation.end_turn(begun.turn, replied(begun), NOW + 1))
    assert await export_user(here, ALICE, file) == 0
    assert await import_file(there, file, ALICE, None) == 0
    async with opened_store(there) as store:
        assert await store.files.used(conversation.id, [uploaded]) == {uploaded: waiting}
        ids = [uploaded, *waiting.part.refs.values()]
        contents = await store.payloads.load(conversation.id, ids)
        assert list(contents.values()) == [b"an image", b"an image: model", b"an image: preview"]
        asked = await store.messages.get(conversation.id, begun.turn.user_message_id)
        assert asked and asked.parts == (waiting.part,)


def test_file_that_is_larger_than_what_a_tool_may_give_is_read_back(tmp_path: Path):
    content = bytes(MOST_FILE_BYTES + 1)
    payload = Payload.of(content, ConversationId(new_uuid()), PayloadKind.FILE, "text/plain", NOW)
    kept = tmp_path / payload_name(payload)
    kept.parent.mkdir(parents=True)
    kept.write_bytes(content)
    (tmp_path / LINES).touch()
    with reading(tmp_path) as source:
        assert source.read_payload(payload, most=MOST_PAYLOAD_BYTES) == content
        with pytest.raises(InvalidRequest, match="damaged or too large"):
            source.read_payload(replace(payload, size=1), most=MOST_PAYLOAD_BYTES)


def replied(begun: BegunTurn) -> Message:
    return begun.assistant_message.finish(MessageStatus.COMPLETED, said("Yes."), NOW + 1)


async def test_agent_whose_prompt_could_not_be_written_comes_whole_the_next_time(
    here: Settings, there: Settings, tmp_path: Path
):
    file = tmp_path / "alice.zip"
    before = await export_everything(here, file)
    in_the_way = there.workspaces.root
    in_the_way.parent.mkdir(parents=True, exist_ok=True)
    in_the_way.write_text("not a folder")
    with pytest.raises(StorageUnavailable):
        await import_file(there, file, ALICE, None)
    in_the_way.unlink()
    assert await import_file(there, file, ALICE, None) == 0
    role = there.workspaces.of(before["agents"][0].id) / "ROLE.md"
    assert role.read_text() == "You know the law."


async def test_citations_follow_a_document_that_is_there_under_another_id(
    here: Settings, there: Settings, tmp_path: Path
):
    file = tmp_path / "alice.zip"
    before = await export_everything(here, file)
    assert await import_file(there, file, ALICE, None) == 0
    async with opened_store(there) as store:
        (document,) = await store.documents.page(before["agents"][0].id, before=None, offset=0, limit=9)
        again = replace(document, id=DocumentId(new_uuid()))
        await store.documents.delete(document)
        await store.documents.add(again)
        for id_ in before["order"]:
            assert await store.conversations.purge(ALICE, id_)
    assert await import_file(there, file, ALICE, None) == 0
    after = await read(there, ALICE)
    messages = [message for id_ in before["order"] for message in after[id_]["messages"]]
    assert {it.document_id for message in messages for it in message.citations} == {again.id}


async def test_agent_comes_with_prompt_files_documents_and_servers_switched_off(
    here: Settings, there: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "alice.zip"
    await export_everything(here, file)
    await import_file(there, file, ALICE, None)
    assert "web, time are disabled" in capsys.readouterr().out
    async with opened_jobs_and_store(there) as (jobs, store):
        agent = next(
            it for it in await store.agents.page(ALICE, after=None, offset=0, limit=9) if it.owner_id
        )
        (document,) = await store.documents.page(agent.id, before=None, offset=0, limit=9)
        (job,) = await jobs.take("a-test", READ_JOB, lease_ms=1000, limit=9)
    assert agent.settings.temperature == 0.5
    assert agent.settings.tools == RULES
    assert [(it.disabled, it.secrets) for it in agent.settings.mcp_servers.values()] == [(True, {})] * 2
    workspace = there.workspaces.of(agent.id)
    assert (workspace / "ROLE.md").read_text() == "You know the law."
    assert (workspace / "documents" / document.id).read_text() == "Notice is three months."
    assert job.arguments == {"agent_id": agent.id, "document_id": document.id, "user_id": ALICE}


async def test_export_has_nothing_of_others_and_no_secret(here: Settings, tmp_path: Path):
    file = tmp_path / "alice.zip"
    await export_everything(here, file)
    assert file.stat().st_mode & 0o077 == 0
    with zipfile.ZipFile(file) as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist()).decode()
    for text in (SECRET_OF_SERVER, BOBS_PROMPT, "Bob's secret", "Bob's answer", "session_id", "Deleted"):
        assert text not in whole


async def test_second_import_adds_nothing_twice(here: Settings, there: Settings, tmp_path: Path):
    file = tmp_path / "alice.zip"
    await export_everything(here, file)
    await import_file(there, file, ALICE, None)
    before = await read(there, ALICE)
    assert await import_file(there, file, ALICE, None) == 0
    assert await read(there, ALICE) == before
    await import_file(here, file, ALICE, None)
    assert len((await read(here, ALICE))["order"]) == 3


async def test_file_for_another_user_of_the_same_database_gets_ids_of_its_own(here: Settings, tmp_path: Path):
    file = tmp_path / "alice.zip"
    before = await export_everything(here, file)
    for _ in range(2):
        assert await import_file(here, file, CARLA, None) == 0
    after = await read(here, CARLA)
    assert await read(here, ALICE) == before
    assert set(after["order"]).isdisjoint(before["order"])
    for mine, theirs in zip(after["order"], before["order"], strict=True):
        for one, other in zip(after[mine]["messages"], before[theirs]["messages"], strict=True):
            assert (one.content, one.status, one.created_at) == (
                other.content,
                other.status,
                other.created_at,
            )
            assert len(one.tool_calls) == len(other.tool_calls)
        assert sorted(after[mine]["contents"].values()) == sorted(before[theirs]["contents"].values())
    rich = next(it for it in after["order"] if after[it]["payloads"])
    cited = {it.document_id for message in after[rich]["messages"] for it in message.citations}
    async with opened_store(here) as store:
        agent = next(
            it for it in await store.agents.page(CARLA, after=None, offset=0, limit=9) if it.owner_id == CARLA
        )
        assert cited == await store.documents.ids_of(agent.id)
        assert await store.history.search(CARLA, "deposit", before=None, limit=9)


async def test_reply_that_is_being_written_is_exported_with_its_text(
    here: Settings, there: Settings, tmp_path: Path
):
    async with opened_store(here) as store:
        conversation = await keep_conversation(store, await keep_agent(store))
        await begin_without_end(store, conversation)
    await export_user(here, ALICE, tmp_path / "alice.zip")
    assert await import_file(there, tmp_path / "alice.zip", ALICE, None) == 0
    kept = (await read(there, ALICE))[conversation.id]
    asked, reply = kept["messages"]
    assert (asked.content, reply.content, reply.status, reply.error.code) == (
        "Still there?", "I am st", "FAILED", "INTERRUPTED",
    )  # fmt: skip
    assert kept["conversation"].active_turn_id is None
    assert [it.turn.status for it in kept["turns"]] == ["FAILED"]


async def test_export_is_of_one_moment_while_others_write(here: Settings, tmp_path: Path):
    async with opened_store(here) as store:
        agent = await keep_agent(store)
        conversation = await keep_turn(store, await keep_conversation(store, agent), "One?", "1")
        # On SQLite the data folder is locked by us, as a running server locks it.
        assert await export_user(here, ALICE, tmp_path / "alice.zip") == 0
        await keep_turn(store, conversation, "Two?", "2")
        with pytest.raises(StorageRefused, match="already exists"):
            await export_user(here, ALICE, tmp_path / "alice.zip")
        with pytest.raises(UserNotFound, match="'nobody'"):
            await export_user(here, UserId("nobody"), tmp_path / "nobody.zip")
    assert not (tmp_path / "nobody.zip").exists()
    assert not (tmp_path / "nobody.zip.partial").exists()
    messages = [line for line in lines(tmp_path / "alice.zip") if line["type"] == "message"]
    assert [part["text"] for line in messages for part in line["parts"]] == ["One?", "1"]


async def test_main_conversation_becomes_a_further_one_where_there_is_one(
    here: Settings, there: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    await export_everything(here, tmp_path / "alice.zip")
    async with opened_store(there) as store:
        default = await store.agents.get_default()
        own, _ = await store.conversations.get_or_add_main(
            Conversation.start(ALICE, default.id, NOW, is_main=True)
        )
    await import_file(there, tmp_path / "alice.zip", ALICE, None)
    assert "imported as a regular conversation" in capsys.readouterr().out
    async with opened_store(there) as store:
        listed = await store.conversations.page(ALICE, ConversationFilter(), after=None, offset=0, limit=9)
    assert [it.id for it in listed if it.is_main] == [own.id]


async def test_files_of_version_2_can_be_read_for_good(here: Settings):
    """Made before the first release. Where this fails, `decode` has to learn the old names."""
    folder = Path(__file__).parent / "version-2"
    assert await import_file(here, folder, ALICE, None) == 0
    kept = await read(here, ALICE)
    messages = [message for id_ in kept["order"] for message in kept[id_]["messages"]]
    assert (len(kept["order"]), len(messages)) == (3, 10)
    (rich,) = (message for message in messages if message.tool_calls)
    assert [call.status for call in rich.tool_calls] == ["ok", "timeout"]
    assert (len(rich.citations), len(rich.artifact_ids), rich.content) == (1, 1, "It ends in May [1].")
    assert [part.type for part in rich.parts] == ["tool_call", "tool_call", "retrieval", "file", "text"]
    file = rich.parts[3]
    assert (file.file_name, file.media_type, file.size > 0) == ("a.csv", "text/csv", True)
    # It was regenerated: off the path, beside the one that came after it, in the status that it ended in.
    assert (rich.on_path, rich.status, rich.shown_status) == (False, "COMPLETED", "OVERWRITTEN")
    asked, _, failed, again, last = next(
        it["messages"] for id_ in kept["order"] if rich in (it := kept[id_])["messages"]
    )
    assert [it.parent_id for it in (asked, rich, failed, again, last)] == [
        None,
        asked.id,
        asked.id,
        failed.id,
        again.id,
    ]
    assert (len(kept["briefings"]), len(kept["memories"])) == (1, 2)


def lines(file: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(file) as archive:
        return [json.loads(line) for line in archive.read("data.jsonl").splitlines()]
