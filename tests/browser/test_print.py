"""An exported conversation on paper: long results of tools don't push each other to pages of their own."""

import pypdfium2
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_imports import choose, export
from tests.imports.foreign import claude


def test_export_prints_without_gaps_and_with_page_numbers(page: Page, browser: Browser):
    page.goto("/#/import")
    choose(page, export(claude()))
    page.get_by_role("main").get_by_role("link", name="Deposits").click()
    expect(page.get_by_text("Three rents, says the lease.")).to_be_visible()
    conversation_id = page.url.rpartition("/")[2]
    exported = page.request.get(f"/api/conversations/{conversation_id}/export?format=html")
    context = browser.new_context()
    paper = context.new_page()
    paper.set_content(exported.text())
    document = pypdfium2.PdfDocument(paper.pdf(format="A4"))
    context.close()
    pages = [document[number].get_textpage().get_text_range() for number in range(len(document))]
    assert "reader" in pages[0] and "xxxxxxxx" in pages[0], "the result begins below its call"
    assert "Three rents, says the lease." in pages[-1]
    assert f"{len(pages)} / {len(pages)}" in pages[-1]
