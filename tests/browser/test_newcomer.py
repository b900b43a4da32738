"""The first minute: no key, no account, the embedded model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_talking import answer, done, say
from tests.http.process import Server


@pytest.fixture
def server(browser: Browser, tmp_path: Path) -> Iterator[Server]:
    """Threadkeep as it comes."""
    with Server(tmp_path) as server:
        yield server


def test_newcomer_talks_to_the_embedded_model_and_stops_it(page: Page):
    expect(page.get_by_text("demonstration model")).to_be_visible()
    page.get_by_role("button", name="What is gravity?").click()
    done(page)
    expect(answer(page)).not_to_be_empty()
    say(page, "Tell me a very long story about the sea.")
    page.get_by_role("button", name="Stop").click()
    done(page)
    page.reload()
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    expect(links).to_have_text(["What is gravity?"])
    expect(page.get_by_role("article", name="You said")).to_have_count(2)
