"""What the page says of a conversation that will be deleted because nobody writes in it."""

import re
import sqlite3
import time
from contextlib import closing

from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, WIDE
from tests.browser.test_access import violations
from tests.browser.test_talking import done, log, say
from tests.serving import Server
from threadkeep.testing import Say, ScriptedModel

DAY_MS = 24 * 60 * 60 * 1000


def note(server: Server, title: str) -> None:
    """As the sweep notes it: to be deleted in five days."""
    with closing(sqlite3.connect(server.data / "threadkeep.db", timeout=30)) as database, database:
        at = int(time.time() * 1000) + 5 * DAY_MS - 60_000
        database.execute("UPDATE tk_conversations SET deletes_at = ? WHERE title = ?", (at, title))


def test_notice_covers_no_message(page: Page, server: Server, model: ScriptedModel):
    model.script([Say("At ten.")])
    say(page, "When does the ferry leave?")
    done(page)
    with page.expect_response(re.compile(r"/api/conversations")):
        note(server, "When does the ferry leave?")
        page.reload()
    told = page.get_by_text(re.compile("Nobody has written here for a long time"))
    asked = log(page).get_by_text("When does the ferry leave?")
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
        expect(told).to_be_visible()
        notice, message = told.bounding_box(), asked.bounding_box()
        assert notice and message
        assert notice["y"] + notice["height"] <= message["y"]


def test_user_is_told_and_keeps_a_conversation_by_pinning_or_writing(
    page: Page, server: Server, model: ScriptedModel
):
    agent = page.request.get("/api/agents").json()["items"][0]["id"]
    for title in ("Ferry", "Tea"):
        page.request.post(f"/api/agents/{agent}/conversations", data={"title": title})
        note(server, title)
    page.reload()
    listed = page.get_by_role("navigation", name="Conversations").get_by_role("listitem")
    for title in ("Ferry", "Tea"):
        expect(listed.filter(has_text=title)).to_contain_text("Deleted in 5 days")
    listed.filter(has_text="Ferry").get_by_role("link").click()
    told = page.get_by_text(re.compile("Nobody has written here for a long time"))
    expect(told).to_contain_text("in 5 days")
    assert violations(page) == []

    page.get_by_role("button", name="Pin to keep it").click()
    expect(told).to_be_hidden()
    expect(listed.filter(has_text="Ferry")).not_to_contain_text("Deleted")
    listed.filter(has_text="Tea").get_by_role("link").click()
    expect(told).to_be_visible()
    model.script([Say("Still here.")])
    page.get_by_role("textbox", name="Message").fill("Are you there?")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Still here.")).to_be_visible()
    expect(told).to_be_hidden()
    expect(listed.filter(has_text="Tea")).not_to_contain_text("Deleted")
