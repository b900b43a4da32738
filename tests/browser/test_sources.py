"""Answers from documents: what was found stands below them, and marks lead to it."""

from playwright.sync_api import Page, expect

from tests.browser.test_talking import answer, done, say
from tests.browser.tour import open_agent
from threadkeep.testing import Say, ScriptedModel, UseTool

HANDBOOK = b"# Returns\n\nA customer may return goods within 30 days.\n\n# Shipping\n\nWe ship on weekdays.\n"


def test_person_uploads_a_document_asks_about_it_and_sees_the_source(page: Page, model: ScriptedModel):
    open_agent(page)
    page.get_by_role("tab", name="Documents").click()
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
    expect(sources).to_contain_text("handbook.md")
    expect(sources).to_contain_text("within 30 days")
    expect(answer(page).get_by_role("button")).to_have_text(["[1]"])
    answer(page).get_by_role("button", name="[1]").click()
    expect(sources.get_by_role("listitem").first).to_be_focused()
    page.reload()
    expect(page.get_by_role("group", name="Sources")).to_contain_text("handbook.md")
