"""How a conversation is set: the distances in it, the outline of its answers, the colours of code."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import NARROW
from tests.browser.test_access import violations
from tests.browser.test_talking import done, say
from tests.serving import Server
from threadkeep.testing import Gate, Say, ScriptedModel, Wait

# From the end of what was said to the beginning of what was said next.
GAPS = """() => {
    const texts = [...document.querySelectorAll(".entry :is(.bubble, .markdown)")];
    const said = texts.map(it => it.getBoundingClientRect());
    return said.slice(1).map((it, index) => Math.round(it.top - said[index].bottom));
}"""


def test_buttons_take_no_room_until_someone_points_at_them_or_tabs_to_them(page: Page, model: ScriptedModel):
    model.script([Say("A first answer.")], [Say("A second answer.")])
    for question in ("One?", "Two?"):
        say(page, question)
        done(page)
    assert page.evaluate(GAPS) == [32, 32, 32]
    first = page.get_by_role("article", name="Reply").first
    details = first.get_by_role("button", name="Details")
    page.mouse.move(0, 0)
    expect(details).to_have_css("opacity", "0")
    first.hover()
    expect(details).to_have_css("opacity", "1")
    page.mouse.move(0, 0)
    expect(details).to_have_css("opacity", "0")
    first.get_by_role("button", name="Copy").focus()
    expect(details).to_have_css("opacity", "1")
    details.click()  # nothing lies above it
    expect(page.get_by_role("dialog")).to_be_visible()


def test_fingers_find_the_buttons_below_every_message(browser: Browser, server: Server, model: ScriptedModel):
    context = browser.new_context(
        viewport=NARROW,  # pyright: ignore[reportArgumentType]
        has_touch=True,
        is_mobile=True,
        base_url=server.url,
        extra_http_headers=server.headers,
    )
    page = context.new_page()
    page.goto("/")
    model.script([Say("A first answer.")], [Say("A second answer.")])
    for question in ("One?", "Two?"):
        say(page, question)
        done(page)
    copy = page.get_by_role("button", name="Copy")
    expect(copy).to_have_count(4)
    for number in range(4):
        expect(copy.nth(number)).to_have_css("opacity", "1")
        box = copy.nth(number).bounding_box()
        assert box and box["height"] >= 44
    reply = page.get_by_role("article", name="Reply").first
    more = reply.get_by_role("button", name="More for this answer")
    boxes = [it.bounding_box() for it in (copy.nth(1), more, reply.locator("time"))]
    assert len({box["y"] + box["height"] / 2 for box in boxes if box}) == 1, "they are in one row"
    assert max(page.evaluate(GAPS)) < 64
    more.tap()
    page.get_by_role("menuitem", name="Details").tap()
    expect(page.get_by_role("dialog")).to_be_visible()
    context.close()


def test_answer_may_begin_with_any_heading(page: Page, model: ScriptedModel):
    model.script([Say("### Deep\n\nText[^1].\n\n##### Deeper\n\n# High\n\n[^1]: A note.")])
    say(page, "Headings?")
    done(page)
    headings = page.get_by_role("article", name="Reply").get_by_role("heading")
    expect(headings).to_have_text(["Deep", "Deeper", "High"])
    assert violations(page) == []


CODE = '```python\ntext = """\nnot code\n"""\nfor it in text:\n    print(it)\n```'
COLOURED = ".code pre span"


def test_code_is_coloured_beside_the_page_while_it_comes(page: Page, model: ScriptedModel):
    gate = Gate()
    model.script([Say(CODE[:40]), Wait(gate), Say(CODE[40:])])
    say(page, "Code?")
    string = page.locator(COLOURED, has_text="not code")
    expect(string).to_have_css("color", "rgb(42, 106, 47)")
    assert [it.url.rpartition("/")[2].partition("-")[0] for it in page.workers] == ["worker"]
    gate.open()
    done(page)
    expect(page.locator(COLOURED, has_text="for")).to_have_css("color", "rgb(138, 47, 107)")
    expect(page.locator(".code pre")).to_have_text(CODE.removeprefix("```python\n").removesuffix("\n```"))


def test_code_stays_plain_where_the_worker_does_not_come(page: Page, model: ScriptedModel):
    asked: list[str] = []
    page.route(re.compile("/assets/worker-"), lambda route: (asked.append(route.request.url), route.abort()))
    model.script([Say(CODE)], [Say("Still here.")])
    say(page, "Code?")
    done(page)
    say(page, "And?")
    done(page)
    assert len(asked) == 1
    expect(page.locator(".code pre")).to_contain_text("print(it)")
    expect(page.locator(COLOURED)).to_have_count(0)
