"""Files for messages: taken in by what they are, had by a message, seen by their owner, sent to the model."""

import base64
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.conftest import ONLY_SQLITE, Api
from tests.files.making import encode, gif_bomb, photograph, png_bomb
from tests.http.calls import new_conversation, refusal
from tests.imports.test_checks import whole_with
from tests.retrieval.files import make_docx, make_encrypted_pdf, make_image_pdf, make_pdf, make_zip_bomb
from tests.talking import JSON, Talk
from threadkeep.domain.caps import TurnCaps
from threadkeep.domain.errors import FileNotFound
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.domain.payload import Payload, PayloadKind, content_hash
from threadkeep.domain.user import User
from threadkeep.http.app import Threadkeep
from threadkeep.imports.checks import check_whole
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.sending import NewMessage
from threadkeep.storage.payloads.database import READ_BYTES
from threadkeep.testing import Gate, Say, ScriptedModel, Wait, until

PHOTO = encode(photograph(640, 480), "JPEG")
DIAGRAM = encode(photograph(64, 48), "PNG")


async def upload(client: httpx.AsyncClient, *files: tuple[str, bytes]) -> list[dict[str, Any]]:
    response = await client.post("/api/files", files=[("files", file) for file in files])
    assert response.status_code == 201, response.text
    return response.json()["items"]


async def send(talk: Talk, conversation: str, content: str, *file_ids: str, **more: Any) -> httpx.Response:
    body = {"content": content, "files": list(file_ids), **more}
    path = f"/api/conversations/{conversation}/messages?wait=true"
    return await talk.client.post(path, json=body, headers=JSON)


async def test_file_is_what_its_content_says_and_its_owner_gets_it_back(api: Api, alice: httpx.AsyncClient):
    photo, notes, table = await upload(
        alice, ("holiday.png", PHOTO), ("notes", b"Read me."), ("a.csv", b"a,b\n1,2\n")
    )
    assert photo == {
        "id": photo["id"],
        "fileName": "holiday.png",
        "mediaType": "image/jpeg",
        "size": len(PHOTO),
        "width": 640,
        "height": 480,
    }
    assert [it["mediaType"] for it in (notes, table)] == ["text/plain", "text/csv"]
    whole = await alice.get(f"/api/files/{photo['id']}")
    assert whole.content == PHOTO
    assert whole.headers["content-disposition"].startswith('attachment; filename="holiday.png"')
    preview = await alice.get(f"/api/files/{photo['id']}?preview=true")
    assert preview.headers["vary"] == "Authorization, X-Api-Key"
    assert preview.headers["content-disposition"] == "inline"
    assert preview.headers["content-type"] == "image/webp"
    assert len(preview.content) < 60_000
    assert (await alice.get(f"/api/files/{notes['id']}?preview=true")).content == b"Read me."


async def test_file_of_somebody_else_does_not_exist(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    (photo,) = await upload(alice, ("photo.jpg", PHOTO))
    refusal(await bob.get(f"/api/files/{photo['id']}"), 404, "FILE_NOT_FOUND")
    conversation = await new_conversation(bob)
    response = await bob.post(
        f"/api/conversations/{conversation['id']}/messages", json={"content": "?", "files": [photo["id"]]}
    )
    refusal(response, 404, "FILE_NOT_FOUND", "files")


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("page.png", b"<!doctype html><script>alert(1)</script>", "contains HTML or SVG"),
        ("huge.png", png_bomb(), "pixels"),
        ("endless.gif", gif_bomb(frames=20, size=9_000), "pixels"),
        ("cut.jpg", PHOTO[:200], "damaged"),
        ("empty.txt", b"", "is empty"),
        ("program.exe", b"MZ\x00\x01\x02", "program"),
        ("secret.pdf", make_encrypted_pdf(), "password-protected"),
    ],
)
async def test_what_a_message_cannot_have_is_refused_by_name(
    api: Api, alice: httpx.AsyncClient, name: str, content: bytes, why: str
):
    response = await alice.post("/api/files", files=[("files", (name, content))])
    assert response.status_code == 422, response.text
    assert response.json()["error"]["code"] == "UNSUPPORTED_FILE"
    assert why in response.json()["error"]["message"]


