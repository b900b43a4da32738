"""The page of examples/use-chat on `useChat` of three versions of the AI SDK, as a person uses it."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_parts import EASEL
from tests.clients.ai_sdk.driver import PACKAGES
from tests.clients.ai_sdk.pages import EXAMPLE, copy_example, served
from tests.corpus.stage import PIXEL
from tests.serving import Server
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait


@pytest.fixture(params=[5, 6, 7])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def server(
    browser: Browser, shared_server: Server, model: ScriptedModel, version: int, tmp_path: Path
) -> Iterator[SimpleNamespace]:
    with served(copy_example(tmp_path, version), THREADKEEP_URL=shared_server.url) as url:
        yield SimpleNamespace(url=url, headers=shared_server.headers)
    with shared_server.client() as client:
        client.delete("/api/users/local").raise_for_status()


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="message").fill(text)
    page.get_by_role("button", name="Send").click()


def texts(page: Page) -> list[str]:
    """What is said, message by message."""
    return page.locator("article").evaluate_all(
        "all => all.map(it => [...it.querySelectorAll('span')].map(span => span.textContent).join('|'))"
    )


def test_example_has_the_versions_that_are_tested():
    tested = json.loads((PACKAGES / "package.json").read_text())["dependencies"]
    example = json.loads((EXAMPLE / "package.json").read_text())
    assert {**example["dependencies"], **example["devDependencies"]}.items() <= tested.items()


def test_person_chats_reloads_stops_edits_and_asks_again(page: Page, model: ScriptedModel, version: int):
    gate = Gate()
    model.script([Say("Once upon"), Wait(gate), Say(" a time.")])
    dot = {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL}
    page.get_by_label("Files").set_input_files(dot)  # pyright: ignore[reportArgumentType]
    say(page, "Tell me a story.")
    article = page.locator("article")
    expect(article.last).to_contain_text("Once upon")
    page.reload()  # in the middle of the answer
    expect(article.last).to_contain_text("Once upon")
    gate.open()
    expect(article.last).to_contain_text("Once upon a time.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert texts(page) == ["Tell me a story.", "Once upon a time."]
    image = page.locator("article img")
    expect(image).to_have_count(1)
    assert image.evaluate("it => it.complete && it.naturalWidth > 0 || it.decode().then(() => true)")

    model.script([Say("Another one.")])
    page.get_by_role("button", name="Answer again").click()
    expect(article.last).to_contain_text("Another one.")
    model.script([Say("A short one.")])
    page.get_by_role("button", name="Edit").click()
    say(page, "Tell me a short story.")
    expect(article.last).to_contain_text("A short one.")
    assert texts(page) == ["Tell me a short story.", "A short one."]

    gate = Gate()
    model.script([Say("It was"), Wait(gate)], [Say("Never mind.")])
    say(page, "And then?")
    expect(article.last).to_contain_text("It was")
    page.get_by_role("button", name="Stop").click()
    say(page, "Well?")
    expect(article.last).to_contain_text("Never mind.")
    gate.open()
    expected = ["Tell me a short story.", "A short one.", "And then?", "It was", "Well?", "Never mind."]
    assert texts(page) == expected
    page.reload()
    expect(article).to_have_count(6)
    assert texts(page) == expected


@pytest.mark.parametrize("version", [6, 7], indirect=True)
def test_person_is_asked_before_a_tool_runs(page: Page, shared_server: Server, model: ScriptedModel):
    settings = {"mcpServers": {"easel": EASEL}, "tools": {"easel.note": {"access": "ask"}}}
    with shared_server.client() as client:
        agent = client.post("/api/agents", json={"name": "Clerk", "settings": settings}).json()["id"]
        client.post(f"/api/agents/{agent}/mcp-servers/easel/test").raise_for_status()
        chat = client.post(f"/api/agents/{agent}/conversations", json={"title": "Notes"}).json()["id"]
    page.goto(f"/#{chat}")  # a conversation of ours is a chat, too
    page.reload()
    for answer, state in (("Allow", "output-available"), ("Deny", "output-denied")):
        model.script([UseTool("easel__note", {"text": answer})], [Say(f"Decided: {answer}.")])
        say(page, "Note it.")
        expect(page.locator("article").last).to_contain_text("approval-requested")
        page.reload()
        page.get_by_role("button", name=answer).click()
        expect(page.locator("article").last).to_contain_text(f"Decided: {answer}.")
        expect(page.locator("article").last).to_contain_text(state)
