"""The first MCP program of a server without sign-in, by people whose front ends and tabs go on working."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS, Replying, Watched, settings_for
from tests.browser.going import open_agent
from tests.browser.test_access import violations
from tests.browser.tour import CHAOS
from tests.serving import Server
from threadkeep.http.sign_in.local_token import read_token


@pytest.fixture
def fresh(shared_model: Replying, tmp_path: Path) -> Iterator[Server]:
    """A server that has never run a program."""
    with Server(tmp_path, **settings_for(shared_model), mcp_allowed_commands="python") as server:
        yield server


@pytest.fixture
def without_token(browser: Browser, fresh: Server) -> Iterator[BrowserContext]:
    """A browser that somebody opened at the server's address."""
    context = browser.new_context(locale="en-GB", base_url=fresh.url)
    context.set_default_timeout(PATIENCE_MS)
    watched = Watched(context, fresh.url)
    yield context
    context.close()
    assert watched.complaints == []


def test_page_learns_of_the_token_before_the_first_program_and_stays_in(
    without_token: BrowserContext, fresh: Server
):
    without_token.grant_permissions(["clipboard-read", "clipboard-write"])
    page = without_token.new_page()
    page.goto("/")
    open_agent(page, "Tools")
    add = fill(page)
    add.click()
    callout = page.get_by_role("alert", name="Adding a program needs the server’s token")
    expect(callout).to_contain_text(f"threadkeep open --port {fresh.port}")
    assert violations(page) == []
    opened = without_token.new_page()  # as `threadkeep open` does
    opened.goto(f"/#token={read_token(fresh.data)}")
    expect(opened.get_by_role("textbox", name="Message")).to_be_visible()
    expect(callout).to_contain_text("This page has the token now.")
    opened.close()
    add.click()
    question = page.get_by_role("alertdialog", name="Run a program on this server?")
    expect(question).to_contain_text("every request needs the server’s token")
    assert violations(page) == []
    question.get_by_role("button", name="Cancel").click()
    assert httpx.get(f"{fresh.url}/api/me", trust_env=False).status_code == 200
    add.click()
    question.get_by_role("button", name="Add program").click()
    page.get_by_role("button", name="Copy link with the token").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert violations(page) == []
    assert httpx.get(f"{fresh.url}/api/me", trust_env=False).status_code == 401
    page.get_by_role("button", name="Test chaos").click()
    expect(page.get_by_role("listitem").filter(has_text="chaos")).to_contain_text("ready")
    page.close()
    later = without_token.new_page()
    later.goto("/")
    expect(later.get_by_text("This server needs its access token")).to_be_visible()
    later.goto("about:blank")
    later.goto(link)
    expect(later.get_by_role("textbox", name="Message")).to_be_visible()


def fill(page: Page) -> Locator:
    """Fills in a program; the button that adds it."""
    page.get_by_role("button", name="Add server").click()
    page.get_by_role("textbox", name="Name").fill("chaos")
    page.get_by_role("textbox", name="URL or command").fill(f"python -I -S {CHAOS} good")
    return page.get_by_role("button", name="Add", exact=True)