@ONLY_SQLITE
async def test_if_one_file_is_refused_none_is_taken(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    sent = [("files", ("fine.txt", b"fine")), ("files", ("huge.png", png_bomb()))]
    response = await alice.post("/api/files", files=sent)
    assert response.json()["error"]["message"].startswith("huge.png: ")
    files = (await api.app.services()).files
    monkeypatch.setattr(files, "_ttl_ms", -1000)
    assert await files.sweep() == 0


@ONLY_SQLITE
async def test_files_are_parts_of_the_message_in_every_later_request(talk: Talk, model: ScriptedModel):
    model.script([Say("A beach.")], [Say("Yes.")])
    conversation = await talk.titled_conversation(model="gpt-4o")
    photo, notes = await upload(talk.client, ("photo.jpg", PHOTO), ("notes.md", b"# Remember the milk"))
    reply = await send(talk, conversation, "What is this?", photo["id"], notes["id"])
    assert reply.status_code == 200, reply.text
    asked, _ = await talk.messages(conversation)
    assert [part["type"] for part in asked["parts"]] == ["file", "file", "text"]
    assert asked["parts"][0] | {"iteration": 0} == {
        "type": "file",
        "fileId": photo["id"],
        "fileName": "photo.jpg",
        "mediaType": "image/jpeg",
        "size": len(PHOTO),
        "width": 640,
        "height": 480,
        "iteration": 0,
    }
    assert (await talk.client.get(f"/api/files/{photo['id']}")).content == PHOTO
    assert (await talk.client.get(f"/api/files/{photo['id']}?preview=true")).headers[
        "content-type"
    ] == "image/webp"
    receipt = await talk.client.get(f"/api/turns/{reply.json()['turnId']}/context")
    assert receipt.json()["files"] == [{"type": "image", "fileName": "photo.jpg", "tokens": 425}]
    await send(talk, conversation, "Sure?")
    for request in model.requests:
        image, text, question = request.body["messages"][-1 if request is model.requests[0] else 1]["content"]
        assert image["type"] == "image_url"
        head, _, data = image["image_url"]["url"].partition(",")
        assert head == "data:image/jpeg;base64"
        assert base64.b64decode(data).startswith(b"\xff\xd8\xff")
        assert text["text"].endswith("# Remember the milk")
        assert question == {"type": "text", "text": "What is this?"}


@ONLY_SQLITE
async def test_model_that_takes_no_images_is_told_their_names_and_the_user_that(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("I cannot see it.")])
    conversation = await talk.titled_conversation()
    (photo,) = await upload(talk.client, ("photo.jpg", PHOTO))
    reply = (await send(talk, conversation, "What is this?", photo["id"])).json()
    assert (
        "[File photo.jpg: image/jpeg, 640 × 480 pixels]" in model.requests[0].body["messages"][-1]["content"]
    )
    (notice,) = [part for part in reply["parts"] if part["type"] == "notice"]
    assert notice["code"] == "IMAGES_NOT_TAKEN"


@ONLY_SQLITE
async def test_text_of_a_pdf_and_of_a_word_document_reaches_every_model(talk: Talk, model: ScriptedModel):
    model.script([Say("Read.")])
    conversation = await talk.titled_conversation()
    files = await upload(
        talk.client,
        ("lease.pdf", make_pdf(["The rent is 900 euros.", "It ends in May."])),
        ("letter.docx", make_docx([(None, "Dear tenant")])),
        ("scan.pdf", make_image_pdf()),
        ("bomb.docx", make_zip_bomb(50)),
    )
    reply = (await send(talk, conversation, "Read this.", *(it["id"] for it in files))).json()
    assert [part["code"] for part in reply["parts"] if part["type"] == "notice"] == ["PDF_WITHOUT_TEXT"]
    asked = model.requests[0].body["messages"][-1]["content"]
    for words in (
        "[File lease.pdf]\n[Page 1]\nThe rent is 900 euros.\n\n[Page 2]\nIt ends in May.",
        "[File letter.docx]\nDear tenant",
        "[File scan.pdf: application/pdf, ",
        "It has no text that can be read: its pages are images.",
        "[File bomb.docx]\nharmless",
    ):
        assert words in asked


@ONLY_SQLITE
async def test_message_with_a_file_needs_no_text(talk: Talk, model: ScriptedModel):
    model.script([Say("A diagram.")])
    conversation = await talk.titled_conversation(model="gpt-4o")
    (diagram,) = await upload(talk.client, ("diagram.png", DIAGRAM))
    assert (await send(talk, conversation, "", diagram["id"])).status_code == 200
    refused = await send(talk, conversation, " ")
    assert refused.json()["error"]["code"] == "MESSAGE_CONTENT_REQUIRED"


