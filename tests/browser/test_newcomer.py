"""The first minutes: no key, no account, the embedded model."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import WIDE
from tests.browser.going import open_agent
from tests.browser.test_talking import done, log, reply, say
from tests.browser.tour import HANDBOOK
from tests.serving import Server

# A model on a processor that others use, too.
MODELS_PATIENCE_MS = 120_000


def open_page(browser: Browser, server: Server) -> Page:
    page = browser.new_page(viewport=WIDE, base_url=server.url, locale="en-GB")  # pyright: ignore[reportArgumentType]
    page.set_default_timeout(MODELS_PATIENCE_MS)
    page.goto("/")
    return page


def stop_when_it_speaks(page: Page, replies: int) -> None:
    expect(page.get_by_role("article", name="Reply")).to_have_count(replies)
    expect(reply(page)).not_to_be_empty(timeout=MODELS_PATIENCE_MS)
    # It may have come to its end by itself.
    if page.get_by_role("button", name="Stop").is_visible():
        page.get_by_role("button", name="Stop").click()
    done(page)


def expect_found(page: Page, source: str) -> None:
    """Such a small model may cite it or not."""
    sources = page.get_by_role("group", name="Sources")
    expect(sources).to_be_visible()
    if (others := sources.get_by_role("button", expanded=False)).is_visible():
        others.click()
    expect(sources).to_contain_text(source)


@pytest.mark.timeout(600)
def test_newcomer_talks_stops_asks_about_a_document_and_finds_it_all_after_a_restart(
    browser: Browser, tmp_path: Path
):
    with Server(tmp_path) as server:
        page = open_page(browser, server)
        expect(page.get_by_text("demo model")).to_be_visible()
        page.get_by_role("button", name="What is gravity?").click()
        page.get_by_role("button", name="Regenerate").wait_for()
        expect(reply(page)).not_to_be_empty()
        say(page, "Tell me a very long story about the sea.")
        stop_when_it_speaks(page, 2)
        open_agent(page, "Documents")
        file = {"name": "handbook.md", "mimeType": "text/markdown", "buffer": HANDBOOK}
        page.locator("input[type=file]").set_input_files(file)  # pyright: ignore[reportArgumentType]
        document = page.get_by_role("listitem").filter(has_text="handbook.md")
        expect(document).to_contain_text("ready", timeout=MODELS_PATIENCE_MS)
        page.get_by_role("button", name="Start chat").click()
        say(page, "When can goods be returned?")
        stop_when_it_speaks(page, 1)
        expect_found(page, "handbook.md")
        page.close()
    with Server(tmp_path) as server:
        page = open_page(browser, server)
        links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
        expect(links).to_have_text(["When can goods be returned?", "What is gravity?"])
        links.last.click()
        expect(page.get_by_role("article", name="You said")).to_have_count(2)
        links.first.click()
        expect_found(page, "handbook.md")
        expect(log(page)).to_contain_text("When can goods be returned?")
        page.close()
