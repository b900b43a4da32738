"""Long conversations are summarized for the model; a person still reads all of it."""

from playwright.sync_api import Page, expect

from tests.browser.going import choose, open_new
from tests.browser.test_talking import done, log, say
from threadkeep.testing import Say, ScriptedModel


def test_summary_is_made_shown_and_undone(page: Page, model: ScriptedModel):
    agent = page.request.post("/api/agents", data={"name": "Brief", "settings": {"compactionThreshold": 4}})
    open_new(page, agent.json()["id"])
    say(page, "First question")
    done(page)
    for number in range(2, 10):
        say(page, f"Question {number}")
        expect(log(page).get_by_role("article", name="Reply")).to_have_count(number)
        done(page)
    model.script([Say("They asked nine questions.")])
    choose(page, "More actions", "Summarize older messages")
    summary = page.get_by_role("group", name="Summary of earlier messages")
    expect(summary).to_be_visible()
    expect(log(page)).to_contain_text("First question")
    summary.locator("summary").click()
    expect(summary).to_contain_text("They asked nine questions.")
    summary.get_by_role("button", name="Undo").click()
    expect(summary).to_have_count(0)


def test_conversation_that_is_too_short_is_left_as_it_is(page: Page):
    say(page, "Hi")
    done(page)
    choose(page, "More actions", "Summarize older messages")
    expect(page.get_by_role("status").last).not_to_be_empty()
    expect(page.get_by_role("group", name="Summary of earlier messages")).to_have_count(0)
