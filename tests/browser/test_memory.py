"""Memory on the page: what the user tells every agent, and what agents remember about the user."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW
from tests.browser.test_access import violations
from tests.browser.test_talking import done, say
from threadkeep.testing import Say, ScriptedModel, UseTool


def test_user_instructs_every_agent_and_corrects_what_one_remembers(page: Page, model: ScriptedModel):
    remember = [UseTool("promptx_remember", {"content": it}) for it in ("Lives in Lyon.", "Likes tea.")]
    model.script(remember, [Say("Noted.")], [Say("Bonjour, Ada.")])
    say(page, "I live in Lyon and like tea.")
    done(page)
    page.get_by_role("button", name="Profile").click()
    page.get_by_role("menuitem", name="Settings").click()
    page.get_by_role("link", name="Manage memory").click()
    page.get_by_role("textbox", name="What every agent should know and do").fill("Call me Ada.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. Agents get it from their next answer on.")).to_be_visible()
    remembered = page.get_by_role("list", name="What agents remember").get_by_role("listitem")
    expect(remembered).to_have_count(2)
    assert violations(page) == []
    page.get_by_role("button", name="Edit “Lives in Lyon.”").press("Enter")
    page.get_by_role("textbox", name="Memory").fill("Lives in Nice.")
    page.get_by_role("button", name="Save").last.press("Enter")
    expect(remembered.filter(has_text="Lives in Nice.")).to_be_visible()
    page.get_by_role("button", name="Forget “Likes tea.”").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Forget").click()
    expect(remembered).to_have_count(1)
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    assert violations(page) == []
    page.get_by_role("button", name="Forget everything").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Forget everything").click()
    expect(page.get_by_text("doesn’t remember anything about you")).to_be_visible()
    page.goto("/#/")
    say(page, "Hello")
    done(page)
    assert any("Call me Ada." in str(it.body["messages"][0]) for it in model.requests)
