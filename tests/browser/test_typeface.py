"""The typeface comes after the first paint, and nothing moves when it comes."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, Route, ViewportSize, expect

from tests.browser.conftest import NARROW, WIDE
from tests.browser.test_talking import done, log, say
from threadkeep.testing import Say, ScriptedModel

FILES = re.compile(r"/assets/inter-.*\.woff2")
IS_SHOWN = (
    "() => [...document.fonts].filter(it => it.family === 'Inter' && it.status === 'loaded').length === 2"
)
FRAMES = (
    "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
)
# By the browser's own measure, from now on, whoever caused it.
WATCH = """() => {
    window.shifted = [];
    const textsOf = shift => shift.sources.map(({ node }) => node?.textContent);
    new PerformanceObserver(list => window.shifted.push(...list.getEntries().flatMap(textsOf)))
        .observe({ type: "layout-shift" });
}"""
ANSWER = "\n\n".join(
    "This would be broken into lines that end elsewhere if its letters changed, and so become higher. "
    * number
    for number in range(1, 6)
)


class Held:
    """The files of the typeface, which come when the test says so."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._asked: list[Route] = []
        page.route(FILES, lambda route: self._asked.append(route))

    def come(self) -> None:
        """They come, as soon as the page has asked for them."""
        while len(self._asked) < 2:
            self._page.wait_for_timeout(20)
        for route in self._asked:
            route.continue_()

    @property
    def is_shown(self) -> bool:
        """Whether the page is set in it."""
        return self._page.evaluate(IS_SHOWN)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_moves_when_the_typeface_comes_to_the_first_page(context: BrowserContext, size: ViewportSize):
    page = context.new_page()
    page.set_viewport_size(size)
    files = Held(page)
    page.goto("/")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    page.evaluate(WATCH)
    files.come()
    page.wait_for_function(IS_SHOWN)
    page.evaluate(FRAMES)
    assert page.evaluate("shifted") == []


def test_an_answer_is_read_to_the_end_in_the_letters_that_it_began_with(
    context: BrowserContext, model: ScriptedModel
):
    page = context.new_page()
    files = Held(page)
    page.goto("/")
    model.script([Say(ANSWER)])
    say(page, "Tell me")
    expect(
        page.get_by_role("button", name="Good answer")
    ).to_be_visible()  # the last that comes with an answer
    page.evaluate(WATCH)
    with page.expect_response(FILES) as came:
        files.come()
    assert "immutable" in came.value.headers["cache-control"]
    page.evaluate(FRAMES)
    assert not files.is_shown
    assert page.evaluate("shifted") == []
    page.get_by_role("button", name="New conversation", exact=True).click()
    page.wait_for_function(IS_SHOWN)


def test_next_visit_is_painted_in_the_typeface_from_the_start(page: Page, model: ScriptedModel):
    model.script([Say(ANSWER)])
    page.wait_for_function(IS_SHOWN)
    say(page, "Tell me")
    done(page)
    page.reload()
    expect(log(page)).to_contain_text("This would be broken")
    assert page.evaluate(IS_SHOWN)
