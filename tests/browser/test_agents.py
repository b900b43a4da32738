"""Agents: found, shared, changed and deleted by a person, with the keyboard too."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW
from tests.browser.going import choose, open_new
from tests.browser.test_access import violations
from tests.browser.tour import made

# What a toast is above, of all that people read or use.
COVERED = """() => {
    const toast = document.querySelector(".toast").getBoundingClientRect();
    return [".sidebar", ".tabs", ".content", ".top-bar .tools"].filter((it) => {
        const { left, right, top, bottom } = document.querySelector(it).getBoundingClientRect();
        return left < toast.right && right > toast.left && top < toast.bottom && bottom > toast.top;
    });
}"""


def test_private_agent_is_shared_and_deleted_by_keyboard(page: Page):
    made(page, "/api/agents", {"name": "Advisor", "description": "Gives advice."})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/#/agents")
    card = page.get_by_role("listitem").filter(has_text="Advisor")
    expect(card).to_contain_text("You Private")
    more = page.get_by_role("button", name="More actions for Advisor")
    more.press("ArrowDown")
    page.keyboard.press("s")  # from Settings to the next that begins with it
    expect(page.get_by_role("menuitem", name="Share")).to_be_focused()
    page.keyboard.press("Enter")
    question = page.get_by_role("alertdialog", name="Share Advisor?")
    expect(question).to_be_visible()
    assert violations(page) == []
    question.get_by_role("button", name="Make visible and copy link").press("Enter")
    expect(page.get_by_role("status").filter(has_text="Link copied")).to_be_visible()
    expect(card).to_contain_text("Everyone on this server")
    link = page.evaluate("navigator.clipboard.readText()")
    more.press("ArrowUp")
    page.keyboard.press("Enter")
    question = page.get_by_role("alertdialog", name="Delete Advisor?")
    question.get_by_role("button", name="Delete").press("Enter")
    expect(card).to_have_count(0)
    page.goto(link)
    expect(page.get_by_role("heading", name="Agent not found", level=1)).to_be_visible()
    assert violations(page) == []


def test_icon_and_color_are_chosen_by_keyboard_and_shown_where_agents_are(page: Page):
    agent = made(page, "/api/agents", {"name": "Harbour"})
    page.goto(f"/#/agents/{agent}")
    page.get_by_role("radio", name="First letter").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Anchor")).to_be_checked()
    page.get_by_role("radio", name="Blue").check(force=True)
    assert violations(page) == []
    save = page.get_by_role("button", name="Save")
    save.press("Enter")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    expect(save).to_be_focused()
    assert page.evaluate(COVERED) == []
    (shown,) = [it for it in page.request.get("/api/agents").json()["items"] if it["id"] == agent]
    assert (shown["icon"], shown["color"]) == ("anchor", "blue")
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    for tab in page.get_by_role("tab").all():
        expect(tab).to_be_in_viewport(ratio=1)
    page.get_by_role("radio", name="Red").check(force=True)
    save.press("Enter")
    expect(page.get_by_text("Saved", exact=True).last).to_be_visible()
    assert page.evaluate(COVERED) == []
    open_new(page, agent)
    page.get_by_role("button", name="Agent: Harbour").press("ArrowDown")
    chosen = page.get_by_role("menuitemradio", name="Harbour")
    expect(chosen.locator(".agent-face svg")).to_be_visible()
    assert violations(page) == []


def test_changes_are_kept_between_tabs_asked_about_and_refused_at_their_field(page: Page):
    made(page, "/api/agents", {"name": "Advisor"})
    page.goto("/#/agents")
    choose(page, "More actions for Advisor", "Settings")
    name = page.get_by_role("textbox", name="Name")
    save = page.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    name.fill("Counsel")
    page.get_by_role("tab", name="General").press("End")
    temperature = page.get_by_role("spinbutton", name="Temperature")
    temperature.fill("3")
    temperature.press("Enter")
    expect(temperature).to_be_focused()
    expect(temperature).to_have_accessible_description("Must be at most 2.")
    assert violations(page) == []
    page.get_by_role("link", name="Back to agents").press("Enter")
    question = page.get_by_role("alertdialog", name="Discard changes?")
    question.get_by_role("button", name="Cancel").press("Enter")
    temperature.fill("1")
    temperature.press("Enter")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    page.get_by_role("tab", name="General").click()
    expect(name).to_have_value("Counsel")
    page.go_back()
    question.get_by_role("button", name="Discard").press("Enter")
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    expect(page.get_by_role("heading", name="Advisor", level=2)).to_be_visible()
