"""Files as models get them, on both wires: attached, returned by tools, in later turns, and once more."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.engine.in_memory import InMemoryTools, Run
from tests.files.making import encode, photograph
from tests.http.api.test_files import DIAGRAM, PHOTO, send, upload
from tests.retrieval.files import make_pdf
from tests.talking import Talk, talking
from threadkeep.ports.tools import Asked, Progress, Returned, ReturnedFile
from threadkeep.testing import Say, ScriptedModel, UseTool, scripted_settings

LEASE = make_pdf(["The rent is 900 euros."])
CHART = ReturnedFile("chart.png", "image/png", encode(photograph(320, 200), "PNG"))

pytestmark = ONLY_SQLITE


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def talk(
    request: pytest.FixtureRequest, database_url: str, model: ScriptedModel, wire: str
) -> AsyncIterator[Talk]:
    if "tools" in request.fixturenames:
        request.getfixturevalue("tools")
    settings = scripted_settings(
        model,
        database_url=database_url,
        gateway=wire,
        model_images="on",
        model_pdfs="on",
    )
    async with talking(settings) as talk:
        yield talk


def drawing(*files: ReturnedFile) -> Run:
    """A tool that returns files."""

    async def run(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Asked | Returned]:
        yield Returned("ok", f"{len(files)} files", files=files)

    return run


def without_marks(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a message says, without where the provider is told to keep what it has read."""
    return [{name: it for name, it in part.items() if name != "cache_control"} for part in content]


async def test_two_images_and_a_pdf_are_blocks_in_this_turn_and_three_turns_later(
    talk: Talk, model: ScriptedModel, wire: str
):
    model.script(*([Say(f"Answer {number}.")] for number in range(4)))
    conversation = await talk.titled_conversation()
    files = await upload(talk.client, ("photo.jpg", PHOTO), ("diagram.png", DIAGRAM), ("lease.pdf", LEASE))
    assert (await send(talk, conversation, "Compare.", *(it["id"] for it in files))).status_code == 200
    for question in ("Sure?", "Really?", "And now?"):
        await send(talk, conversation, question)
    is_first = 0 if wire == "anthropic" else 1  # after the system prompt
    asked = [request.body["messages"][is_first] for request in model.requests]
    first = without_marks(asked[0]["content"])
    if wire == "anthropic":
        assert [part["type"] for part in first] == ["image", "image", "document", "text"]
        assert [part["source"]["media_type"] for part in first[:3]] == [
            "image/jpeg",
            "image/png",
            "application/pdf",
        ]
        assert first[2]["title"] == "lease.pdf"
    else:
        assert [part["type"] for part in first] == ["image_url", "image_url", "file", "text"]
        assert first[2]["file"]["filename"] == "lease.pdf"
    assert first[3]["text"] == "Compare."
    assert [without_marks(later["content"]) for later in asked[1:]] == [first] * 3
    assert not model.refused


@pytest.mark.parametrize("wire", ["openai"], indirect=True)
async def test_pdf_too_long_for_the_model_is_text(talk: Talk, model: ScriptedModel):
    model.script([Say("Long.")])
    conversation = await talk.titled_conversation()
    (book,) = await upload(talk.client, ("book.pdf", make_pdf([f"Chapter {at}." for at in range(30)])))
    await send(talk, conversation, "Read it.", book["id"])
    content = model.requests[0].body["messages"][-1]["content"]
    assert content.startswith("[File book.pdf]\n[Page 1]\nChapter 0.")


async def test_image_of_a_tool_is_seen_by_the_model_now_and_later_and_by_the_user(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel, wire: str
):
    tools.add(draw=drawing(CHART))
    model.script([UseTool("draw", id="t1")], [Say("A line.")], [Say("Still a line.")])
    conversation = await talk.titled_conversation()
    reply = await talk.ask(conversation, "Draw it.")
    (image,) = [part for part in reply["parts"] if part["type"] == "file"]
    assert (image["toolCallId"], image["fileName"], image["width"], image["height"]) == (
        "t1",
        "chart.png",
        320,
        200,
    )
    assert reply["artifactIds"] == [image["fileId"]]
    assert (await talk.client.get(f"/api/files/{image['fileId']}")).content == CHART.content
    preview = await talk.client.get(f"/api/files/{image['fileId']}?preview=true")
    assert preview.headers["content-type"] == "image/webp"
    await talk.ask(conversation, "Sure?")
    for request in model.requests[1:]:
        results = [it for it in request.body["messages"] if "t1" in str(it)]
        if wire == "anthropic":
            (result,) = results[-1]["content"][:1]
            assert [part["type"] for part in result["content"]] == ["text", "image"]
        else:
            (said,) = [it for it in request.body["messages"] if isinstance(it["content"], list)]
            assert [part["type"] for part in said["content"][:2]] == ["text", "image_url"]
    events = await talk.events(reply["turnId"])
    (resulted,) = [it for it in events if it["type"] == "tool_result"]
    assert resulted["images"] == [_event_fields(image)]
    assert not model.refused