async def test_queued_message_keeps_its_files(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("one")], [Say("two")])
    conversation = await talk.titled_conversation(model="gpt-4o")
    await talk.begin(conversation)
    (diagram,) = await upload(talk.client, ("diagram.png", DIAGRAM))
    queued = await send(talk, conversation, "", diagram["id"], whenBusy="queue")
    assert queued.status_code == 202, queued.text
    refused = await send(talk, conversation, "And?", diagram["id"], whenBusy="steer")
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "whenBusy")
    detail = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    (waiting,) = detail["queued"]
    assert [(it["fileId"], it["fileName"]) for it in waiting["files"]] == [(diagram["id"], "diagram.png")]
    path = f"/api/conversations/{conversation}/queued/{waiting['messageId']}"
    assert (await talk.client.patch(path, json={"content": ""})).status_code == 200
    gate.open()

    async def has_reply() -> bool:
        messages = await talk.messages(conversation)
        return [it["status"] for it in messages] == ["COMPLETED"] * 4

    await until(has_reply)
    assert [part["type"] for part in (await talk.messages(conversation))[2]["parts"]] == ["file"]


async def test_files_of_a_queued_message_that_is_removed_go_unless_another_message_has_them(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Wait(gate), Say("one")])
    conversation = await talk.titled_conversation(model="gpt-4o")
    shown, unsent = await upload(talk.client, ("shown.png", DIAGRAM), ("unsent.png", PHOTO))
    begun = await talk.client.post(
        f"/api/conversations/{conversation}/messages",
        json={"content": "Look.", "files": [shown["id"]]},
        headers=JSON,
    )
    queued = await send(talk, conversation, "And?", shown["id"], unsent["id"], whenBusy="queue")
    path = f"/api/conversations/{conversation}/queued/{queued.json()['messageId']}"
    assert (await talk.client.delete(path)).status_code == 204
    refusal(await talk.client.get(f"/api/files/{unsent['id']}"), 404, "FILE_NOT_FOUND")
    assert (await talk.client.get(f"/api/files/{shown['id']}")).content == DIAGRAM
    gate.open()
    await talk.events(begun.json()["turnId"])


async def test_conversation_that_begins_with_files_is_called_by_their_names(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("A diagram.")])
    conversation = await talk.conversation(model="gpt-4o")
    (diagram,) = await upload(talk.client, ("diagram.png", DIAGRAM))
    body = {"content": "", "files": [diagram["id"]]}
    await talk.client.post(f"/api/conversations/{conversation}/messages", json=body, headers=JSON)
    detail = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    assert detail["title"] == "diagram.png"
    gate.open()


async def test_edited_message_has_the_same_file_again(talk: Talk, model: ScriptedModel):
    model.script([Say("A.")], [Say("B.")])
    conversation = await talk.titled_conversation(model="gpt-4o")
    (diagram,) = await upload(talk.client, ("diagram.png", DIAGRAM))
    await send(talk, conversation, "What?", diagram["id"])
    edited = await send(talk, conversation, "What exactly?", diagram["id"], parentId=None)
    assert edited.status_code == 200, edited.text
    assert [it["type"] for it in model.requests[-1].body["messages"][-1]["content"]] == ["image_url", "text"]


async def test_file_goes_with_its_conversation(talk: Talk, model: ScriptedModel):
    model.script([Say("A.")])
    conversation = await talk.titled_conversation(model="gpt-4o")
    (diagram,) = await upload(talk.client, ("diagram.png", DIAGRAM))
    await send(talk, conversation, "What?", diagram["id"])
    await talk.client.delete(f"/api/conversations/{conversation}?purge=true")
    assert (await talk.client.get(f"/api/files/{diagram['id']}")).status_code == 404


