"""Branches in the page: edit, regenerate, switch, fork and go back; nothing is lost, every tab follows."""

import re

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser import tour
from tests.browser.going import open_new
from tests.browser.test_talking import done, log, say
from tests.browser.tour import tell_nothing
from threadkeep.testing import Gate, Say, ScriptedModel, Status, Wait


def talk(page: Page, model: ScriptedModel, count: int = 2) -> None:
    """So many questions and their answers."""
    for number in range(1, count + 1):
        model.script([Say(f"a{number}.")])
        say(page, f"q{number}")
        done(page)
        expect_path(page, *[f"{kind}{it}" for it in range(1, number + 1) for kind in "qa"])


def messages(page: Page) -> Locator:
    return log(page).locator(".bubble, article.reply .markdown")


def expect_path(page: Page, *texts: str) -> None:
    """Waits until these messages are shown and no other."""
    expect(messages(page)).to_have_text([re.compile(rf"^{re.escape(it)}\.?$") for it in texts])


def question(page: Page, text: str) -> Locator:
    return page.get_by_role("article", name="You said").filter(has_text=text)


def reply(page: Page, text: str) -> Locator:
    return page.get_by_role("article", name="Reply").filter(has_text=text)


def box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message")


def edit(page: Page, before: str, after: str) -> None:
    question(page, before).get_by_role("button", name="Edit").click()
    expect(box(page)).to_have_value(before)
    expect(box(page)).to_be_focused()
    box(page).fill(after)
    box(page).press("Enter")


def conversation_id(page: Page) -> str:
    found = re.search(r"#/c/([^/]+)", page.url)
    assert found
    return found[1]


def stored(page: Page) -> list[dict[str, str]]:
    """The active path, as the server has it."""
    return page.request.get(f"/api/conversations/{conversation_id(page)}/messages").json()["items"]


def asked(model: ScriptedModel) -> list[list[str]]:
    """What the model was sent, request by request."""
    return [[it["content"] for it in request.body["messages"][1:]] for request in model.requests]


def test_sent_message_is_edited_and_both_versions_are_there_after_a_reload(page: Page, model: ScriptedModel):
    talk(page, model)
    model.script([Say("b2.")])
    edit(page, "q2", "q2 again")
    done(page)
    expect_path(page, "q1", "a1", "q2 again", "b2")
    expect(box(page)).to_have_value("")
    picker = question(page, "q2 again").get_by_role("group", name="Version 2 of 2")
    expect(picker).to_have_text("2 of 2")
    page.reload()
    expect_path(page, "q1", "a1", "q2 again", "b2")
    picker.get_by_role("button", name="Previous version").click()
    expect_path(page, "q1", "a1", "q2", "a2")
    page.reload()
    expect_path(page, "q1", "a1", "q2", "a2")
    model.script([Say("a3.")])
    say(page, "q3")
    done(page)
    expect_path(page, "q1", "a1", "q2", "a2", "q3", "a3")
    assert [it["content"] for it in model.requests[-1].body["messages"][1:]] == [
        "q1",
        "a1.",
        "q2",
        "a2.",
        "q3",
    ]


def test_first_message_is_edited(page: Page, model: ScriptedModel):
    talk(page, model, 1)
    model.script([Say("b1.")])
    edit(page, "q1", "else")
    done(page)
    expect_path(page, "else", "b1")
    question(page, "else").get_by_role("button", name="Previous version").click()
    expect_path(page, "q1", "a1")


def test_escape_leaves_the_message_and_brings_the_draft_back(page: Page, model: ScriptedModel):
    talk(page, model, 1)
    box(page).fill("half a thought")
    question(page, "q1").get_by_role("button", name="Edit").click()
    expect(page.get_by_text("Editing a message.")).to_be_visible()
    box(page).fill("something else")
    box(page).press("Escape")
    expect(page.get_by_text("Editing a message.")).to_have_count(0)
    expect(box(page)).to_have_value("half a thought")
    question(page, "q1").get_by_role("button", name="Edit").click()
    expect(box(page)).to_have_value("q1")
    page.get_by_role("button", name="Cancel").click()
    expect(box(page)).to_have_value("half a thought")
    expect_path(page, "q1", "a1")


