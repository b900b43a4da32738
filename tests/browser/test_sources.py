"""Answers from documents: what was found stands below them, and marks lead to it."""

import re

from playwright.sync_api import Page, expect

from tests.browser.going import open_agent
from tests.browser.test_access import violations
from tests.browser.test_talking import done, reply, say
from threadkeep.testing import Say, ScriptedModel, UseTool

HANDBOOK = b"# Returns\n\nA customer may return goods within 30 days.\n\n# Shipping\n\nWe ship on weekdays.\n"


def test_person_uploads_a_document_asks_about_it_and_sees_the_source(page: Page, model: ScriptedModel):
    open_agent(page, "Documents")
    file = {"name": "handbook.md", "mimeType": "text/markdown", "buffer": HANDBOOK}
    page.locator("input[type=file]").set_input_files(file)  # pyright: ignore[reportArgumentType]
    expect(page.get_by_role("listitem").filter(has_text="handbook.md")).to_contain_text("ready")
    model.script(
        [UseTool("search_documents", {"query": "When can goods be returned?"})],
        [Say("Within 30 days [1]. Not [9].")],
    )
    page.get_by_role("button", name="Start chat").click()
    say(page, "When can goods be returned?")
    done(page)
    sources = page.get_by_role("group", name="Sources")
    expect(sources.get_by_role("button")).to_have_text(["1handbook.md"])
    expect(reply(page).get_by_role("button")).to_have_text(["[1]"])
    _point_at_the_chip(page)
    _look_at_the_citation(page)
    page.reload()
    expect(page.get_by_role("group", name="Sources")).to_contain_text("handbook.md")


def _point_at_the_chip(page: Page) -> None:
    """It shows the passage, as the marks do."""
    page.get_by_role("group", name="Sources").get_by_text("handbook.md").hover()
    preview = page.get_by_role("tooltip")
    expect(preview).to_contain_text("within 30 days")
    expect(preview).not_to_contain_text("#")  # rendered, not Markdown
    page.mouse.move(0, 0)
    expect(preview).to_be_hidden()


def _look_at_the_citation(page: Page) -> None:
    """A preview for the pointer and for the keyboard; the passage where one opens it."""
    mark = reply(page).get_by_role("button", name="[1]")
    preview = page.get_by_role("tooltip")
    mark.hover()
    expect(preview).to_contain_text("handbook.md")
    expect(preview).to_contain_text("% match")
    preview.hover()
    page.wait_for_timeout(500)  # longer than a pointer may be away
    expect(preview).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(preview).to_be_hidden()
    page.mouse.move(0, 0)
    page.get_by_role("group", name="Sources").get_by_role("button").first.focus()
    page.keyboard.press("Shift+Tab")
    expect(mark).to_be_focused()
    expect(mark).to_have_accessible_description(re.compile("within 30 days"))
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="handbook.md")
    document = drawer.get_by_role("region", name="Document")
    expect(document.locator(".passage[data-cited]")).to_contain_text("within 30 days")
    expect(document).to_contain_text("We ship on weekdays.")  # not cited, nor found
    expect(preview).to_be_hidden()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(mark).to_be_focused()
