"""A turn's details: watched while it runs, replayed afterwards, linked to, and used by keyboard."""

import re

from playwright.sync_api import Page, expect

from tests.browser import tour
from tests.browser.going import choose
from tests.browser.test_access import violations
from tests.browser.test_talking import done, log, say
from threadkeep.testing import Gate, Pause, Say, ScriptedModel, Think, Usage, UseTool, Wait


def test_turn_is_watched_replayed_by_keyboard_and_opened_by_its_link(page: Page, model: ScriptedModel):
    settings = {"mcpServers": {"chaos": tour.CHAOS_SERVER}}
    page.goto(f"/#/new/{tour.made(page, '/api/agents', {'name': 'Handy', 'settings': settings})}")
    page.reload()
    gate = Gate()
    model.script(
        [Think("An echo."), UseTool("chaos__echo", {"text": "hello"}), Usage(900, 20)],
        [Say("It said "), Pause(1.5), Wait(gate), Say("hello."), Usage(400, 30, cache_read=600)],
    )
    say(page, "Echo")
    expect(log(page)).to_contain_text("It said")
    choose(page, "More actions", "Details")
    drawer = page.get_by_role("dialog", name="Answer details")
    then = drawer.get_by_role("group", name="Answer at this moment")
    expect(drawer).to_contain_text("Live")
    expect(then).to_contain_text("It said")
    gate.open()

    slider = drawer.get_by_role("slider", name="Position")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("Finished$"))
    expect(then).to_contain_text("It said hello.")
    expect(drawer.get_by_role("row", name="2 1,000 600 30")).to_be_visible()
    expect(drawer.get_by_text("600 of 1,900 input tokens")).to_be_visible()
    expect(drawer.get_by_role("group", name="Tool call: echo").last).to_contain_text('"text": "hello"')
    assert violations(page) == []

    slider.focus()
    page.keyboard.press("Home")
    expect(then).to_contain_text("Nothing yet")
    page.keyboard.press("PageUp")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("Model call 1|echo"))
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(then).to_contain_text("It said")
    expect(then).not_to_contain_text("hello.")
    expect(drawer.locator("[aria-current=step]")).to_contain_text("Model call 2")
    drawer.get_by_role("combobox", name="Speed").select_option("8×")
    slider.focus()
    page.keyboard.press("Space")
    expect(then).to_contain_text("It said hello.")

    link = page.url
    assert re.search("#/c/[^/]+/turn/[^/]+$", link)
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.get_by_role("button", name="More actions")).to_be_focused()
    assert "turn" not in page.url
    page.go_forward()
    expect(drawer).to_be_visible()
    page.go_back()
    expect(drawer).to_be_hidden()

    page.goto("/")
    page.goto(link)
    expect(then).to_contain_text("It said hello.")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    done(page)
    page.goto(f"{link}0")
    expect(drawer).to_contain_text("Answer not found")
