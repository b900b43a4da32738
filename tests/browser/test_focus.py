"""Where the keyboard is while the page changes by itself, and after something closes."""

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import NARROW
from tests.browser.test_sidebar import listed, make
from tests.browser.test_talking import done, log, say
from threadkeep.testing import Pause, Say, ScriptedModel


def test_menu_stays_open_and_focused_while_a_reply_streams_and_the_list_moves(
    page: Page, model: ScriptedModel
):
    make(page, "Ferry", "Tea", "Report")
    pieces = [it for nth in range(40) for it in (Say(f"Line {nth}.\n\n"), Pause(0.05))]
    model.script(pieces)
    say(page, "Tell me a lot")
    expect(log(page)).to_contain_text("Line 0.")
    page.get_by_role("button", name="Actions for Report").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    rename = page.get_by_role("menuitem", name="Rename")
    expect(rename).to_be_focused()
    # Another one moves to the top, and all rows above it move.
    ferry = page.request.get("/api/conversations").json()["items"][-1]
    assert ferry["title"] == "Ferry"
    model.script([Say("It sails.")])
    page.request.post(f"/api/conversations/{ferry['id']}/messages", data={"content": "Now?"})
    expect(listed(page, "Today").first).to_have_text("Ferry")
    done(page)
    expect(rename).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Actions for Report")).to_be_focused()


def test_menu_that_was_opened_while_a_conversation_begins_keeps_the_focus(page: Page, model: ScriptedModel):
    make(page, "Report")
    model.script([Say("Here.")])
    held: list[Route] = []
    page.route(
        "**/conversations", lambda it: held.append(it) if it.request.method == "POST" else it.continue_()
    )
    with page.expect_request(lambda it: it.method == "POST" and it.url.endswith("/conversations")):
        say(page, "Are you there?")
    page.get_by_role("button", name="Actions for Report").focus()
    page.keyboard.press("ArrowDown")
    held[0].continue_()
    done(page)
    expect(listed(page, "Today")).to_have_text(["Are you there?", "Report"])
    expect(page.get_by_role("menuitem", name="Pin")).to_be_focused()


def test_focus_goes_to_the_next_row_when_one_is_gone(page: Page):
    make(page, "Ferry", "Tea", "Report")
    page.get_by_role("button", name="Actions for Tea").focus()
    page.keyboard.press("ArrowUp")  # Delete
    page.keyboard.press("Enter")
    expect(listed(page, "Today")).to_have_text(["Report", "Ferry"])
    expect(listed(page, "Today").last).to_be_focused()


def test_sidebar_that_covers_the_page_has_the_focus_and_gives_it_back(page: Page):
    make(page, "Ferry")
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    menu = page.get_by_role("button", name="Open menu")
    menu.click()
    expect(page.get_by_role("button", name="New conversation", exact=True)).to_be_focused()
    search = page.get_by_role("button", name="Search")
    search.click()
    expect(page.get_by_role("combobox", name="Search or run a command")).to_be_focused()
    page.keyboard.press("Escape")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
