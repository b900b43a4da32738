"""`examples/copilotkit`: CopilotKit's own components and hooks in a real browser, with us as its runtime."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS, WIDE, Watched
from tests.browser.test_approvals import ASK, note, results
from tests.browser.test_parts import EASEL
from tests.postgres import free_port
from tests.serving import Server
from threadkeep.testing import Gate, Say, ScriptedModel, Think, UseTool, Wait

EXAMPLE = Path(__file__).parents[2] / "examples" / "copilotkit"
BUILD_S = 600


@pytest.fixture(scope="module")
def built() -> None:
    """The page, built as its README says; what it needs is installed first."""
    subprocess.run(["sh", EXAMPLE / "run", "build", "--logLevel", "error"], check=True, timeout=BUILD_S)


@pytest.fixture(scope="module")
def example(built: None, shared_server: Server) -> Iterator[str]:
    """Where the page is served."""
    port = free_port()
    environment = {**os.environ, "THREADKEEP_URL": shared_server.url, "NO_COLOR": "1"}
    command = ["sh", EXAMPLE / "run", "preview", "--port", str(port), "--strictPort"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = f"http://127.0.0.1:{port}"
        try:
            assert any(url in line for line in process.stdout)
            yield url
        finally:  # whatever went wrong: leaving the block waits for it
            process.terminate()


@pytest.fixture
def context(browser: Browser, server: Server, example: str) -> Iterator[BrowserContext]:
    """A browser at the example; the test fails where the page complained."""
    context = browser.new_context(
        viewport=WIDE,  # pyright: ignore[reportArgumentType]
        base_url=example,
        extra_http_headers=server.headers,
    )
    context.set_default_timeout(PATIENCE_MS)
    watched = Watched(context, example)
    yield context
    context.close()
    assert watched.complaints == []


def say(page: Page, text: str) -> None:
    page.get_by_test_id("copilot-chat-textarea").fill(text)
    page.get_by_test_id("copilot-send-button").click()


def replies(page: Page) -> Locator:
    return page.get_by_test_id("copilot-assistant-message")


def test_chat_goes_on_after_a_reload_and_in_another_tab(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    gates = [Gate(), Gate()]
    model.script([Think("Hm."), Say("One "), Wait(gates[0]), Say("two "), Wait(gates[1]), Say("three.")])
    say(page, "Count")
    expect(replies(page)).to_contain_text("One")
    page.reload()
    expect(page.get_by_test_id("copilot-user-message")).to_contain_text("Count")
    expect(replies(page)).to_contain_text("One")
    gates[0].open()
    expect(replies(page)).to_contain_text("One two")
    other = context.new_page()
    other.goto(page.url)
    expect(replies(other)).to_contain_text("One two")
    gates[1].open()
    for tab in (page, other):
        expect(replies(tab)).to_contain_text("One two three.")
    model.script([Say("Four.")])
    say(other, "And then?")
    expect(replies(other)).to_contain_text(["One two three.", "Four."])
    page.reload()
    expect(replies(page)).to_contain_text(["One two three.", "Four."])


def test_stop_keeps_what_was_said(page: Page, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("two.")], [Say("Hello.")])
    say(page, "Count")
    expect(replies(page)).to_contain_text("One")
    page.get_by_test_id("copilot-send-button").click()  # which stops while the agent answers
    say(page, "Hi")
    expect(replies(page)).to_contain_text(["One", "Hello."])
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    messages = page.request.get(f"/api/conversations/{conversation['id']}/messages").json()["items"]
    assert [it["status"] for it in messages if it["role"] == "assistant"] == ["CANCELLED", "COMPLETED"]
    gate.open()


def test_tool_runs_in_the_page(page: Page, model: ScriptedModel):
    model.script([UseTool("set_colour", {"colour": "rgb(1, 2, 3)"})], [Say("Done.")])
    say(page, "Make it dark")
    expect(page.locator("main")).to_have_css("border-top-color", "rgb(1, 2, 3)")
    expect(replies(page).last).to_contain_text("Done.")
    assert results(model) == ["The frame is rgb(1, 2, 3)."]


@pytest.mark.parametrize(("button", "outcome"), [("Allow", "ok"), ("Deny", "denied")])
def test_person_is_asked_before_a_tool_runs(page: Page, model: ScriptedModel, button: str, outcome: str):
    body = {"name": "Clerk", "settings": {"mcpServers": {"easel": EASEL}, "tools": ASK}}
    agent = page.request.post("/api/agents", data=body).json()["id"]
    page.request.post(f"/api/agents/{agent}/mcp-servers/easel/test")
    page.goto(f"/?agent={agent}")
    model.script(note("buy tea"), [Say("Well.")])
    say(page, "Note it")
    asked = page.get_by_role("group", name="Request")
    expect(asked).to_contain_text("note")
    page.reload()  # it still waits
    asked.get_by_role("button", name=button).click()
    expect(replies(page).last).to_contain_text("Well.")
    expect(asked).to_have_count(0)
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    messages = page.request.get(f"/api/conversations/{conversation['id']}/messages").json()["items"]
    assert [it["status"] for it in messages[-1]["toolCalls"]] == [outcome]
