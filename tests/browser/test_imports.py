"""Importing on the page: an export is chosen, followed, stopped and found again; a wrong file is named."""

import json
import zipfile
from io import BytesIO
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, Route, expect

from tests.browser import tour
from tests.browser.conftest import NARROW
from tests.browser.going import choose as choose_in_menu
from tests.browser.test_access import violations
from tests.imports.foreign import branched, chatgpt, said


def talk(number: int) -> dict[str, Any]:
    nodes = {
        "q": (None, said("user", f"Question {number}?")),
        "a": ("q", said("assistant", f"Answer {number}: ask at the lighthouse.")),
    }
    return chatgpt(nodes, "a", conversation_id=f"talk {number}", title=f"Talk {number}")


def export(*conversations: Any) -> FilePayload:
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("conversations.json", json.dumps(conversations))
        archive.writestr("chat.html", "<html></html>")
    return {"name": "我的 export.zip", "mimeType": "application/zip", "buffer": written.getvalue()}


def choose(page: Page, file: FilePayload) -> None:
    """Chooses a file with the keyboard."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose file").press("Enter")
    chooser.value.set_files(file)


def test_export_of_chatgpt_is_imported_followed_and_found(page: Page):
    tour.made(page, "/api/agents", {"name": "Harbour"})
    page.goto("/#/settings")
    page.get_by_role("link", name="Import from ChatGPT or Claude").press("Enter")
    expect(page.get_by_role("button", name="Choose file")).to_be_visible()
    assert violations(page) == []
    choose_in_menu(page, "Agent for the conversations", "Harbour")
    flawed = chatgpt({}, None, conversation_id="", title="Broken")
    choose(page, export(branched(), talk(1), talk(2), flawed))
    main = page.get_by_role("main")
    done = main.get_by_role("heading", name="3 conversations imported")
    expect(done).to_be_visible()
    expect(main.get_by_text("我的 export.zip · 1 skipped · 11 messages")).to_be_visible()
    assert violations(page) == []
    main.get_by_text("What was skipped").press("Enter")
    expect(main.get_by_text("“Broken”, conversation 4: it can’t be read")).to_be_visible()
    # The sidebar knows them, and so does the search.
    expect(page.get_by_role("navigation").get_by_text("Talk 2")).to_be_visible()
    main.get_by_role("link", name="Talk 1").press("Enter")
    expect(page.get_by_text("Answer 1: ask at the lighthouse.")).to_be_visible()

    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    page.goto("/#/import")
    choose(page, export(branched(), talk(1), talk(2)))
    expect(main.get_by_role("heading", name="0 conversations imported")).to_be_visible()
    expect(main.get_by_text("3 already imported")).to_be_visible()
    expect(main.get_by_role("heading", name="Earlier imports")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


def test_dropped_wrong_file_is_named_and_the_next_one_works(page: Page):
    page.goto("/#/import")
    zone = page.locator(".drop")
    expect(zone).to_be_visible()
    files = page.evaluate_handle(
        """() => { const data = new DataTransfer();
        data.items.add(new File(["%PDF-1.7"], "scan.pdf")); return data; }"""
    )
    zone.dispatch_event("drop", {"dataTransfer": files})
    expect(page.get_by_role("alert")).to_contain_text(
        "This isn’t an export from ChatGPT, Claude or Threadkeep"
    )
    choose(page, {"name": "conversations.json", "mimeType": "application/json", "buffer": b"[]"})
    expect(page.get_by_role("heading", name="Import failed")).to_be_visible()
    expect(page.get_by_text("The export contains no conversations.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert violations(page) == []


@pytest.mark.parametrize("leaves", [False, True])
def test_import_goes_on_elsewhere_and_is_stopped(page: Page, leaves: bool):
    """The server's word is given by the test: how fast a server imports is no test of the page."""
    run: dict[str, Any] = {
        "id": "01a1ec85-8e0f-74a7-99f4-24562affe1a2", "agentId": "x", "fileName": "export.zip", "size": 9,
        "status": "RUNNING", "found": 214, "done": 120, "imported": 118, "alreadyThere": 2, "empty": 0,
        "leftOut": 0, "messages": 950, "files": 0, "problems": [], "notes": [], "conversations": [],
        "error": None, "startedAt": "2027-01-15T08:00:00Z", "endedAt": None,
    }  # fmt: skip

    def answer(route: Route) -> None:
        if route.request.url.endswith("/stop"):
            run["status"] = "STOPPED"
        is_list = route.request.url.endswith("/imports") and route.request.method == "GET"
        route.fulfill(json={"items": [run], "nextCursor": None} if is_list else run)

    page.route("**/api/imports**", answer)
    page.goto("/#/import")
    expect(page.get_by_role("heading", name="Importing export.zip")).to_be_visible()
    expect(page.get_by_text("120 of 214 conversations · 2 already imported · 950 messages")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_attribute("value", str(120 / 214))
    expect(page.get_by_role("button", name="Choose file")).to_have_count(0)
    assert violations(page) == []
    if leaves:
        page.goto("/#/")
        run.update(status="COMPLETED", imported=212, done=214)
        toast = page.get_by_role("status").filter(has_text="212 conversations imported")
        expect(toast).to_be_visible()
        page.get_by_role("button", name="Show").press("Enter")
        expect(page.get_by_role("heading", name="212 conversations imported")).to_be_visible()
    else:
        page.get_by_role("button", name="Stop import").press("Enter")
        heading = page.get_by_role("heading", name="Stopped: 118 conversations imported.")
        expect(heading).to_be_focused()
        assert violations(page) == []
