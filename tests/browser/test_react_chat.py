"""The page of examples/react-chat, which React hooks make, as a person uses it."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.relay import Relay, relayed
from tests.serving import Server
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait
from threadkeep.testing.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "react-chat"
MOST_LINES = 150


@contextmanager
def served(example: Path, threadkeep: str) -> Iterator[str]:
    """The example's own page, as its `run` shows it; its address."""
    program = subprocess.Popen(
        [sys.executable, "-m", "scripts.example", str(example), "--port", "0", "--clearScreen", "false"],
        cwd=ROOT,
        env={**os.environ, "THREADKEEP_URL": threadkeep, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: Queue[str] = Queue()
    assert program.stdout
    reader = threading.Thread(target=lambda: [lines.put(line) for line in program.stdout or ()])
    reader.start()
    try:
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
            said += lines.get(timeout=PATIENCE_S)
        yield found[0]
    finally:
        program.terminate()
        program.wait(PATIENCE_S)
        reader.join(PATIENCE_S)
        program.stdout.close()


@pytest.fixture
def relay(server: Server) -> Iterator[Relay]:
    """The network between the page and Threadkeep."""
    with relayed(server.url) as relay:
        yield relay


@pytest.fixture
def chat(browser: Browser, server: Server, relay: Relay) -> Iterator[Page]:
    """The page, with an agent that asks its user."""
    with server.client() as client:
        client.post("/api/agents", json={"name": "Clerk", "settings": {"askUser": True}}).raise_for_status()
    complaints: list[str] = []
    with served(EXAMPLE, relay.address) as address, browser.new_context(base_url=address) as context:
        context.set_default_timeout(PATIENCE_MS)
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        page = context.new_page()
        page.goto("/")
        yield page
    assert complaints == []


def say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.locator("form button").last.click()


def replies(page: Page) -> Locator:
    return page.get_by_role("article", name="Reply").locator("> p")


def test_page_streams_resumes_asks_and_branches(chat: Page, relay: Relay, model: ScriptedModel):
    gate = Gate()
    model.script(
        [Say("One. "), Wait(gate), Say("Two.")],
        [Say("Three.")],
        [UseTool("ask_user", {"question": "Which room?", "choices": ["Blue", "Green"]})],
        [Say("The green room is yours.")],
        [Say("Four.")],
    )
    # A new conversation streams, waits with what is sent meanwhile, and goes on after the connection broke.
    chat.get_by_label("Agent").select_option("Clerk")
    say(chat, "Count")
    expect(replies(chat)).to_have_text(["One. "])
    say(chat, "Go on")
    expect(chat.get_by_role("article", name="Queued")).to_contain_text("Go on")
    relay.cut()
    gate.open()
    expect(replies(chat)).to_have_text(["One. Two.", "Three."])
    expect(chat.get_by_role("navigation").get_by_role("link", name="Count")).to_be_visible()
    # A question is still there after a reload, and is answered.
    say(chat, "Book a room")
    expect(chat.get_by_role("group", name="Which room?")).to_be_visible()
    chat.reload()
    chat.get_by_role("group", name="Which room?").get_by_role("button", name="Green").click()
    expect(replies(chat).last).to_have_text("The green room is yours.")
    # Another version of a message, and back.
    chat.get_by_role("article", name="You").nth(1).get_by_role("button", name="Edit").click()
    say(chat, "Go further")
    expect(replies(chat)).to_have_text(["One. Two.", "Four."])
    chat.get_by_role("button", name="Previous version").click()
    expect(replies(chat)).to_have_text(["One. Two.", "Three.", "The green room is yours."])
    expect(chat.get_by_role("group", name="Version 1 of 2")).to_be_visible()


def test_example_stays_short():
    assert len((EXAMPLE / "src" / "chat.tsx").read_text("utf-8").splitlines()) < MOST_LINES
