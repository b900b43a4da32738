"""Ratings and reruns: thumbs, a note, what the agent's owner sees, and another model's answer."""

from playwright.sync_api import Page, expect

from tests.browser import tour
from tests.browser.going import open_new
from tests.browser.test_access import violations
from tests.browser.test_talking import done, log, say
from threadkeep.testing import Say, ScriptedModel, Usage, UseTool


def test_answer_is_rated_read_by_the_owner_and_tried_with_another_model(page: Page, model: ScriptedModel):
    settings = {"models": ["quick"], "mcpServers": {"chaos": tour.CHAOS_SERVER}}
    agent = tour.made(page, "/api/agents", {"name": "Handy", "settings": settings})
    open_new(page, agent)
    model.script(
        [UseTool("chaos__echo", {"text": "hello"}), Usage(900, 20)],
        [Say("It said **hello**."), Usage(1000, 30)],
        [Say("It said hello, quickly."), UseTool("chaos__echo", {"text": "bye"}), Usage(700, 10)],
        [Say("Regenerated.")],
    )
    say(page, "Echo hello")
    done(page)
    down = page.get_by_role("button", name="Bad answer")
    down.click()
    expect(down).to_have_attribute("aria-pressed", "true")
    form = page.get_by_role("form", name="Feedback")
    expect(form).to_contain_text("They can’t read the conversation.")
    form.get_by_label("What was wrong with it?").fill("Too short.")
    form.get_by_label("Let the agent’s owner read this answer and what led to it").check()
    expect(form).to_contain_text("everything that the model received")
    assert violations(page) == []
    form.get_by_role("button", name="Send").click()
    expect(form).to_be_hidden()
    expect(down).to_be_focused()
    page.reload()
    expect(down).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name="Try with another model").click()
    drawer = page.get_by_role("dialog", name="Try with another model")
    expect(drawer.get_by_role("button", name="Model: ")).to_contain_text("quick")
    drawer.get_by_role("button", name="Run").click()
    other = drawer.get_by_role("region", name="Other model")
    expect(other).to_contain_text("It said hello, quickly.")
    expect(other).to_contain_text("(only here)")
    expect(other).to_contain_text("no result for")
    expect(drawer.get_by_role("region", name="This answer")).to_contain_text("50 output tokens")
    assert violations(page) == []
    drawer.get_by_role("button", name="Regenerate the answer with this model").click()
    expect(drawer).to_be_hidden()
    expect(log(page)).to_contain_text("Regenerated.")
    assert model.requests[-1].body["model"] == "quick"

    page.goto(f"/#/agents/{agent}")
    page.get_by_role("tab", name="Feedback").click()
    card = page.get_by_role("listitem").filter(has_text="Too short.")
    expect(card).to_contain_text("Your own")
    card.get_by_text("Question and answer").click()
    expect(card).to_contain_text("It said hello.")
    page.get_by_label("Show", exact=True).select_option("up")
    expect(page.get_by_text("No such ratings")).to_be_visible()
    assert violations(page) == []
