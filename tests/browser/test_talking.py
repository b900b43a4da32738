"""Talking: what a person does in the page, against the real server and a scripted model."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.going import choose
from tests.serving import Server
from threadkeep.testing import Fail, Gate, Pause, Say, ScriptedModel, Status, Think, Wait


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message").fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def log(page: Page) -> Locator:
    return page.get_by_role("log", name="Conversation")


def reply(page: Page) -> Locator:
    """The text of the latest reply."""
    return page.get_by_role("article", name="Reply").last.locator(".part .markdown")


def done(page: Page) -> None:
    """Waits until the latest reply can be given again."""
    latest = page.get_by_role("article", name="Reply").last
    expect(latest.get_by_role("button", name=re.compile("Regenerate|Retry"))).to_be_visible()


def test_agent_made_since_the_page_was_opened_gets_what_is_said_to_it(page: Page, model: ScriptedModel):
    made = page.request.post("/api/agents", data={"name": "Latecomer"}).json()
    model.script([Say("Here I am.")])
    page.evaluate("id => { location.hash = `#/new/${id}` }", made["id"])
    say(page, "Who are you?")
    done(page)
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    assert conversation["agentId"] == made["id"]


def test_message_gets_a_reply_and_stands_in_the_list(page: Page, model: ScriptedModel):
    model.script([Say("Things "), Say("fall.")])
    say(page, "What is gravity?")
    done(page)
    expect(log(page)).to_contain_text("What is gravity?")
    expect(log(page)).to_contain_text("Things fall.")
    listed = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    expect(listed).to_have_text(["What is gravity?"])
    page.reload()
    expect(log(page)).to_contain_text("Things fall.")


def test_title_stands_above_the_conversation_while_its_first_reply_streams(page: Page, model: ScriptedModel):
    listed = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    gate = Gate()
    model.script([Say("Things "), Wait(gate), Say("fall.")])
    say(page, "What is gravity?")
    expect(log(page)).to_contain_text("Things")
    expect(listed).to_have_text(["What is gravity?"])
    expect(page.get_by_role("heading", level=1)).to_have_text("What is gravity?")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    gate.open()
    done(page)
    expect(reply(page)).to_have_text("Things fall.")


def test_title_that_came_from_elsewhere_stands_above_the_conversation_too(page: Page, model: ScriptedModel):
    model.script([Say("Things fall.")])
    say(page, "What is gravity?")
    done(page)
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    page.request.patch(f"/api/conversations/{conversation['id']}", data={"title": "Why things fall"})
    expect(page.get_by_role("heading", level=1)).to_have_text("Why things fall")


def test_enter_sends_and_shift_enter_breaks(page: Page, model: ScriptedModel):
    box = page.get_by_role("textbox", name="Message")
    box.press_sequentially("one")
    box.press("Shift+Enter")
    box.press_sequentially("two")
    expect(box).to_have_value("one\ntwo")
    box.press("Enter")
    done(page)
    assert "one\ntwo" in [it.body["messages"][-1]["content"] for it in model.requests]
    expect(box).to_have_value("")


def test_stop_keeps_the_text(page: Page, model: ScriptedModel):
    model.script([Say("Once upon"), Wait(Gate())])
    say(page, "A story")
    expect(log(page)).to_contain_text("Once upon")
    page.get_by_role("button", name="Stop").click()
    expect(log(page)).to_contain_text("Stopped.")
    expect(log(page)).to_contain_text("Once upon")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.reload()
    expect(log(page)).to_contain_text("Once upon")


def test_failed_turn_says_why_and_can_be_tried_again(page: Page, server: Server, model: ScriptedModel):
    model.script([Status(400, "the model does not like this")], [Say("Better now.")])
    say(page, "Hello")
    alert = log(page).get_by_role("alert")
    expect(alert).to_contain_text("Couldn’t finish this answer.")
    turn = alert.locator(".log-reference code").inner_text()
    alert.get_by_role("button", name="Retry").click()
    expect(log(page)).to_contain_text("Better now.")
    expect(alert).to_have_count(0)
    # With what the page shows, the operator finds it.
    (line,) = [it for it in server.output.splitlines() if "turn ended: FAILED" in it and f"turn={turn}" in it]
    assert "AGENTX_ERROR" in line


def test_thoughts_are_folded_with_their_duration(page: Page, model: ScriptedModel):
    model.script([Think("Apples "), Pause(1.1), Think("fall."), Say("Gravity.")])
    say(page, "Why?")
    done(page)
    thoughts = page.get_by_role("group", name="Activity")
    expect(thoughts).to_contain_text(re.compile(r"Thought for \d+ s"))
    expect(thoughts.get_by_text("Apples fall.")).to_have_count(0)
    thoughts.get_by_text("Thought for").click()
    expect(thoughts.get_by_text("Apples fall.")).to_be_visible()


def test_draft_is_kept_for_each_conversation(page: Page):
    say(page, "First")
    done(page)
    box = page.get_by_role("textbox", name="Message")
    box.fill("half a thought")
    page.get_by_role("button", name="New conversation", exact=True).click()
    expect(box).to_have_value("")
    page.get_by_role("navigation").get_by_role("link", name="First").click()
    expect(box).to_have_value("half a thought")
    page.reload()
    expect(box).to_have_value("half a thought")


def test_message_that_is_too_long_is_not_sent(page: Page):
    agent = page.request.post("/api/agents", data={"name": "Terse", "settings": {"maxMessageChars": 20}})
    page.goto(f"/#/new/{agent.json()['id']}")
    page.reload()
    box = page.get_by_role("textbox", name="Message")
    box.fill("x" * 17)
    expect(page.get_by_text("3 characters left")).to_be_visible()
    box.fill("x" * 25)
    expect(page.get_by_text("5 characters over the limit")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()


def test_conversation_is_renamed_archived_and_deleted_with_undo(page: Page):
    say(page, "Something")
    done(page)
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    choose(page, "More actions", "Rename")
    page.get_by_role("textbox", name="Title").fill("我的标题 🎉")
    page.get_by_role("textbox", name="Title").press("Enter")
    expect(links).to_have_text(["我的标题 🎉"])
    for action in ("Archive", "Delete"):
        choose(page, "More actions", action)
        expect(links).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text("What can I help with?")
        page.get_by_role("button", name="Undo").click()
        expect(links).to_have_text(["我的标题 🎉"])
        expect(log(page)).to_contain_text("Something")


def test_list_of_conversations_is_read_on_as_one_scrolls(page: Page):
    agent = page.request.post("/api/agents", data={"name": "Busy"}).json()["id"]
    for number in range(90):
        page.request.post(f"/api/agents/{agent}/conversations", data={"title": f"Talk {number}"})
    page.reload()
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    expect(links.first).to_contain_text("Talk 89")
    oldest = links.filter(has_text="Talk 0")
    for _ in range(600):  # only the rows near the view are there
        if oldest.count():
            break
        links.last.scroll_into_view_if_needed()
        page.wait_for_timeout(100)
    expect(oldest).to_be_visible()
    assert links.count() < 90


def test_language_and_theme_are_chosen_and_kept(page: Page):
    choose(page, "Profile", "中文")
    choose(page, "账户", "深色")
    page.reload()
    expect(page.get_by_role("button", name="新建对话")).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_gateway_that_breaks_off_keeps_what_was_said(page: Page, model: ScriptedModel):
    model.script(*[[Say("Half of"), Fail("overloaded")]] * 2)  # its call is restarted once
    say(page, "Go")
    expect(log(page)).to_contain_text("Half of")
    expect(log(page).get_by_role("alert")).to_be_visible()