def test_edit_that_cannot_be_sent_is_kept(page: Page, model: ScriptedModel):
    talk(page, model, 1)
    refused = {"error": {"code": "BUDGET_EXCEEDED", "message": "The budget is spent.", "requestId": "r"}}
    page.route("**/messages", lambda route: route.fulfill(status=402, json=refused), times=1)
    edit(page, "q1", "q1 better")
    expect(page.get_by_role("alert")).to_contain_text("There isn’t enough budget left.")
    expect(box(page)).to_have_value("q1 better")
    expect_path(page, "q1", "a1")
    model.script([Say("b1.")])
    box(page).press("Enter")
    done(page)
    expect_path(page, "q1 better", "b1")


def test_any_reply_is_regenerated_and_chosen_by_mouse_and_keyboard(page: Page, model: ScriptedModel):
    talk(page, model)
    for text in ("b1", "c1"):
        model.script([Say(f"{text}.")])
        page.get_by_role("article", name="Reply").first.get_by_role("button", name="Regenerate").click()
        expect_path(page, "q1", text)
        done(page)
    page.reload()
    expect_path(page, "q1", "c1")
    previous = page.get_by_role("button", name="Previous version")
    previous.click()
    expect_path(page, "q1", "b1")
    expect(previous).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect_path(page, "q1", "a1", "q2", "a2")
    expect(page.get_by_role("group", name="Version 1 of 3")).to_be_visible()
    expect(previous).to_be_focused()
    expect(previous).to_be_disabled()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_path(page, "q1", "b1")
    page.keyboard.press("ArrowRight")
    expect_path(page, "q1", "c1")
    expect(page.get_by_role("button", name="Next version")).to_be_focused()
    page.reload()
    expect_path(page, "q1", "c1")


def test_path_stays_while_a_reply_is_written(page: Page, model: ScriptedModel):
    talk(page, model, 1)
    gate = Gate()
    model.script([Say("b1."), Wait(gate)])
    edit(page, "q1", "else")
    expect_path(page, "else", "b1")
    previous = page.get_by_role("button", name="Previous version")
    expect(previous).to_be_disabled()
    expect(previous).to_have_accessible_description("Wait for the answer or stop it to switch versions.")
    expect(page.get_by_role("button", name="Edit")).to_be_disabled()
    gate.open()
    done(page)
    previous.click()
    expect_path(page, "q1", "a1")


def test_failed_reply_is_given_again_beside_it(page: Page, model: ScriptedModel):
    model.script([Status(400, "no")], [Say("Better.")])
    say(page, "q1")
    log(page).get_by_role("button", name="Retry").click()
    expect_path(page, "q1", "Better")
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()


def test_conversation_is_forked_and_one_goes_back(page: Page, model: ScriptedModel):
    talk(page, model)
    original = conversation_id(page)
    reply(page, "a1").get_by_role("button", name="Continue in a new conversation").click()
    expect_path(page, "q1", "a1")
    assert conversation_id(page) != original
    model.script([Say("b2.")])
    say(page, "elsewhere")
    done(page)
    page.reload()
    expect_path(page, "q1", "a1", "elsewhere", "b2")
    page.go_back()
    expect_path(page, "q1", "a1", "q2", "a2")
    reply(page, "a2").get_by_role("button", name="Continue in a new conversation").click()
    expect(page).not_to_have_url(re.compile(original))
    page.get_by_role("status").get_by_role("button", name="Back").click()
    expect(page).to_have_url(re.compile(original))
    expect_path(page, "q1", "a1", "q2", "a2")


def test_other_tabs_follow_the_choice_and_the_turn(page: Page, context: BrowserContext, model: ScriptedModel):
    talk(page, model, 1)
    other = context.new_page()
    other.goto(page.url)
    expect_path(other, "q1", "a1")
    box(other).fill("half a thought")
    model.script([Say("b1.")])
    edit(page, "q1", "else")
    done(page)
    expect_path(other, "else", "b1")
    page.get_by_role("button", name="Previous version").press("Enter")
    for tab in (page, other):
        expect_path(tab, "q1", "a1")
        expect(tab.get_by_role("group", name="Version 1 of 2")).to_be_visible()
    expect(box(other)).to_have_value("half a thought")


@pytest.mark.parametrize("is_told", [True, False], ids=["at once", "when one comes back"])
def test_choice_of_a_program_is_followed(page: Page, model: ScriptedModel, is_told: bool):
    if not is_told:
        tell_nothing(page)
    talk(page, model, 1)
    first, _ = stored(page)
    model.script([Say("b1.")])
    edit(page, "q1", "else")
    done(page)
    page.request.post(f"/api/conversations/{conversation_id(page)}/path", data={"messageId": first["id"]})
    if not is_told:
        page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect_path(page, "q1", "a1")


