"""The list of conversations: pins, menus, search, what was put away, and a sidebar that can be hidden."""

from playwright.sync_api import Locator, Page, expect

from tests.browser import tour
from tests.browser.conftest import NARROW
from tests.browser.going import choose
from tests.browser.test_access import violations
from threadkeep.testing import Say, ScriptedModel


def listed(page: Page, group: str) -> Locator:
    """The titles of a group of the list."""
    return page.get_by_role("navigation").get_by_role("region", name=group).get_by_role("link")


def make(page: Page, *titles: str) -> None:
    """Makes a conversation for each title, the last one newest."""
    agent = page.request.get("/api/agents").json()["items"][0]["id"]
    for title in titles:
        page.request.post(f"/api/agents/{agent}/conversations", data={"title": title})
    page.reload()


def test_row_menu_pins_and_renames_by_keyboard(page: Page):
    make(page, "Ferry", "Tea", "Report")
    expect(listed(page, "Today")).to_have_text(["Report", "Tea", "Ferry"])
    page.get_by_role("button", name="Actions for Ferry").focus()
    page.keyboard.press("ArrowDown")
    assert violations(page) == []
    page.keyboard.press("Enter")  # Pin
    expect(listed(page, "Pinned")).to_have_text(["Ferry"])
    expect(listed(page, "Today")).to_have_text(["Report", "Tea"])
    page.get_by_role("button", name="Actions for Ferry").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("r")
    page.keyboard.press("Enter")
    title = page.get_by_role("textbox", name="Title")
    expect(title).to_be_focused()
    title.fill("Ferry names")
    title.press("Enter")
    expect(listed(page, "Pinned")).to_have_text(["Ferry names"])
    expect(listed(page, "Pinned")).to_be_focused()
    choose(page, "Actions for Ferry names", "Rename")
    title.fill("Something else")
    title.press("Escape")
    page.reload()
    expect(listed(page, "Pinned")).to_have_text(["Ferry names"])


def test_only_the_rows_near_the_view_are_mounted(page: Page):
    make(page, *(f"Trip {number}" for number in range(100)))
    trips = listed(page, "Today")
    expect(trips.first).to_have_text("Trip 99")
    trips.first.focus()
    oldest = page.get_by_role("link", name="Trip 0", exact=True)
    while not oldest.is_visible():  # what is at the end loads more
        page.keyboard.press("End")
        page.wait_for_timeout(50)
    page.keyboard.press("End")
    expect(oldest).to_be_focused()
    expect(oldest).to_be_in_viewport()
    assert trips.count() < 60
    assert violations(page) == []
    # It is left where it is, and still there.
    scroller = page.locator(".conversations .list")
    scroller.evaluate("it => it.scrollTop = 0")
    expect(trips.first).to_have_text("Trip 99")
    expect(oldest).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("link", name="Trip 1", exact=True)).to_be_in_viewport()


def test_archived_and_deleted_conversations_have_their_pages_and_come_back(page: Page):
    make(page, "Ferry", "Tea", "Report")
    choose(page, "Actions for Ferry", "Archive")
    choose(page, "Actions for Tea", "Delete")
    choose(page, "Actions for Report", "Delete")
    expect(page.get_by_text("No conversations yet")).to_be_visible()

    choose(page, "Profile", "Archived conversations")
    expect(page.get_by_role("heading", level=1)).to_have_text("Archived conversations")
    expect(page.get_by_role("main").get_by_role("listitem").get_by_role("link")).to_have_text(["Ferry"])
    assert violations(page) == []
    page.get_by_role("button", name="Unarchive Ferry").click()
    expect(page.get_by_text("No archived conversations")).to_be_visible()
    expect(listed(page, "Today")).to_have_text(["Ferry"])
    page.get_by_role("status").get_by_role("button", name="Undo").last.click()
    expect(page.get_by_role("main").get_by_role("listitem").get_by_role("link")).to_have_text(["Ferry"])

    choose(page, "Profile", "Recently deleted")
    expect(page.get_by_role("heading", level=1)).to_have_text("Recently deleted")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_role("main").get_by_role("listitem").first).to_contain_text(
        "deleted permanently in 30 days"
    )
    page.get_by_role("button", name="Restore Tea").click()
    expect(listed(page, "Today")).to_have_text(["Tea"])
    page.get_by_role("button", name="Delete permanently: Report").click()
    question = page.get_by_role("alertdialog", name="Delete permanently")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Restore Report")).to_be_visible()
    page.get_by_role("button", name="Delete permanently: Report").click()
    question.get_by_role("button", name="Delete permanently").click()
    expect(page.get_by_text("No deleted conversations")).to_be_visible()


