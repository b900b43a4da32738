"""The page of examples/react-chat, which React hooks make, as a person uses it."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from scripts import example
from scripts import page as page_build

from tests.browser.conftest import PATIENCE_MS
from tests.browser.relay import Relay, relayed
from tests.docs.pages import DOCS, blocks
from tests.serving import Server
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait
from threadkeep.testing.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "react-chat"
MOST_LINES = 150


@contextmanager
def served(folder: Path, threadkeep: str) -> Generator[str]:
    """The example's own page, as its `run` shows it; its address."""
    program = subprocess.Popen(
        [sys.executable, "-m", "scripts.example", str(folder), "--port", "0", "--clearScreen", "false"],
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


@contextmanager
def opened(browser: Browser, folder: Path, server: Server, address: str) -> Generator[Page]:
    """An example's page in the browser; it must not fail."""
    complaints: list[str] = []
    with (
        served(folder, address) as url,
        # Once a program was added, which another test may do, the server requires its token.
        browser.new_context(base_url=url, extra_http_headers=server.headers) as context,
    ):
        context.set_default_timeout(PATIENCE_MS)
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        page = context.new_page()
        page.goto("/")
        yield page
    assert complaints == []


@pytest.fixture
def chat(browser: Browser, server: Server, relay: Relay) -> Iterator[Page]:
    """The example, with an agent that asks its user, also before it remembers anything."""
    asks = {"askUser": True, "tools": {"promptx.promptx_remember": {"access": "ask"}}}
    with server.client() as client:
        client.post("/api/agents", json={"name": "Clerk", "settings": asks}).raise_for_status()
    with opened(browser, EXAMPLE, server, relay.address) as page:
        yield page


def say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.locator("form button").last.click()


def replies(page: Page) -> Locator:
    return page.get_by_role("article", name="Reply").locator("> p")


def compile_types(folder: Path) -> None:
    node, _ = page_build.commands()
    page_build.run([*node, "node_modules/typescript/bin/tsc"], folder=folder)


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


def test_call_is_allowed_with_all_its_arguments_in_view(chat: Page, model: ScriptedModel):
    content = "The user drinks tea." + "\n" * 60 + "Their house may burn."
    model.script([UseTool("promptx_remember", {"content": content})], [Say("It is noted.")])
    chat.get_by_label("Agent").select_option("Clerk")
    say(chat, "Note it")
    request = chat.locator(".request")
    expect(request.locator("pre")).to_contain_text("Their house may burn.")
    request.get_by_role("button", name="Allow").click()
    expect(replies(chat)).to_have_text(["It is noted."])


def test_page_of_the_documentation_talks_and_runs_its_tool(
    browser: Browser, server: Server, model: ScriptedModel, tmp_path: Path
):
    (shown,) = [it for it in blocks(DOCS / "typescript.md") if it.language == "tsx"]
    example.install(EXAMPLE)
    folder = tmp_path / "page"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(EXAMPLE / "node_modules")
    (folder / str(shown.file)).write_text(shown.code)
    compile_types(folder)
    model.script([UseTool("paint", {"color": "rgb(0, 0, 255)"})], [Say("It is blue now.")])
    with opened(browser, folder, server, server.url) as page:
        page.get_by_label("Message").fill("Paint it blue")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_text("assistant: It is blue now.")).to_be_visible()
        expect(page.locator("body")).to_have_css("background-color", "rgb(0, 0, 255)")
        expect(page.get_by_role("navigation")).to_contain_text("0 waiting")
        expect(page.get_by_role("button", name="Paint it blue")).to_be_visible()


def test_example_is_short_and_its_types_are_right():
    example.install(EXAMPLE)
    compile_types(EXAMPLE)
    assert len((EXAMPLE / "src" / "chat.tsx").read_text("utf-8").splitlines()) < MOST_LINES
