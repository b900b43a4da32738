"""Queue and steer: what a person sends while a turn runs."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import settings_for
from tests.browser.test_access import violations
from tests.browser.test_parts import Drawing, drawing, new_conversation
from tests.browser.test_talking import done, log, reply, say
from tests.serving import Server, lasting_port
from threadkeep.testing import Gate, Say, ScriptedModel, Wait

__all__ = ["drawing"]


def box(page: Page) -> Locator:
    """Where one writes."""
    return page.get_by_role("textbox", name="Message")


def queued(page: Page) -> Locator:
    """The messages that wait."""
    return page.get_by_role("article", name="Queued message")


def queue(page: Page, text: str) -> None:
    """Sends something while a turn runs, with Enter."""
    box(page).fill(text)
    box(page).press("Enter")
    expect(queued(page).filter(has_text=text)).to_be_visible()
    expect(queued(page).filter(has_text="Sending…")).to_have_count(0)


@pytest.fixture
def gate(page: Page, model: ScriptedModel) -> Gate:
    """A turn runs until the gate is opened."""
    gate = Gate()
    model.script([Say("One. "), Wait(gate), Say("Two.")])
    say(page, "Count")
    expect(log(page)).to_contain_text("One.")
    return gate


def test_queued_messages_get_replies_in_their_order(
    page: Page, context: BrowserContext, model: ScriptedModel, gate: Gate
):
    expect(page.get_by_text("Enter to queue")).to_be_visible()
    queue(page, "And three?")
    queue(page, "And four?")
    assert violations(page) == []
    page.reload()
    expect(queued(page).locator(".bubble")).to_have_text(["And three?", "And four?"])
    other = context.new_page()
    other.goto(page.url)
    expect(queued(other)).to_have_count(2)
    model.script([Say("Three.")], [Say("Four.")])
    gate.open()
    for tab in (page, other):
        expect(reply(tab)).to_have_text("Four.")
        done(tab)
        expect(queued(tab)).to_have_count(0)
        expect(tab.get_by_role("article", name="Reply").locator(".markdown")).to_have_text(
            ["One. Two.", "Three.", "Four."]
        )


def test_queued_message_is_edited_and_removed_before_it_is_sent(page: Page, model: ScriptedModel, gate: Gate):
    queue(page, "And three?")
    queue(page, "And four?")
    queued(page).last.get_by_role("button", name="Remove").click()
    expect(queued(page)).to_have_count(1)
    queued(page).get_by_role("button", name="Edit").click()
    queued(page).get_by_role("textbox").fill("And five?")
    page.keyboard.press("Enter")
    expect(queued(page).locator(".bubble")).to_have_text("And five?")
    model.script([Say("Five.")])
    gate.open()
    expect(reply(page)).to_have_text("Five.")
    done(page)
    expect(log(page)).to_contain_text("And five?")
    expect(log(page)).not_to_contain_text("And four?")


def test_stopping_holds_the_queue_until_one_sends_again(page: Page, model: ScriptedModel, gate: Gate):
    queue(page, "And three?")
    box(page).press("Escape")
    expect(log(page)).to_contain_text("Stopped.")
    expect(queued(page)).to_contain_text("On hold")
    model.script([Say("Three.")], [Say("Four.")])
    say(page, "And four?")
    expect(reply(page)).to_have_text("Four.")
    done(page)
    said = page.get_by_role("article", name="You said").locator(".bubble")
    expect(said).to_have_text(["Count", "And three?", "And four?"])


def test_held_message_is_sent_by_its_button(page: Page, model: ScriptedModel, gate: Gate):
    queue(page, "And three?")
    box(page).press("Escape")
    model.script([Say("Three.")])
    queued(page).get_by_role("button", name="Send now").click()
    expect(reply(page)).to_have_text("Three.")
    done(page)
    expect(queued(page)).to_have_count(0)


def test_message_steers_the_turn_that_runs(page: Page, model: ScriptedModel, drawing: Drawing):
    new_conversation(page)
    model.script([Say("I draw a fox."), drawing.call], [Say("Then a cat.")])
    say(page, "Draw")
    expect(page.get_by_role("group", name="Activity")).to_contain_text("Running draw")
    box(page).fill("No, a cat!")
    box(page).press("Control+Enter")
    expect(queued(page)).to_contain_text("Will be added at the next step")
    page.reload()
    expect(queued(page)).to_contain_text("Will be added at the next step")
    drawing.finish()
    done(page)
    for _ in range(2):
        expect(queued(page)).to_have_count(0)
        reply = page.get_by_role("article", name="Reply")
        expect(reply).to_have_count(1)
        expect(reply.get_by_role("note", name="You said")).to_have_text("No, a cat!")
        expect(reply.locator(".markdown")).to_have_text(["I draw a fox.", "Then a cat."])
        page.reload()
    assert any("No, a cat!" in str(it.body["messages"][-1]) for it in model.requests)


def test_message_that_comes_too_late_to_steer_is_sent_next(page: Page, model: ScriptedModel, gate: Gate):
    box(page).fill("And three?")
    page.get_by_role("button", name="Add to the running answer").click()
    expect(queued(page)).to_contain_text("Will be added at the next step")
    model.script([Say("Three.")])
    gate.open()
    expect(reply(page)).to_have_text("Three.")
    done(page)
    expect(page.get_by_role("article", name="You said").last).to_contain_text("And three?")


def test_killed_server_continues_and_folds_what_it_had_said(
    tmp_path: Path, model: ScriptedModel, browser: Browser
):
    model.script([Say("Once upon a ti"), Wait(Gate())], [Say("Once there was a fox.")])
    with Server(tmp_path, *lasting_port(), **settings_for(model)) as server:
        page = browser.new_page(locale="en-GB")
        page.goto(server.url)
        say(page, "A story")
        expect(log(page)).to_contain_text("Once upon a ti")
        server.kill()
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    with Server(tmp_path, "--port", str(server.port), **settings_for(model)):
        done(page)
        for _ in range(2):
            old = page.get_by_role("group", name=re.compile("answer resumed$"))
            expect(old.get_by_text("Once upon a ti")).to_be_hidden()
            expect(page.locator(".part > .markdown")).to_have_text("Once there was a fox.")
            page.reload()
            done(page)
        page.get_by_role("button", name="Details").click()
        expect(page.get_by_text("Model call 1 (interrupted)")).to_be_visible()
        page.close()