async def test_image_of_a_tool_that_failed_is_seen_too(
    talk: Talk, model: ScriptedModel, tools: InMemoryTools, wire: str
):
    async def fail(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Asked | Returned]:
        yield Returned("error", error="The page has no such button.", files=(CHART,))

    tools.add(click=fail)
    model.script([UseTool("click")], [Say("Not there.")], [Say("No.")])
    conversation = await talk.titled_conversation()
    await talk.ask(conversation, "Click it.")
    await talk.ask(conversation, "Sure?")
    shown = '"type":"image"' if wire == "anthropic" else '"type":"image_url"'
    assert [request.content.count(shown.encode()) for request in model.requests] == [0, 1, 1]
    assert not model.refused


def _event_fields(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "file_id": part["fileId"],
        "file_name": part["fileName"],
        "media_type": part["mediaType"],
        "size": part["size"],
        "width": part["width"],
        "height": part["height"],
    }


async def test_turn_that_waited_for_its_user_goes_on_with_its_images(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel, wire: str
):
    tools.add(draw=drawing(CHART), publish=drawing())
    model.script([UseTool("draw", id="t1"), UseTool("publish", id="t2")], [Say("Done.")])
    rules = {"test.publish": {"access": "ask"}}
    conversation = await talk.titled_conversation(settings={"tools": rules})
    (photo,) = await upload(talk.client, ("photo.jpg", PHOTO))
    paused = (await send(talk, conversation, "Publish.", photo["id"])).json()
    (request,) = paused["approvals"]
    path = f"/api/turns/{request['turnId']}/approvals/{request['requestId']}"
    assert (await talk.client.post(path, json={"action": "allow"})).status_code == 200
    await talk.events(request["turnId"])
    assert (await talk.messages(conversation))[-1]["content"] == "Done."
    sent = str(model.requests[1].body)
    images = sent.count("'type': 'image'") + sent.count("'type': 'image_url'")
    assert images == 2
    assert not model.refused


@pytest.mark.parametrize("wire", ["anthropic"], indirect=True)
async def test_broken_image_of_a_tool_is_a_file_and_the_turn_goes_on(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    broken = ReturnedFile("chart.png", "image/png", CHART.content[:100])

    tools.add(draw=drawing(broken))
    model.script([UseTool("draw", id="t1")], [Say("Done.")])
    reply = await talk.ask(await talk.titled_conversation(), "Draw it.")
    assert reply["status"] == "COMPLETED"
    (artifact,) = reply["artifactIds"]
    assert (await talk.client.get(f"/api/artifacts/{artifact}")).content == broken.content
    assert "file" not in [part["type"] for part in reply["parts"]]


@pytest.mark.parametrize("wire", ["anthropic"], indirect=True)
async def test_model_looks_at_a_file_of_the_conversation_again(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    photo, notes = await upload(talk.client, ("photo.jpg", PHOTO), ("notes.txt", b"Milk, bread and salt."))
    asked = [
        UseTool("recall_file", {"id": photo["id"]}, id="t1"),
        UseTool("recall_file", {"id": notes["id"], "query": "bread"}, id="t2"),
        UseTool("recall_file", {"id": notes["id"], "offset": 6}, id="t3"),
        UseTool("recall_file", {"id": "another"}, id="t4"),
    ]
    model.script([Say("Seen.")], asked, [Say("Seen again.")])
    await send(talk, conversation, "Look.", photo["id"], notes["id"])
    reply = await talk.ask(conversation, "Look again.")
    assert reply["content"] == "Seen again.", reply
    shown, found, read, refused = model.requests[2].body["messages"][-1]["content"]
    assert [part["type"] for part in shown["content"]] == ["text", "image"]
    assert '"matches":[{"offset":0,"text":"Milk, bread and salt."}]' in found["content"]
    assert '"text":"bread and salt."' in read["content"]
    assert refused["is_error"]
    (image,) = [part for part in reply["parts"] if part["type"] == "file"]
    assert (image["fileId"], image["toolCallId"]) == (photo["id"], "t1")


@pytest.mark.parametrize("wire", ["anthropic"], indirect=True)
async def test_model_finds_a_file_of_messages_that_a_summary_has_replaced(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings={"compactionThreshold": 6})
    (notes,) = await upload(talk.client, ("notes.txt", b"Milk, bread and salt."))
    model.script(*([Say(f"{number}.")] for number in range(4)), [Say("Once there were notes.")])
    await send(talk, conversation, "Keep this.", notes["id"])
    for number in range(3):
        await talk.ask(conversation, f"{number}?")
    compacted = await talk.client.post(f"/api/conversations/{conversation}/compact", json={"keepLast": 2})
    assert compacted.status_code == 200, compacted.text
    model.script(
        [UseTool("recall_file", {}, id="t1")],
        [UseTool("recall_file", {"id": notes["id"]}, id="t2")],
        [Say("Salt.")],
    )
    reply = await talk.ask(conversation, "What was in the notes?")
    assert reply["content"] == "Salt.", reply
    listing, shown = (request.body["messages"][-1]["content"][0] for request in model.requests[-2:])
    first = str(model.requests[-3].body)
    assert notes["id"] not in first and "Once there were notes." in first
    assert f'{{"files":[{{"id":"{notes["id"]}","name":"notes.txt"' in listing["content"]
    assert "Milk, bread and salt." in shown["content"]