def test_all_hits_of_a_conversation_are_reached_by_keyboard(page: Page, model: ScriptedModel):
    make(page, "Animals")
    conversation = page.request.get("/api/conversations").json()["items"][0]["id"]
    for number in range(3):
        model.script([Say(f"Zebra {number}.")])
        content = {"content": f"Zebra {number}?"}
        page.request.post(f"/api/conversations/{conversation}/messages?wait=true", data=content)
    hits = tour.search(page, "zebra", count=6)
    expect(hits).to_have_count(3)
    expect(page.get_by_role("option", name="3 more in this conversation")).to_be_visible()
    assert violations(page) == []
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(hits).to_have_count(6)
    expect(page.get_by_role("option", selected=True)).to_contain_text("Zebra 1?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Animals")


def test_search_by_a_beginning_shows_text_with_agent_and_date_and_is_limited_by_both(
    page: Page, model: ScriptedModel
):
    model.script([Say("A **zebra** is [striped](https://example.org).")], [Say("A zebra runs.")])
    make(page, "Zebra drawings")
    conversation = page.request.get("/api/conversations").json()["items"][0]["id"]
    for question in ("First", "Second"):
        page.request.post(f"/api/conversations/{conversation}/messages?wait=true", data={"content": question})
    make(page, "Tea")
    hits = tour.search(page, "zeb", count=2)
    palette = page.get_by_role("dialog", name="Search or run a command")
    expect(palette.get_by_text("Zebra drawings")).to_have_count(1)
    expect(hits).to_have_count(2)
    expect(hits.first).to_contain_text("A zebra runs.")
    expect(hits.first).to_contain_text("Assistant · Just now")
    expect(hits.last).to_contain_text("A zebra is striped.")
    expect(hits.last.locator("mark")).to_have_text("zebra")
    assert violations(page) == []
    # By keyboard to the filters and back: there is nothing of the Guide's, nor of long ago.
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(palette.get_by_role("button", name="Date: Any time")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    palette.get_by_label("Last day").fill("2020-01-01")
    expect(palette.get_by_role("status")).to_have_text("No results within these filters")
    palette.get_by_role("button", name="Search without filters").click()
    expect(hits).to_have_count(2)
    palette.get_by_role("combobox").focus()
    page.keyboard.press("ArrowDown")
    expect(hits.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Zebra drawings")
    expect(page.get_by_role("log").get_by_text("is striped")).to_be_in_viewport()


def test_new_conversation_is_a_click_away_where_the_sidebar_is_not(page: Page):
    make(page, "Ferry")
    page.get_by_role("link", name="Ferry").first.click()
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    page.get_by_role("main").get_by_role("button", name="New conversation", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What can I help with?")
    page.get_by_role("button", name="Open menu").click()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("combobox", name="Search or run a command")).to_be_focused()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_role("combobox", name="Search or run a command")).to_be_hidden()


def test_sidebar_is_hidden_and_stays_hidden(page: Page):
    sidebar = page.get_by_role("navigation", name="Conversations")
    expect(sidebar).to_be_visible()
    page.keyboard.press("Control+b")
    expect(sidebar).to_be_hidden()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(sidebar).to_be_hidden()
    page.get_by_role("button", name="Open menu").click()
    expect(sidebar).to_be_visible()
    page.get_by_role("button", name="Hide sidebar").click()
    expect(sidebar).to_be_hidden()


def test_conversation_restored_in_another_tab_is_not_deleted_forever(page: Page):
    make(page, "Report")
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    path = f"/api/conversations/{conversation['id']}"
    page.request.delete(path)
    choose(page, "Profile", "Recently deleted")
    page.get_by_role("button", name="Delete permanently: Report").click()
    question = page.get_by_role("alertdialog", name="Delete permanently")
    page.request.post(f"{path}/restore")  # while the question is open
    question.get_by_role("button", name="Delete permanently").click()
    told = page.get_by_role("status").filter(has_text="“Report” was restored meanwhile. Nothing was deleted.")
    expect(told).to_be_visible()
    assert page.request.get(path).status == 200
