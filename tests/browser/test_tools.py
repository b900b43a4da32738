"""Tools: their steps, progress, charts and what goes wrong with them, with a real MCP server."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.going import choose, open_agent
from tests.browser.test_parts import open_activity
from tests.browser.test_talking import done, log, reply, say
from tests.browser.tour import made
from tests.mcp.running import CHAOS
from threadkeep.testing import Say, ScriptedModel, UseTool

SERVER = {"command": "python", "args": ["-I", "-S", str(CHAOS), "good"]}


@pytest.fixture
def with_tools(unopened: Page) -> Page:
    """The page, at a new conversation with an agent that has tools."""
    body = {"name": "Handy", "settings": {"mcpServers": {"chaos": SERVER}}}
    unopened.goto(f"/#/new/{made(unopened, '/api/agents', body)}")
    return unopened


def test_tool_call_is_a_line_that_opens_into_arguments_status_and_result(
    with_tools: Page, model: ScriptedModel
):
    model.script([UseTool("chaos__echo", {"text": "回声"})], [Say("It said so.")])
    say(with_tools, "Echo")
    done(with_tools)
    line = with_tools.get_by_role("group", name="Activity")
    expect(line).to_contain_text("Ran echo: 回声")
    open_activity(with_tools)
    card = with_tools.get_by_role("group", name="Tool call: echo")
    expect(card).to_contain_text("done")
    expect(card).to_contain_text('"text": "回声"')
    expect(card.locator("pre").last).to_have_text("回声")
    expect(reply(with_tools)).to_have_text("It said so.")


def test_tool_that_fails_says_so_and_the_reply_goes_on(with_tools: Page, model: ScriptedModel):
    model.script([UseTool("chaos__fail", {})], [Say("Then without it.")])
    say(with_tools, "Try")
    done(with_tools)
    expect(with_tools.get_by_role("group", name="Activity")).to_contain_text("failed")
    expect(reply(with_tools)).to_have_text("Then without it.")


def test_chart_is_drawn_and_stays_after_a_reload(with_tools: Page, model: ScriptedModel):
    model.script([UseTool("chaos__chart", {})], [Say("See the chart.")])
    say(with_tools, "Draw")
    done(with_tools)
    for _ in range(2):
        expect(log(with_tools).locator(".chart canvas")).to_be_visible()
        with_tools.reload()


def test_result_of_megabytes_does_not_freeze_the_page(with_tools: Page, model: ScriptedModel):
    model.script([UseTool("chaos__big", {"bytes": 3_000_000})], [Say("That was long.")])
    say(with_tools, "Big")
    done(with_tools)
    open_activity(with_tools)
    card = with_tools.get_by_role("group", name="Tool call: big")
    expect(card).to_contain_text("First 3.9 KB of")
    assert len(card.inner_text()) < 10_000
    box = with_tools.get_by_role("textbox", name="Message")
    box.press_sequentially("still quick")
    expect(box).to_have_value("still quick")


def test_server_is_added_by_pasting_tested_and_removed(page: Page):
    # Not the first program of this server, about which the page asks.
    made(page, "/api/agents", {"name": "Handy", "settings": {"mcpServers": {"chaos": SERVER}}})
    open_agent(page, "Tools")
    expect(page.get_by_text("promptx", exact=True)).to_be_visible()
    page.get_by_role("button", name="Add server").click()
    page.get_by_role("textbox", name="Or paste MCP JSON").fill("no JSON")
    expect(page.get_by_role("button", name="Add", exact=True)).to_be_disabled()
    pasted = json.dumps({"mcpServers": {"chaos": SERVER}})
    page.get_by_role("textbox", name="Or paste MCP JSON").fill(pasted)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Test chaos").click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("button", name="Test chaos"))
    expect(card).to_contain_text("ready")
    expect(card).to_contain_text("progress")
    page.get_by_role("button", name="Remove chaos").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Test chaos")).to_have_count(0)


def test_server_that_is_not_allowed_is_refused_with_the_reason(page: Page):
    open_agent(page, "Tools")
    page.get_by_role("button", name="Add server").click()
    page.get_by_role("textbox", name="Name").fill("shell")
    page.get_by_role("textbox", name="URL or command").fill("bash -c ls")
    page.get_by_role("button", name="Add", exact=True).click()
    place = page.get_by_role("textbox", name="URL or command")
    expect(place).to_have_accessible_description(re.compile("must be one of: python"))
    expect(place).to_be_focused()


def test_document_is_dropped_read_and_found(page: Page):
    open_agent(page, "Documents")
    files = [
        {"name": "handbook.md", "mimeType": "text/markdown", "buffer": b"# Returns\n\nWithin 30 days."},
        {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 nonsense"},
    ]
    page.locator("input[type=file]").set_input_files(files)  # pyright: ignore[reportArgumentType]
    # Its upload may still be listed beside it for a moment.
    expect(
        page.get_by_role("listitem").filter(has_text="handbook.md").filter(has_text="ready")
    ).to_be_visible()
    failed = page.get_by_role("listitem").filter(has_text="broken.pdf")
    expect(failed.filter(has_text="failed")).to_be_visible()
    page.get_by_role("button", name="Delete broken.pdf").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(failed).to_have_count(0)
    page.get_by_role("searchbox", name="Test search").fill("When can I return it?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Results")).to_contain_text("30 days")


def test_file_that_is_refused_says_why_and_one_that_got_lost_is_sent_again(page: Page):
    open_agent(page, "Documents")
    page.route("**/documents", lambda route: route.abort(), times=1)
    files = [
        {"name": "lost.md", "mimeType": "text/markdown", "buffer": b"# Found"},
        {"name": "movie.mp4", "mimeType": "video/mp4", "buffer": b"\x00\x01"},
    ]
    page.locator("input[type=file]").set_input_files(files)  # pyright: ignore[reportArgumentType]
    uploads = page.get_by_role("list", name="Uploads").get_by_role("listitem")
    expect(uploads.filter(has_text="movie.mp4")).to_contain_text("This file type isn’t supported.")
    expect(uploads.filter(has_text="lost.md")).to_contain_text("Upload interrupted.")
    expect(page.get_by_role("status").filter(has_text="2 files were not added.")).to_be_visible()
    page.get_by_role("button", name="Retry lost.md").click()
    expect(page.get_by_role("listitem").filter(has_text="lost.md")).to_contain_text("ready")
    page.get_by_role("button", name="Dismiss movie.mp4").click()
    expect(uploads).to_have_count(0)


def test_files_of_a_tool_reports_and_exports_are_downloaded(with_tools: Page, model: ScriptedModel):
    model.script([UseTool("chaos__picture", {})], [Say("Here is the picture.")])
    say(with_tools, "Paint")
    done(with_tools)
    with_tools.get_by_role("group", name="Files").get_by_role("button").click()
    with with_tools.expect_download() as picture:
        with_tools.get_by_role("button", name="Download").click()
    with_tools.keyboard.press("Escape")
    assert picture.value.path().read_bytes().startswith(b"\x89PNG")
    for name, part in (("HTML", b"<h1"), ("Markdown", b"Paint"), ("JSON", b'"messages"')):
        with with_tools.expect_download() as file:
            choose(with_tools, "More actions", f"Export as {name}")
        assert part in file.value.path().read_bytes()
