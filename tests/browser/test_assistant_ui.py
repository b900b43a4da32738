"""assistant-ui's runtime and parts, on the adapter of docs/clients.md, as a person uses them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.clients.ai_sdk.driver import PACKAGES
from tests.clients.ai_sdk.pages import served
from tests.corpus.stage import PIXEL
from tests.docs.pages import DOCS, blocks
from tests.serving import Server
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait

PAGE = PACKAGES.parent / "assistant-ui"


@pytest.fixture
def server(
    browser: Browser, shared_server: Server, model: ScriptedModel, tmp_path: Path
) -> Iterator[SimpleNamespace]:
    (adapter,) = [it.code for it in blocks(DOCS / "clients.md") if it.file == "threadkeep.jsx"]
    page = Path(shutil.copytree(PAGE, tmp_path / "page"))
    with served(page, {"threadkeep.jsx": adapter}, THREADKEEP_URL=shared_server.url) as url:
        yield SimpleNamespace(url=url, headers=shared_server.headers)
    with shared_server.client() as client:
        client.delete("/api/users/local").raise_for_status()


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message", exact=True).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def answer(page: Page) -> Locator:
    return page.locator("[data-role=assistant]").last


def texts(page: Page) -> list[str]:
    return page.locator("[data-role] span").all_text_contents()


def test_person_uses_threads_attachments_edit_reload_and_a_tool_of_the_page(
    page: Page, shared_server: Server, model: ScriptedModel
):
    with shared_server.client() as client:
        agent = client.post("/api/agents", json={"name": "Guide"}).json()["id"]
    page.goto(f"/#{agent}")
    page.reload()
    model.script([Say("A dot.")])
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Attach").click()
    choosing.value.set_files({"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL})  # pyright: ignore[reportArgumentType]
    expect(page.locator("b")).to_have_text("dot.png")
    say(page, "What is this?")
    expect(answer(page)).to_contain_text("A dot.")

    model.script([Say("A small dot.")])
    page.get_by_role("button", name="Reload").click()
    expect(answer(page)).to_contain_text("A small dot.")
    model.script([Say("It is grey.")])
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edited message").fill("Which colour?")
    page.get_by_role("button", name="Send edited").click()
    expect(answer(page)).to_contain_text("It is grey.")
    assert texts(page) == ["Which colour?", "It is grey."]

    model.script([UseTool("locate", {"exact": True})], [Say("You are in room 7.")])
    say(page, "Where am I?")
    expect(answer(page)).to_contain_text("You are in room 7.")
    expect(answer(page).locator("code")).to_have_text('locate: {"place":"Room 7"}')

    gate = Gate()
    model.script([Say("Once upon"), Wait(gate)], [Say("Never mind.")])
    say(page, "Tell me a story.")
    expect(answer(page)).to_contain_text("Once upon")
    page.get_by_role("button", name="Cancel").click()
    say(page, "Well?")
    expect(answer(page)).to_contain_text("Never mind.")
    gate.open()

    # Another thread, and back to the first after a reload.
    model.script([Say("Another thread.")])
    page.get_by_role("button", name="New thread").click()
    say(page, "Hello?")
    expect(answer(page)).to_contain_text("Another thread.")
    page.reload()
    threads = page.get_by_role("navigation", name="Threads")
    threads.get_by_role("button", name="What is this?").click()
    expect(answer(page)).to_contain_text("Never mind.")
    assert texts(page) == [
        *("Which colour?", "It is grey.", "Where am I?", "You are in room 7."),
        *("Tell me a story.", "Once upon", "Well?", "Never mind."),
    ]
    with shared_server.client() as client:
        listed = client.get(f"/api/agents/{agent}/conversations").json()["items"]
    assert [it["title"] for it in listed] == ["Hello?", "What is this?"]
