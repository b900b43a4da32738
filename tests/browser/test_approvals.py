"""Waiting for a person: approvals and questions in the page, with a real MCP server."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import NARROW, settings_for
from tests.browser.going import open_new
from tests.browser.test_access import violations
from tests.browser.test_parts import EASEL, TOOLS
from tests.browser.test_talking import done, reply, say
from tests.serving import Server, lasting_port
from threadkeep.testing import Reply, Say, ScriptedModel, UseTool

ASK = {"easel.note": {"access": "ask"}}
NOTE = "Let Clerk run note from easel?"


def new_conversation(page: Page, **settings: Any) -> Page:
    """The page at a new conversation with an agent that asks before it takes notes."""
    body = {"name": "Clerk", "settings": {"mcpServers": {"easel": EASEL}, "tools": ASK, **settings}}
    agent = page.request.post("/api/agents", data=body).json()["id"]
    page.request.post(f"/api/agents/{agent}/mcp-servers/easel/test")
    open_new(page, agent)
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


def line(page: Page) -> Locator:
    """What the agent did, in one line."""
    return page.get_by_role("group", name="Activity").first


def badge(page: Page) -> Locator:
    """How many requests wait."""
    return page.locator("button.requests")


@pytest.fixture
def page(unopened: Page) -> Page:
    """Opened by each test, where it begins."""
    return unopened


@pytest.fixture
def asking(page: Page, model: ScriptedModel) -> Iterator[Page]:
    """The page, with a turn that waits for leave to write something down."""
    new_conversation(page)
    model.script(note("buy tea"), [Say("It is noted.")])
    say(page, "Note it")
    expect(asked(page)).to_be_visible()
    yield page


def test_escape_closes_what_is_open_and_never_the_turn_that_waits(asking: Page):
    panel = asking.get_by_role("dialog", name="1 request is waiting for you")
    changes = asking.get_by_role("button", name="Allow with changes")
    badge(asking).click()
    panel.get_by_role("button", name="Edit").click()
    panel.get_by_role("button", name="Cancel").focus()
    for left in ((0, 1), (0, 0), (0, 0)):
        asking.keyboard.press("Escape")
        expect(changes).to_have_count(left[0])
        expect(panel).to_have_count(left[1])
    asked(asking).get_by_role("button", name="Edit").click()
    changes.focus()
    asking.keyboard.press("Escape")
    expect(changes).to_have_count(0)
    for place in (asked(asking).get_by_role("button", name="Allow once"), asking.locator("#message")):
        place.focus()
        asking.keyboard.press("Escape")
    asked(asking).get_by_role("button", name="Allow once").click()
    done(asking)
    expect(reply(asking)).to_have_text("It is noted.")


def test_arguments_are_shown_whole_before_they_can_be_allowed(page: Page, model: ScriptedModel):
    new_conversation(page)
    model.script(note("buy tea" + "\n" * 60 + "and burn the house"), [Say("It is noted.")])
    say(page, "Note it")
    allow = asked(page).get_by_role("button", name="Allow once")
    expect(allow).to_have_attribute("aria-disabled", "true")
    expect(asked(page).locator("dd")).to_contain_text("characters not shown")
    assert violations(page) == []
    asked(page).get_by_role("button", name="Show everything").click()
    expect(asked(page).locator("dd")).to_contain_text("burn the house")
    allow.click()
    done(page)
    expect(reply(page)).to_have_text("It is noted.")


def test_call_is_shown_with_its_arguments_and_runs_when_it_is_allowed(asking: Page, context: BrowserContext):
    expect(asking.get_by_role("group", name="Activity")).to_contain_text("Waiting for you")
    expect(asked(asking).locator("dl")).to_have_text(re.compile(r"text\s*buy tea"))
    expect(asking.get_by_text("Sending a message cancels it.")).to_be_visible()
    expect(badge(asking)).to_have_attribute("aria-label", "1 request is waiting for you")
    assert violations(asking) == []
    other = context.new_page()
    other.goto(asking.url)
    expect(asked(other)).to_be_visible()
    asked(asking).get_by_role("button", name="Allow once").click()
    for tab in (asking, other):
        done(tab)
        expect(reply(tab)).to_have_text("It is noted.")
        expect(line(tab)).to_have_text(re.compile("^Ran note: buy tea · allowed once"))
        expect(badge(tab)).to_have_count(0)
    asking.reload()
    expect(line(asking)).to_contain_text("allowed once")


def test_call_that_is_denied_does_not_run(asking: Page, model: ScriptedModel):
    asked(asking).get_by_role("button", name="Deny").click()
    done(asking)
    expect(line(asking)).to_have_text(re.compile("^Denied note: buy tea"))
    assert not any("buy tea" in result for result in results(model))


def test_arguments_are_edited_in_a_form_and_shown(asking: Page, model: ScriptedModel):
    asked(asking).get_by_role("button", name="Edit").click()
    box = asked(asking).get_by_role("textbox", name="text")
    expect(box).to_be_focused()
    expect(box).to_have_value("buy tea")
    assert violations(asking) == []
    box.fill("buy coffee")
    asked(asking).get_by_role("button", name="Allow with changes").click()
    done(asking)
    expect(line(asking)).to_have_text(re.compile("^Ran note: buy coffee · allowed with changes"))
    assert any("buy coffee" in result for result in results(model))


def test_arguments_are_edited_as_json_and_refused_with_the_reason_if_they_do_not_fit(asking: Page):
    asked(asking).get_by_role("button", name="Edit").click()
    asked(asking).get_by_role("button", name="Edit as JSON").click()
    box = asked(asking).get_by_role("textbox", name="Arguments (JSON)")
    box.fill('{"text": ')
    expect(asked(asking)).to_contain_text("Invalid JSON")
    box.fill('{"text": 3}')
    asked(asking).get_by_role("button", name="Allow with changes").click()
    expect(asked(asking).get_by_role("alert")).to_contain_text("text")
    box.fill('{"text": "three"}')
    asked(asking).get_by_role("button", name="Allow with changes").click()
    done(asking)


def test_permission_for_the_conversation_is_asked_for_once_and_taken_back(asking: Page, model: ScriptedModel):
    asked(asking).get_by_role("button", name="Allow for this conversation").click()
    done(asking)
    expect(line(asking)).to_contain_text("allowed for this conversation")
    model.script(note("buy bread"), [Say("That, too.")], note("buy milk"))
    say(asking, "And bread")
    done(asking)
    expect(reply(asking)).to_have_text("That, too.")
    asking.get_by_role("button", name="Manage").click()
    allowed = asking.get_by_role("dialog", name="Tool permissions")
    expect(allowed.get_by_role("listitem")).to_contain_text("easel · allowed just now")
    assert violations(asking) == []
    allowed.get_by_role("button", name="Ask again before running note").click()
    expect(allowed).to_contain_text("You haven’t allowed any tool")
    asking.keyboard.press("Escape")
    say(asking, "And milk")
    expect(asked(asking)).to_be_visible()


def test_request_leads_to_the_permissions_where_the_tool_is_forbidden(asking: Page, model: ScriptedModel):
    asked(asking).get_by_role("link", name="Change permissions").click()
    note_rule = asking.get_by_role("radiogroup", name="note")
    expect(note_rule.get_by_role("radio", name="Ask")).to_be_checked()
    assert violations(asking) == []
    note_rule.get_by_role("radio", name="Ask").focus()
    asking.keyboard.press("ArrowRight")
    expect(note_rule.get_by_role("radio", name="Never")).to_be_checked()
    asking.get_by_role("switch", name="Ask questions").press("Space")
    asking.get_by_role("button", name="Save").click()
    expect(asking.get_by_text("Saved", exact=True)).to_be_visible()
    agent = asking.request.get("/api/agents").json()["items"]
    (settings,) = [it["settings"] for it in agent if it["name"] == "Clerk"]
    assert (settings["tools"], settings["askUser"]) == ({"easel.note": {"access": "deny"}}, True)
    asking.get_by_role("tab", name="Tools").click()
    asking.get_by_role("tabpanel", name="Tools").get_by_role("link", name="Permissions").press("Enter")
    expect(asking.get_by_role("tab", name="Permissions")).to_have_attribute("aria-selected", "true")
    asking.reload()
    expect(note_rule.get_by_role("radio", name="Never")).to_be_checked()
    asking.get_by_role("button", name="Use the default for note").click()
    expect(note_rule.get_by_role("radio", name="Allow")).to_be_checked()
    asking.get_by_role("radiogroup", name="All tools of easel").get_by_text("Ask").click()
    expect(note_rule.get_by_role("radio", name="Ask")).to_be_checked()
    asking.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    assert violations(asking) == []
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert asking.evaluate(fits)
    asking.set_viewport_size({"width": 390, "height": 480})
    asking.get_by_role("radiogroup", name="All tools", exact=True).get_by_role("radio", name="Allow").focus()
    save = asking.get_by_role("button", name="Save")
    while not save.evaluate("save => save === document.activeElement"):
        asking.keyboard.press("Tab")
        assert asking.evaluate(IS_ABOVE_SAVE)


# The row that saves stays at the lower edge; nothing with the focus is behind it.
IS_ABOVE_SAVE = """() => {
    const save = document.querySelector(".permissions > .save");
    const shown = document.activeElement.closest("label") ?? document.activeElement;
    return save.contains(shown) || shown.getBoundingClientRect().bottom <= save.getBoundingClientRect().top;
}"""


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
    expect(line(page)).to_have_text(re.compile("^Ran note: one, denied note: two"))
    expect(line(page).locator("summary").first).to_be_focused()


def test_badge_leads_to_the_request_from_anywhere(asking: Page):
    asking.get_by_role("button", name="New conversation", exact=True).click()
    expect(asked(asking)).to_have_count(0)
    badge(asking).click()
    panel = asking.get_by_role("dialog", name="1 request is waiting for you")
    expect(panel).to_contain_text("Clerk · Just now")
    expect(panel.get_by_role("group", name=NOTE).locator("dl")).to_have_text(re.compile(r"text\s*buy tea"))
    assert violations(asking) == []
    panel.get_by_role("link", name="Note it").click()
    expect(asked(asking)).to_be_focused()
    waiting = asking.get_by_role("navigation", name="Conversations").get_by_role(
        "img", name="Waiting for you"
    )
    expect(waiting).to_have_count(1)


def test_request_is_decided_from_the_bell_with_the_keyboard(asking: Page, model: ScriptedModel):
    asking.get_by_role("button", name="New conversation", exact=True).click()
    badge(asking).press("Enter")
    panel = asking.get_by_role("dialog", name="1 request is waiting for you")
    expect(panel).to_be_focused()
    asking.keyboard.press("Escape")
    expect(badge(asking)).to_be_focused()
    asking.keyboard.press("Enter")
    panel.get_by_role("button", name="Allow once").press("Enter")
    expect(badge(asking)).to_have_count(0)
    expect(asking.locator("main")).to_be_focused()
    asking.get_by_role("navigation", name="Conversations").get_by_role("link", name="Note it").click()
    done(asking)
    expect(reply(asking)).to_have_text("It is noted.")


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
    expect(line(asking)).to_contain_text("Denied note")


def test_question_is_answered_by_a_choice_and_by_a_text(page: Page, model: ScriptedModel):
    new_conversation(page, askUser=True)
    model.script(
        [UseTool("ask_user", {"question": "Which **colour**?", "choices": ["Red", "Blue"]})],
        [UseTool("ask_user", {"question": "Why?"})],
        [Say("Blue it is.")],
    )
    say(page, "Paint it")
    question = page.get_by_role("group", name="Question")
    expect(question).to_contain_text("Clerk asks")
    expect(question.locator("strong")).to_have_text("colour")
    assert violations(page) == []
    question.get_by_role("button", name="Blue").click()
    expect(question).to_have_count(2)
    question.last.get_by_role("textbox", name="Your answer").fill("It is calm.")
    page.keyboard.press("Enter")
    done(page)
    expect(question.first).to_contain_text("Blue")
    expect(question.last).to_contain_text("It is calm.")
    expect(page.locator(".part > .markdown")).to_have_text("Blue it is.")
    assert any("It is calm." in result for result in results(model))


def test_form_of_a_server_is_filled_in(page: Page, model: ScriptedModel):
    new_conversation(page, mcpServers={"easel": {**EASEL, "scope": "conversation"}})
    model.script([UseTool("easel__frame", {})], [Say("Framed.")])
    say(page, "Frame it")
    question = page.get_by_role("group", name="Question")
    expect(question).to_contain_text("easel asks, to run frame")
    expect(question).to_contain_text("Which frame?")
    expect(line(page)).to_have_text("Waiting for you · frame")
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
    with Server(tmp_path, *lasting_port(), **settings) as server:
        page = browser.new_page(locale="en-GB", base_url=server.url, extra_http_headers=server.headers)
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