def test_tab_that_missed_a_change_hides_nothing_and_offers_to_show_it(page: Page, model: ScriptedModel):
    tell_nothing(page)
    talk(page, model, 1)
    first, _ = stored(page)
    model.script([Say("b1.")])
    edit(page, "q1", "else")
    done(page)
    page.reload()  # the reading that follows a turn would show the change
    expect_path(page, "else", "b1")
    move = f"/api/conversations/{conversation_id(page)}/path"
    page.request.post(move, data={"messageId": first["id"]})
    say(page, "go on")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("This conversation continued in another tab or app.")
    expect_path(page, "else", "b1")
    expect(box(page)).to_have_value("go on")
    page.get_by_role("button", name="Regenerate").click()
    expect(alert).to_be_visible()
    edit(page, "else", "other")
    expect(alert).to_be_visible()
    expect(box(page)).to_have_value("other")
    box(page).press("Escape")
    assert [it["content"] for it in stored(page)] == ["q1", "a1."]
    assert not {"go on", "other"} & {it[-1] for it in asked(model)}
    alert.get_by_role("button", name="Show latest").click()
    expect_path(page, "q1", "a1")
    expect(alert).to_have_count(0)
    expect(box(page)).to_have_value("go on")
    model.script([Say("a2.")])
    box(page).press("Enter")
    done(page)
    expect_path(page, "q1", "a1", "go on", "a2")


def test_message_found_on_another_branch_is_shown_when_one_says_so(page: Page, model: ScriptedModel):
    talk(page, model, 1)
    model.script([Say("b1.")])
    edit(page, "q1", "zebra")
    done(page)
    page.get_by_role("button", name="Previous version").click()
    expect_path(page, "q1", "a1")
    hit = tour.search(page, "zebra")
    expect(hit).to_contain_text("On another branch")
    hit.click()
    bar = page.get_by_text("This message is on another branch.")
    expect(bar).to_be_visible()
    expect_path(page, "q1", "a1")
    page.get_by_role("button", name="Show this branch").click()
    expect_path(page, "zebra", "b1")
    expect(bar).to_have_count(0)
    page.reload()
    expect_path(page, "zebra", "b1")
    page.get_by_role("button", name="Previous version").click()
    expect_path(page, "q1", "a1")
    expect(bar).to_have_count(0)


def test_picker_stays_in_view_however_long_the_versions_are(page: Page, model: ScriptedModel):
    page.set_viewport_size({"width": 700, "height": 420})
    long = "\n\n".join(f"Line {number}" for number in range(40))
    model.script([Say("a1.")], [Say(long)], [Say("b1.")])
    for text in ("q1", "More"):
        say(page, text)
        done(page)
    expect(page.get_by_text("Line 39")).to_be_in_viewport()
    edit(page, "q1", "else")
    expect_path(page, "else", "b1")
    done(page)
    previous = page.get_by_role("button", name="Previous version")
    previous.click()
    expect(page.get_by_text("Line 39")).to_be_attached()
    expect(previous).to_be_in_viewport()
    expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect_path(page, "else", "b1")
    expect(previous).to_be_in_viewport()


def test_agent_with_one_conversation_goes_on_where_it_was_and_forks_nothing(page: Page, model: ScriptedModel):
    body = {"name": "Only", "settings": {"conversationMode": "single"}}
    agent = page.request.post("/api/agents", data=body).json()["id"]
    open_new(page, agent)
    for number in (1, 2):
        page.goto(f"/#/new/{agent}")
        model.script([Say(f"a{number}.")])
        say(page, f"q{number}")
        done(page)
    expect_path(page, "q1", "a1", "q2", "a2")
    expect(page.get_by_role("button", name="Continue in a new conversation")).to_have_count(0)


def test_everything_works_on_a_narrow_screen_by_keyboard(page: Page, model: ScriptedModel):
    page.set_viewport_size({"width": 375, "height": 740})
    talk(page, model, 1)
    page.get_by_role("button", name="Edit").focus()
    page.keyboard.press("Enter")
    expect(box(page)).to_be_focused()
    model.script([Say("b1.")])
    page.keyboard.type(" again")
    page.keyboard.press("Enter")
    expect_path(page, "q1 again", "b1")
    done(page)
    page.get_by_role("button", name="Previous version").focus()
    page.keyboard.press("ArrowLeft")
    expect_path(page, "q1", "a1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_role("button", name="Continue in a new conversation").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").get_by_role("button", name="Back")).to_be_visible()
