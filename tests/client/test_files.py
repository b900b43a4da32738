"""Files for messages from Python: from the disk in pieces, from memory, and back again."""

import tracemalloc
from pathlib import Path

import pytest

from tests.files.making import encode, photograph
from tests.serving import serving
from threadkeep.client import BlockingClient, Client, ClientError, Sending
from threadkeep.testing import Say, ScriptedModel, running_app
from threadkeep.wire.parts import FilePartView
from threadkeep.wire.queue import QueuedView
from threadkeep.wire.turns import StartedTurnView

DIAGRAM = encode(photograph(64, 48), "PNG")


async def new_conversation(client: Client) -> str:
    agent = await client.create_agent("Law", model="gpt-4o")
    return (await client.create_conversation(agent.id, title="Lease")).id


async def files_of(client: Client, conversation: str) -> list[list[FilePartView]]:
    return [
        [part for part in message.parts if isinstance(part, FilePartView)]
        async for message in client.messages(conversation)
        if message.role == "user"
    ]


def names_in(folder: Path) -> list[str]:
    return sorted(it.name for it in folder.iterdir())


async def test_every_kind_of_file_goes_with_a_message_and_comes_back(model: ScriptedModel, tmp_path: Path):
    model.script(*([Say("Seen.")] for _ in range(5)))
    (picture := tmp_path / "diagram.png").write_bytes(DIAGRAM)
    async with running_app(model) as app:
        client, conversation = app.client, await new_conversation(app.client)
        notes = await client.upload_file(("notes.md", b"# Rent"))
        events = client.send(conversation, "What?", files=[picture, b"Read me.", ("a.csv", b"a,b\n"), notes])
        assert [event.body.type async for event in events][-1] == "done"
        ((first, *rest),) = await files_of(client, conversation)
        assert (first.file_name, first.width, first.media_type) == ("diagram.png", 64, "image/png")
        assert [it.file_name for it in rest] == ["file", "a.csv", "notes.md"]
        await client.ask(conversation, files=[first])  # one that a message has
        await client.start(conversation, files=[str(picture)])
        posted = await client.post(conversation, files=[notes, first])
        assert isinstance(posted, StartedTurnView | QueuedView)
        assert await client.read_file(first.file_id) == DIAGRAM
        assert (await client.read_file(first.file_id, preview=True)).startswith(b"RIFF")
        saved = await client.save_file(first.file_id, tmp_path / "saved.png")
        assert saved.read_bytes() == DIAGRAM
        with pytest.raises(ClientError):
            await client.save_file("nothing", tmp_path / "missing.png")
        assert names_in(tmp_path) == ["diagram.png", "saved.png"]


async def test_large_file_is_never_whole_in_memory(model: ScriptedModel, tmp_path: Path):
    large = tmp_path / "large.txt"
    large.write_bytes(b"The lease ends in May.\n" * 1_500_000)
    seen: list[Sending] = []
    async with running_app(model) as app:
        await app.client.upload_file(("small.txt", b"small"))  # so that only the file counts
        tracemalloc.start()
        sent = await app.client.upload_file(large, on_progress=seen.append)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        tracemalloc.start()
        await app.client.save_file(sent.id, tmp_path / "back.txt")
        most_back = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert seen[-1].sent == seen[-1].size == sent.size
    assert len(seen) > 100
    assert max(most, most_back) < sent.size / 2
    assert (tmp_path / "back.txt").stat().st_size == sent.size


def test_refused_file_is_named_and_nothing_is_said(model: ScriptedModel, tmp_path: Path):
    (large := tmp_path / "large.txt").write_bytes(b"x" * 1_000_000)
    limited = serving(
        tmp_path, max_upload_bytes="100000", gateway="openai", gateway_url=model.url, model="scripted"
    )
    with limited as server, BlockingClient(server.url) as client:
        agent = client.create_agent("Law")
        conversation = client.create_conversation(agent.id, title="Lease").id
        for file, code, about in (
            (large, "PAYLOAD_TOO_LARGE", "large.txt: "),
            (("page.png", b"<html>"), "UNSUPPORTED_FILE", "page.png has the name of"),
            (b"\x00\x01", "UNSUPPORTED_FILE", "Can't attach file."),
        ):
            with pytest.raises(ClientError) as refused:
                client.ask(conversation, "What?", files=[b"fine", file])
            assert refused.value.code == code
            assert refused.value.message.startswith(about)
        with pytest.raises(FileNotFoundError, match="nowhere"):
            list(client.send(conversation, "What?", files=[b"fine", tmp_path / "nowhere.txt"]))
        assert list(client.messages(conversation)) == []
    assert model.requests == []
