"""Everyone can use it: no rule of accessibility is broken on any screen, in both themes."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import outlines, tour
from tests.browser.conftest import NARROW
from tests.browser.test_talking import done, log, say
from threadkeep.testing import Gate, Say, ScriptedModel, Think, Wait

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"

# Those that say that something runs go on for as long as it does.
ANIMATIONS_END = """() => Promise.all(document.getAnimations()
    .filter(it => it.effect.getComputedTiming().endTime < Infinity)
    .map(it => it.finished.catch(() => {})))"""


def violations(page: Page, *rules: str) -> list[str]:
    """What axe finds on the page as it is shown now, by all rules or by these."""
    page.evaluate(ANIMATIONS_END)
    page.evaluate(AXE.read_text("utf-8"))
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found: dict[str, Any] = page.evaluate("(options) => axe.run(options)", options)
    return [
        f"{it['id']}: {node['html']} {node['failureSummary']}"
        for it in found["violations"]
        for node in it["nodes"]
    ]


# Two frames: in the first one, even the shortest transition still shows where it began.
COLOURS_HAVE_CHANGED = """async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const isFading = () => document.getAnimations().some((it) => it instanceof CSSTransition);
    do await frame();
    while (isFading());
    await frame();
}"""


@pytest.mark.parametrize("name", tour.SCREENS)
def test_screen_breaks_no_rule_of_accessibility_and_says_what_was_accepted(
    name: str, page: Page, model: ScriptedModel
):
    tour.SCREENS[name](page, model)
    says = outlines.settled(page, name)
    problems = violations(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.evaluate(COLOURS_HAVE_CHANGED)
    assert problems + violations(page, "color-contrast") == []
    assert says == outlines.accepted(name), (
        "Changed on purpose? `make screens` accepts it; look at the pictures."
    )


def test_narrow_screen_breaks_no_rule_and_does_not_scroll_sideways(page: Page, model: ScriptedModel):
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    model.script([Say(tour.RICH)])
    conversation_width = "document.documentElement.scrollWidth"
    say(page, "w" * 500)
    done(page)
    assert page.evaluate(conversation_width) == NARROW["width"]
    page.get_by_role("button", name="Open menu").click()
    expect(page.get_by_role("navigation", name="Conversations")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation", name="Conversations")).to_be_hidden()


def test_conversation_can_be_had_with_the_keyboard_alone(page: Page, model: ScriptedModel):
    model.script([Say("Hello.")])
    box = page.get_by_role("textbox", name="Message")
    expect(box).to_be_focused()
    page.keyboard.type("Hi")
    page.keyboard.press("Enter")
    done(page)
    page.keyboard.press("Control+Shift+o")
    expect(log(page)).to_have_count(0)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search or run a command")
    expect(palette.get_by_role("combobox")).to_be_focused()
    expect(palette.get_by_role("option", selected=True)).to_contain_text("Hi")
    expect(palette.get_by_role("option", name="New conversation")).to_contain_text("Ctrl ⇧ O")
    assert violations(page) == []
    page.keyboard.type("h")
    page.keyboard.type("i")
    expect(palette.get_by_role("option").first).to_contain_text("Hi")
    page.keyboard.press("Enter")
    expect(log(page)).to_contain_text("Hello.")
    expect(page).to_have_title("Hi · Threadkeep")
    page.keyboard.press("Control+k")
    page.keyboard.type("keyboard")
    page.keyboard.press("Enter")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_contain_text("New line")
    expect(page.locator(".tip")).to_be_hidden()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(shortcuts).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("settings")
    expect(palette.get_by_role("option", selected=True)).to_have_text("Settings")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    expect(page.get_by_role("main")).to_be_focused()  # so that Tab goes on there


# What a screen reader would say: each new text of a region that is announced.
LISTEN = """() => {
    const said = (window.said = []);
    const regions = "[role=status], [role=alert], [aria-live]";
    new MutationObserver(changes => {
        for (const { target } of changes) {
            const region = (target.closest ? target : target.parentElement)?.closest(regions);
            const text = region?.textContent.trim();
            if (text && said.at(-1) !== text) said.push(text);
        }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_screen_reader_is_told_once_that_a_reply_comes(page: Page, model: ScriptedModel):
    gate = Gate()
    words = [Say(f"Word {number}. ") for number in range(100)]
    model.script([Say("Hello.")], [Think("Well."), *words, Wait(gate), Say("End.")])
    say(page, "Hi")
    done(page)
    page.evaluate(LISTEN)
    say(page, "Go")
    expect(log(page)).to_contain_text("Word 99.")
    expect(log(page)).to_have_attribute("aria-busy", "true")  # nothing of it is read out yet
    gate.open()
    done(page)
    expect(log(page)).to_have_attribute("aria-busy", "false")
    assert page.evaluate("said") == ["Answering…"]
