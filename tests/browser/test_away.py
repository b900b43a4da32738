"""Knowing without watching: what happens while a tab is hidden is told once, if its user wants that."""

from collections.abc import Sequence

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import NARROW
from tests.browser.test_access import violations
from tests.browser.test_approvals import new_conversation
from tests.browser.test_talking import done, say
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait

# A browser without windows has neither notifications nor hidden tabs.
STAND_IN = """
window.told = [];
window.Notification = class {
    static permission = "default";
    static async requestPermission() {
        localStorage.asked = Number(localStorage.asked ?? 0) + 1;
        return (Notification.permission = "granted");
    }
    constructor(title, { body }) { window.told.push({ title, body, click: () => this.onclick() }); }
    close() {}
};
window.hide = (isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
};
"""


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """The page in a browser with notifications, and tabs that can be hidden."""
    context.add_init_script(STAND_IN)
    page = context.new_page()
    page.goto("/")
    return page


def hide(*pages: Page) -> None:
    for page in pages:
        page.evaluate("hide(true)")


def show(page: Page) -> None:
    page.evaluate("hide(false)")


def told(*pages: Page) -> list[dict[str, str]]:
    """All notifications of these tabs."""
    return [it for page in pages for it in page.evaluate("told.map(({ title, body }) => ({ title, body }))")]


def offer(page: Page) -> Locator:
    return page.get_by_role("region", name="Want to know when an answer is ready?")


def answer_unseen(model: ScriptedModel, question: str, *pages: Page) -> None:
    """An answer in the first tab that is finished while all of them are hidden."""
    gate = Gate()
    model.script([Say("A moment. "), Wait(gate), Say("Done.")])
    say(pages[0], question)
    expect(pages[0].get_by_role("button", name="Stop")).to_be_visible()
    hide(*pages)
    gate.open()
    expect(pages[0]).to_have_title("(1) What is gravity? · Threadkeep")


def until(page: Page, count: int) -> Sequence[dict[str, str]]:
    page.wait_for_function("count => told.length === count", arg=count)
    return told(page)


def test_notification_is_offered_when_one_was_missed_and_comes_once(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    answer_unseen(model, "What is gravity?", page)
    assert told(page) == []
    show(page)
    expect(page).to_have_title("What is gravity? · Threadkeep")
    expect(offer(page)).to_be_visible()
    assert violations(page) == []
    offer(page).get_by_role("button", name="Turn on notifications").press("Enter")
    expect(offer(page)).to_have_count(0)
    other = context.new_page()
    other.goto(page.url)
    other.evaluate("Notification.permission = 'granted'")
    done(other)
    answer_unseen(model, "And light?", page, other)
    page.wait_for_timeout(1000)  # a second one would come now
    assert told(page, other) == [{"title": "What is gravity?", "body": "Your answer is ready."}]
    page.evaluate("location.hash = '#/settings'")
    switch = page.get_by_role("switch", name="Notify me when an answer is ready")
    expect(switch).to_be_checked()
    source = page if told(page) else other
    source.evaluate("told[0].click()")
    expect(source.get_by_role("heading", level=1)).to_have_text("What is gravity?")
    assert page.evaluate("localStorage.asked") == "1"


def test_refused_offer_does_not_come_again(page: Page, model: ScriptedModel):
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    answer_unseen(model, "What is gravity?", page)
    show(page)
    assert violations(page) == []
    offer(page).get_by_role("button", name="No, thanks").click()
    page.reload()
    answer_unseen(model, "And light?", page)
    show(page)
    done(page)
    expect(offer(page)).to_have_count(0)
    assert page.evaluate("localStorage.asked") is None


def test_request_is_told_of_and_a_click_leads_to_it(page: Page, model: ScriptedModel):
    page.evaluate("localStorage.setItem('threadkeep.notifications', 'on')")
    new_conversation(page)
    page.evaluate("Notification.permission = 'granted'")
    gate = Gate()
    model.script([Wait(gate), UseTool("easel__note", {"text": "buy tea"})], [Say("It is noted.")])
    say(page, "Note it")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.evaluate("location.hash = '#/agents'")
    hide(page)
    gate.open()
    (notification,) = until(page, 1)
    assert notification["title"] == "Note it"
    assert notification["body"].startswith("Waiting for you: ")
    show(page)
    page.evaluate("told[0].click()")
    expect(page.locator("main [data-request]")).to_be_focused()
