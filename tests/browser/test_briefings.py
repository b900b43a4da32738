"""Briefings: an inbox, and a conversation that begins with the card."""

from playwright.sync_api import Page, expect

from tests.browser.test_talking import done, log, reply, say
from threadkeep.testing import Say, ScriptedModel


def test_briefing_is_read_and_talked_about(page: Page, model: ScriptedModel):
    agent = page.request.post("/api/agents", data={"name": "Watch"}).json()["id"]
    body = {"agentId": agent, "userId": "local", "title": "Review耗时超标", "summary": "中位耗时30小时"}
    for priority in ("P1", "P3"):
        page.request.post("/api/briefings", data={**body, "priority": priority})
    page.reload()
    link = page.get_by_role("link", name="Briefings", exact=True)
    expect(link).to_have_accessible_description("2 unread")
    link.click()
    cards = page.get_by_role("listitem").filter(has_text="Review耗时超标")
    expect(cards).to_have_count(2)
    cards.filter(has_text="P3").get_by_role("button", name="Mark as read").click()
    expect(link).to_have_accessible_description("1 unread")
    cards.filter(has_text="P1").get_by_role("button", name="Continue").click()
    expect(log(page).get_by_role("article", name="Briefing: Review耗时超标")).to_contain_text(
        "中位耗时30小时"
    )
    model.script([Say("Because reviewers are busy.")])
    say(page, "Why?")
    done(page)
    expect(reply(page)).to_have_text("Because reviewers are busy.")
