"""Waiting for a person: approvals and questions in the page, with a real MCP server."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import settings_for
from tests.browser.test_access import violations
from tests.browser.test_parts import EASEL, TOOLS
from tests.browser.test_talking import done, log, reply, say
from tests.serving import Server
from threadkeep.testing import Reply, Say, ScriptedModel, UseTool

ASK = {"easel.note": {"access": "ask"}}
NOTE = "Allow note (easel)?"


def new_conversation(page: Page, **settings: Any) -> Page:
    """The page at a new conversation with an agent that asks before it takes notes."""
    body = {"name": "Clerk", "settings": {"mcpServers": {"easel": EASEL}, "tools": ASK, **settings}}
    agent = page.request.post("/api/agents", data=body).json()["id"]
    page.request.post(f"/api/agents/{agent}/mcp-servers/easel/test")
    page.goto(f"/#/new/{agent}")
    page.reload()
    return page


def note(text: str) -> Reply:
    """The model writes something down."""
    return [UseTool("easel__note", {"text": text})]


def results(model: ScriptedModel) -> list[str]:
    """What the model was told of its calls."""
    messages = [message for request in model.requests for message in request.body["messages"]]
    return [str(it["content"]) for it in messages if it["role"] == "tool"]


def asked(page: Page, name: str = NOTE) -> Locator:
    """What the turn asks, while it waits."""
    return page.get_by_role("group", name=name)


def badge(page: Page) -> Locator:
    """How many requests wait."""
    return page.locator("button.requests")


@pytest.fixture
def asking(page: Page, model: ScriptedModel) -> Iterator[Page]:
    """The page, with a turn that waits for leave to write something down."""
    new_conversation(page)
    model.script(note("buy tea"), [Say("It is noted.")])
    say(page, "Note it")
    expect(asked(page)).to_be_visible()
    yield page


def test_call_is_shown_with_its_arguments_and_runs_when_it_is_allowed(asking: Page, context: BrowserContext):
    expect(asking.get_by_role("group", name="Activity")).to_contain_text("Waiting for you")
    expect(asked(asking).locator("dl")).to_have_text(re.compile(r"text\s*buy tea"))
    expect(asking.get_by_text("Sending a message ends this turn.")).to_be_visible()
    expect(badge(asking)).to_have_attribute("aria-label", "1 request is waiting for you")
    assert violations(asking) == []
    other = context.new_page()
    other.goto(asking.url)
    expect(asked(other)).to_be_visible()
    asked(asking).get_by_role("button", name="Allow once").click()
    for tab in (asking, other):
        done(tab)
        expect(reply(tab)).to_have_text("It is noted.")
        expect(log(tab)).to_contain_text("Allowed once")
        expect(badge(tab)).to_have_count(0)
    asking.reload()
    expect(log(asking)).to_contain_text("Allowed once")


def test_call_that_is_denied_does_not_run(asking: Page, model: ScriptedModel):
    asked(asking).get_by_role("button", name="Deny").click()
    done(asking)
    expect(log(asking)).to_contain_text("Denied")
    expect(asking.get_by_role("group", name="Activity")).to_have_text("Denied note")
    assert not any("buy tea" in result for result in results(model))


def test_arguments_are_edited_and_shown(asking: Page, model: ScriptedModel):
    asked(asking).get_by_role("button", name="Edit").click()
    box = asked(asking).get_by_role("textbox", name="Arguments (JSON)")
    expect(box).to_be_focused()
    box.fill('{"text": ')
    expect(asked(asking)).to_contain_text("Invalid JSON")
    box.fill('{"text": "buy coffee"}')
    asked(asking).get_by_role("button", name="Allow with changes").click()
    done(asking)
    expect(log(asking)).to_contain_text("Allowed with changes")
    expect(log(asking).locator("dl.arguments")).to_have_text(re.compile(r"text\s*buy coffee"))
    assert any("buy coffee" in result for result in results(model))


def test_arguments_that_do_not_fit_the_schema_are_refused_with_the_reason(asking: Page):
    asked(asking).get_by_role("button", name="Edit").click()
    asked(asking).get_by_role("textbox").fill('{"text": 3}')
    asked(asking).get_by_role("button", name="Allow with changes").click()
    expect(asked(asking).get_by_role("alert")).to_contain_text("text")
    asked(asking).get_by_role("textbox").fill('{"text": "three"}')
    asked(asking).get_by_role("button", name="Allow with changes").click()
    done(asking)


def test_permission_for_the_conversation_is_asked_for_once(asking: Page, model: ScriptedModel):
    asked(asking).get_by_role("button", name="Allow for this conversation").click()
    done(asking)
    model.script(note("buy bread"), [Say("That, too.")])
    say(asking, "And bread")
    done(asking)
    expect(reply(asking)).to_have_text("That, too.")
    expect(log(asking)).to_contain_text("Allowed for this conversation")


def test_requests_of_one_turn_are_decided_one_by_one_with_the_keyboard(page: Page, model: ScriptedModel):
    new_conversation(page)
    model.script([*note("one"), *note("two")], [Say("Half of it.")])
    say(page, "Note both")
    expect(asked(page)).to_have_count(2)
    expect(badge(page)).to_have_attribute("aria-label", "2 requests are waiting for you")
    asked(page).first.get_by_role("button", name="Allow once").focus()
    page.keyboard.press("Enter")
    expect(asked(page)).to_have_count(1)
    expect(asked(page)).to_be_focused()
    asked(page).get_by_role("button", name="Deny").focus()
    page.keyboard.press("Enter")
    done(page)
    expect(log(page).locator(".outcome > span")).to_have_text(["Allowed once", "Denied"])


def test_badge_leads_to_the_request_from_anywhere(asking: Page):
    asking.get_by_role("button", name="New conversation").click()
    expect(asked(asking)).to_have_count(0)
    badge(asking).click()
    asking.get_by_role("menuitem", name=NOTE).click()
    expect(asked(asking)).to_be_focused()
    waiting = asking.get_by_role("navigation", name="Conversations").get_by_role(
        "img", name="Waiting for you"
    )
    expect(waiting).to_have_count(1)


def test_new_message_ends_the_turn_that_waits(asking: Page):
    say(asking, "Never mind")
    expect(reply(asking)).to_have_text("It is noted.")  # what the model says next
    done(asking)
    expect(asked(asking)).to_have_count(0)
    expect(asking.get_by_role("article", name="Reply").first).to_contain_text("Stopped.")


def test_waiting_turn_is_stopped(asking: Page):
    asking.get_by_role("button", name="Stop").click()
    done(asking)
    expect(asked(asking)).to_have_count(0)
    expect(badge(asking)).to_have_count(0)


def test_request_that_was_decided_elsewhere_shows_that_decision(asking: Page):
    (request,) = asking.request.get("/api/approvals").json()["items"]
    asking.route("**/api/turns/*/events", lambda route: route.abort())
    path = f"/api/turns/{request['turnId']}/approvals/{request['requestId']}"
    asking.request.post(path, data={"action": "deny"})
    done(asking)
    expect(log(asking)).to_contain_text("Denied")


def test_question_is_answered_by_a_choice_and_by_a_text(page: Page, model: ScriptedModel):
    new_conversation(page, askUser=True)
    model.script(
        [UseTool("ask_user", {"question": "Which colour?", "choices": ["Red", "Blue"]})],
        [UseTool("ask_user", {"question": "Why?"})],
        [Say("Blue it is.")],
    )
    say(page, "Paint it")
    question = page.get_by_role("group", name="Question")
    expect(question).to_contain_text("Which colour?")
    assert violations(page) == []
    question.get_by_role("button", name="Blue").click()
    expect(question).to_have_count(2)
    question.last.get_by_role("textbox", name="Your answer").fill("It is calm.")
    page.keyboard.press("Enter")
    done(page)
    expect(question.first).to_contain_text("Blue")
    expect(question.last).to_contain_text("It is calm.")
    expect(reply(page)).to_have_text("Blue it is.")
    assert any("It is calm." in result for result in results(model))


def test_form_of_a_server_is_filled_in(page: Page, model: ScriptedModel):
    new_conversation(page, mcpServers={"easel": {**EASEL, "scope": "conversation"}})
    model.script([UseTool("easel__frame", {})], [Say("Framed.")])
    say(page, "Frame it")
    question = page.get_by_role("group", name="Question")
    expect(question).to_contain_text("Which frame?")
    question.get_by_role("textbox", name="width").fill("5")
    question.get_by_role("button", name="Submit").click()
    expect(question.locator(".fault")).to_have_text(["This field is required.", "Must be at least 10."])
    expect(question.get_by_role("textbox", name="Your name")).to_be_focused()
    assert violations(page) == []
    question.get_by_role("textbox", name="Your name").fill("Ann")
    question.get_by_role("textbox", name="width").fill("40")
    question.get_by_role("checkbox", name="Gilded").check()
    question.get_by_role("button", name="Submit").click()
    done(page)
    expect(question).to_contain_text("Answered")
    (result,) = set(results(model))
    assert all(it in result for it in ("Ann", "40", "true"))


def test_site_of_a_server_is_named_and_opened_in_a_new_tab(page: Page, model: ScriptedModel):
    new_conversation(page, mcpServers={"easel": {**EASEL, "scope": "conversation"}})
    model.script([UseTool("easel__sell", {})], [Say("Paid.")])
    say(page, "Sell it")
    question = page.get_by_role("group", name="Question")
    link = question.get_by_role("link", name="Open pay.example.org")
    expect(link).to_have_attribute("href", "https://pay.example.org/frames/7")
    expect(link).to_have_attribute("rel", re.compile("noopener"))
    question.get_by_role("button", name="Done").click()
    done(page)
    assert any("accept" in result for result in results(model))


def test_approval_survives_a_restart_and_the_turn_goes_on(
    tmp_path: Path, model: ScriptedModel, browser: Browser
):
    model.script(note("buy tea"), [Say("It is noted.")])
    settings = {**settings_for(model), **TOOLS}
    with Server(tmp_path, **settings) as server:
        page = browser.new_page(locale="en-GB", base_url=server.url, extra_http_headers=server.headers)
        page.goto("/")
        new_conversation(page)
        say(page, "Note it")
        expect(asked(page)).to_be_visible()
        server.kill()
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    with Server(tmp_path, "--port", str(server.port), **settings):
        expect(page.get_by_text("Reconnecting")).to_have_count(0)
        asked(page).get_by_role("button", name="Allow once").click()
        done(page)
        expect(reply(page)).to_have_text("It is noted.")
        page.close()