async def test_file_that_no_message_gets_is_removed_after_its_time(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    (diagram,) = await upload(alice, ("diagram.png", DIAGRAM))
    files = (await api.app.services()).files
    assert await files.sweep() == 0
    monkeypatch.setattr(files, "_ttl_ms", -1000)
    assert await files.sweep() == 1
    refusal(await alice.get(f"/api/files/{diagram['id']}"), 404, "FILE_NOT_FOUND")


@ONLY_SQLITE
async def test_file_that_waits_goes_with_its_user(api: Api, alice: httpx.AsyncClient, tmp_path: Path):
    def contents() -> list[Path]:
        return list(tmp_path.glob("data/payloads/files/*/*"))

    await upload(alice, ("diagram.png", DIAGRAM))
    assert contents()
    assert (await alice.delete("/api/users/alice")).status_code == 204
    assert not contents()


async def test_file_that_is_gone_in_the_moment_it_is_sent_refuses_the_message(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    services, user = await talk.app.services(), User(UserId("local"))
    conversation = await services.conversations.get(user, await talk.titled_conversation())
    (old,) = await upload(talk.client, ("old.txt", b"Old."))
    expiring = await services.files.parts(user, [old["id"]])
    monkeypatch.setattr(services.files, "_ttl_ms", -1000)
    assert await services.files.sweep() == 1
    with pytest.raises(FileNotFound):
        await services.sending.send(user, conversation.id, NewMessage("Too late.", expiring))
    assert await talk.messages(conversation.id) == []


async def test_files_are_taken_as_often_as_the_operator_allows(talk: Talk, monkeypatch: pytest.MonkeyPatch):
    services = await talk.app.services()
    caps = TurnCaps(uploads_per_minute=2)
    monkeypatch.setattr(services.files, "_allowances", LocalAllowances(caps))
    await upload(talk.client, ("a.txt", b"A."), ("b.txt", b"B."))
    late = await talk.client.post("/api/files", files=[("files", ("c.txt", b"C."))])
    refusal(late, 429, "RATE_LIMITED")
    assert int(late.headers["retry-after"]) >= 1


async def test_file_is_sent_again_in_another_conversation_until_the_last_one_is_purged(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("A.")], [Say("B.")], [Say("C.")])
    first, second = [await talk.titled_conversation(model="gpt-4o") for _ in range(2)]
    (diagram,) = await upload(talk.client, ("diagram.png", DIAGRAM))
    for conversation in (first, second):
        sent = await send(talk, conversation, "What?", diagram["id"])
        assert sent.status_code == 200, sent.text
        asked, _ = await talk.messages(conversation)
        assert asked["parts"][0]["fileId"] == diagram["id"]
    await talk.client.delete(f"/api/conversations/{first}?purge=true")
    assert (await talk.client.get(f"/api/files/{diagram['id']}")).content == DIAGRAM
    await send(talk, second, "Again?")
    assert model.requests[-1].body["messages"][1]["content"][0]["type"] == "image_url"
    await talk.client.delete(f"/api/conversations/{second}")
    refusal(await talk.client.get(f"/api/files/{diagram['id']}"), 404, "FILE_NOT_FOUND")
    third = await talk.titled_conversation()
    refusal(await send(talk, third, "And?", diagram["id"]), 404, "FILE_NOT_FOUND", "files")


@pytest.mark.parametrize("is_sent", [False, True], ids=["waiting", "sent"])
async def test_part_of_a_file_is_read_without_the_rest(talk: Talk, model: ScriptedModel, is_sent: bool):
    model.script([Say("A.")])
    words = b"0123456789" * 30
    (notes,) = await upload(talk.client, ("notes.txt", words))
    if is_sent:
        await send(talk, await talk.titled_conversation(), "What?", notes["id"])
    path = f"/api/files/{notes['id']}"
    whole = await talk.client.get(path)
    assert whole.headers["accept-ranges"] == "bytes"
    for asked, first, last in (("bytes=5-14", 5, 14), ("bytes=290-", 290, 299), ("bytes=-7", 293, 299)):
        part = await talk.client.get(path, headers={"Range": asked, "If-Range": whole.headers["etag"]})
        assert part.status_code == 206
        assert part.headers["content-range"] == f"bytes {first}-{last}/300"
        assert part.content == words[first : last + 1]
    beyond = await talk.client.get(path, headers={"Range": "bytes=300-"})
    refusal(beyond, 416, "RANGE_NOT_SATISFIABLE")
    assert beyond.headers["content-range"] == "bytes */300"
    other = await talk.client.get(path, headers={"Range": "bytes=5-14", "If-Range": '"another"'})
    for response in (whole, other, await talk.client.get(path, headers={"Range": "bytes=1-2,4-5"})):
        assert (response.status_code, response.content) == (200, words)


async def test_what_a_crash_has_left_of_an_upload_is_removed(api: Api, tmp_path: Path):
    files = (await api.app.services()).files
    left, fresh = (tmp_path / "data" / "uploads" / name for name in ("left", "fresh"))
    for folder in (left, fresh):
        folder.mkdir(parents=True)
        (folder / "original").write_bytes(b"half")
    os.utime(left, (0, 0))
    await files.sweep()
    assert not left.exists()
    assert fresh.exists()


async def test_fork_has_the_files_too(talk: Talk, model: ScriptedModel):
    model.script([Say("A.")], [Say("B.")])
    conversation = await talk.titled_conversation(model="gpt-4o")
    (diagram,) = await upload(talk.client, ("diagram.png", DIAGRAM))
    reply = (await send(talk, conversation, "What?", diagram["id"])).json()
    path = f"/api/conversations/{conversation}/fork"
    fork = (await talk.client.post(path, json={"messageId": reply["id"]})).json()["id"]
    await talk.client.delete(f"/api/conversations/{conversation}?purge=true")
    asked, _ = await talk.messages(fork)
    copied = asked["parts"][0]["fileId"]
    assert (await talk.client.get(f"/api/files/{copied}")).content == DIAGRAM
    assert (await talk.client.get(f"/api/files/{copied}?preview=true")).headers[
        "content-type"
    ] == "image/webp"
    await send(talk, fork, "Again?")
    assert model.requests[-1].body["messages"][1]["content"][0]["type"] == "image_url"


async def test_large_file_of_a_tool_is_sent_in_pieces(api: Api, alice: httpx.AsyncClient):
    content = os.urandom(9_000_000)
    conversation = ConversationId((await new_conversation(alice))["id"])
    payload = Payload.of(content, conversation, PayloadKind.FILE, "text/plain", 1, file_name="a.txt")
    await api.store.payloads.add(payload, content)
    sizes: list[int] = []
    path, transport = f"/api/artifacts/{payload.id}", httpx.ASGITransport(sending(api.app, sizes))
    async with httpx.AsyncClient(
        transport=transport, base_url=alice.base_url, headers=alice.headers
    ) as client:
        whole = await client.get(path)
        assert (whole.status_code, whole.content == content) == (200, True)
        assert whole.headers["content-length"] == str(len(content))
        assert sum(sizes) == len(content)
        assert max(sizes) <= READ_BYTES
        asked = {"Range": "bytes=8999990-", "If-Range": whole.headers["etag"]}
        part = await client.get(path, headers=asked)
        assert (part.status_code, part.content) == (206, content[-10:])
        assert part.headers["content-range"] == "bytes 8999990-8999999/9000000"
        refusal(await client.get(path, headers={"Range": "bytes=9000000-"}), 416, "RANGE_NOT_SATISFIABLE")


def sending(app: Threadkeep, sizes: list[int]) -> ASGIApp:
    """An application that notes how much it sends at once."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        async def note(message: Message) -> None:
            if message["type"] == "http.response.body":
                sizes.append(len(message.get("body", b"")))
            await send(message)

        await app(scope, receive, note)

    return run


@pytest.mark.parametrize("media_type", ["text/中", "text/html\r\nX-Injected: 1\r\n\r\n<script>", ""])
async def test_file_of_any_stored_type_is_downloaded_as_bytes(
    api: Api, alice: httpx.AsyncClient, media_type: str
):
    """Imports of earlier versions took the type that the file named."""
    whole = whole_with(media_type, "a.txt")
    agent = await api.store.agents.get_default()
    payload = replace(whole.payloads[0], sha256=content_hash(b"x"))
    conversation = replace(check_whole(whole).conversation, agent_id=agent.id)
    whole = replace(whole, conversation=conversation, payloads=[payload])
    await api.store.whole_conversations.add(whole, lambda _: b"x")
    shared = await alice.post(f"/api/conversations/{conversation.id}/shares", json={"tools": True})
    paths = ("/api/artifacts/", "/api/files/", f"/api/shares/{shared.json()['token']}/files/")
    for found in [await alice.get(f"{path}{payload.id}") for path in paths]:
        assert (found.status_code, found.content) == (200, b"x"), found.text
        assert found.headers["content-type"] == "application/octet-stream"
        assert found.headers["content-disposition"].startswith("attachment; ")
        assert found.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert "x-injected" not in found.headers
