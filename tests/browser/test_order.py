"""Order: several conversations selected and archived or deleted at once, and brought back."""

from playwright.sync_api import Page, expect

from tests.browser import tour
from tests.browser.conftest import NARROW
from tests.browser.going import choose
from tests.browser.test_access import violations


def test_several_conversations_are_archived_and_deleted_together_and_brought_back(page: Page):
    agent = tour.made(page, "/api/agents", {"name": "Handy"})
    for number in range(1, 6):
        tour.made(page, f"/api/agents/{agent}/conversations", {"title": f"Trip {number}"})
    page.goto("/#/conversations")
    rows = page.get_by_role("main").get_by_role("listitem")
    expect(rows).to_have_count(5)
    page.get_by_label("Select “Trip 5”").press("Space")
    page.get_by_label("Select “Trip 3”").click(modifiers=["Shift"])
    bar = page.get_by_role("group", name="Selection")
    expect(bar).to_contain_text("3 selected")
    assert violations(page) == []
    bar.get_by_role("button", name="Archive").click()
    expect(rows).to_have_count(2)
    expect(page.get_by_role("status").filter(has_text="Archived 3 conversations.")).to_be_visible()
    expect(bar.get_by_role("checkbox")).to_be_focused()
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(5)

    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    bar.get_by_role("checkbox").check()
    bar.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("main").get_by_text("No conversations yet")).to_be_visible()
    page.goto("/#/deleted")
    expect(rows).to_have_count(5)
    bar.get_by_role("checkbox").check()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    bar.get_by_role("button", name="Restore", exact=True).click()
    expect(rows).to_have_count(0)
    page.goto("/#/conversations")
    expect(rows).to_have_count(5)


def test_several_conversations_are_selected_in_the_sidebar(page: Page):
    agent = tour.made(page, "/api/agents", {"name": "Handy"})
    for number in range(1, 7):
        tour.made(page, f"/api/agents/{agent}/conversations", {"title": f"Trip {number}"})
    page.reload()
    sidebar = page.get_by_role("navigation", name="Conversations")
    rows = sidebar.get_by_role("listitem")
    expect(rows).to_have_count(6)
    sidebar.get_by_role("link", name="Trip 6").click()
    # By keyboard, from a row's menu
    page.get_by_role("button", name="Actions for Trip 6").press("Enter")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    expect(sidebar.get_by_label("Select “Trip 6”")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    bar = sidebar.get_by_role("group", name="Selection")
    expect(bar).to_contain_text("3 selected")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    expect(sidebar.get_by_role("link", name="Trip 4")).to_be_focused()
    # With the pointer: the conversation that is open goes, too, and all return.
    sidebar.get_by_role("link", name="Trip 6").click(modifiers=["Shift"])
    sidebar.get_by_text("Trip 3").click(modifiers=["Shift"])
    expect(bar).to_contain_text("4 selected")
    bar.get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(2)
    expect(page.get_by_role("heading", level=1)).to_have_text("What can I help with?")
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(6)

    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    page.get_by_role("button", name="Open menu").click()
    choose(page, "Actions for Trip 5", "Select")
    bar.get_by_role("checkbox").check()
    expect(bar).to_contain_text("6 selected")
    assert violations(page) == []
    bar.get_by_role("button", name="Archive").click()
    expect(rows).to_have_count(0)
