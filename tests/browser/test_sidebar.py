"""The list of conversations: pins, menus, search, what was put away, and a sidebar that can be hidden."""

from playwright.sync_api import Locator, Page, expect

from tests.browser import tour
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


def test_archived_and_deleted_conversations_have_their_pages_and_come_back(page: Page):
    make(page, "Ferry", "Tea", "Report")
    choose(page, "Actions for Ferry", "Archive")
    choose(page, "Actions for Tea", "Delete")
    choose(page, "Actions for Report", "Delete")
    expect(page.get_by_text("No conversations yet")).to_be_visible()

    choose(page, "Profile", "Archived conversations")
    expect(page.get_by_role("heading", level=1)).to_have_text("Archived conversations")
    expect(page.get_by_role("main").get_by_role("link")).to_have_text(["Ferry"])
    assert violations(page) == []
    page.get_by_role("button", name="Unarchive Ferry").click()
    expect(page.get_by_text("No archived conversations")).to_be_visible()
    expect(listed(page, "Today")).to_have_text(["Ferry"])
    page.get_by_role("status").get_by_role("button", name="Undo").last.click()
    expect(page.get_by_role("main").get_by_role("link")).to_have_text(["Ferry"])

    choose(page, "Profile", "Recently deleted")
    expect(page.get_by_role("heading", level=1)).to_have_text("Recently deleted")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_role("main").get_by_role("listitem").first).to_contain_text("gone for good in 30 days")
    page.get_by_role("button", name="Restore Tea").click()
    expect(listed(page, "Today")).to_have_text(["Tea"])
    page.get_by_role("button", name="Delete forever: Report").click()
    question = page.get_by_role("alertdialog", name="Delete forever")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Restore Report")).to_be_visible()
    page.get_by_role("button", name="Delete forever: Report").click()
    question.get_by_role("button", name="Delete forever").click()
    expect(page.get_by_text("No deleted conversations")).to_be_visible()


def test_search_groups_messages_by_conversation_and_arrow_keys_go_through_them(
    page: Page, model: ScriptedModel
):
    model.script([Say("A zebra is striped.")], [Say("A zebra runs.")])
    make(page, "Zebra drawings")
    conversation = page.request.get("/api/conversations").json()["items"][0]["id"]
    for question in ("First", "Second"):
        page.request.post(f"/api/conversations/{conversation}/messages?wait=true", data={"content": question})
    make(page, "Tea")
    hits = tour.search(page, "zebra")
    results = page.get_by_role("list", name="Search results")
    expect(results.get_by_role("link", name="Zebra drawings")).to_have_count(1)
    expect(hits).to_have_count(2)
    expect(hits.first.locator("mark")).to_have_text("zebra")
    assert violations(page) == []
    field = page.get_by_role("searchbox", name="Search conversations")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(hits.last).to_be_focused()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Zebra drawings")
    field.focus()
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(listed(page, "Today")).to_have_text(["Tea", "Zebra drawings"])


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
    page.get_by_role("button", name="Delete forever: Report").click()
    question = page.get_by_role("alertdialog", name="Delete forever")
    page.request.post(f"{path}/restore")  # while the question is open
    question.get_by_role("button", name="Delete forever").click()
    expect(page.get_by_role("status")).to_contain_text(
        "“Report” was restored meanwhile. Nothing was deleted."
    )
    assert page.request.get(path).status == 200
