"""A long conversation opens at its end or at a message that was found; only a part of it is ever drawn."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import tour
from tests.browser.conftest import PATIENCE_MS, WIDE, settings_for
from tests.browser.long import seed
from tests.browser.test_talking import done, log, reply, say
from tests.serving import Server
from threadkeep.testing import Say, ScriptedModel

MOST_DRAWN = 100
UNUSUAL = "A purple elephant crossed the street."


@pytest.fixture(scope="module")
def address(
    browser: Browser, shared_model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where a conversation of 5,000 messages and 50 branches is; an early one says something unusual."""
    folder = tmp_path_factory.mktemp("long")
    (conversation_id,) = seed(folder / "data", 5000, branches=50)
    with closing(sqlite3.connect(folder / "data/threadkeep.db")) as database, database:
        database.execute("UPDATE tk_messages SET content = ? WHERE seq = 101", (UNUSUAL,))
    with Server(folder, **settings_for(shared_model)) as server:
        yield f"{server.url}/#/c/{conversation_id}"


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """The conversation, opened at its end."""
    page = browser.new_page(viewport=WIDE, base_url=address, locale="en-GB")  # pyright: ignore[reportArgumentType]
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    done(page)
    yield page
    page.close()


def drawn(page: Page) -> int:
    return log(page).get_by_role("article").count()


def scroll(page: Page, top: str) -> None:
    page.locator(".scroller").evaluate(f"it => it.scrollTop = {top}")


# Gives the key of the entry there.
TO_START = """it => {
    it.scrollTop = 0;
    return it.querySelector("[data-key]").dataset.key;
}"""


def test_conversation_of_5000_messages_is_drawn_in_part(page: Page, model: ScriptedModel):
    assert 0 < drawn(page) <= MOST_DRAWN
    oldest = page.locator("[data-key]").first
    for _ in range(5):
        # At once: the page may draw more above it at any time.
        before = page.locator(".scroller").evaluate(TO_START)
        expect(oldest).not_to_have_attribute("data-key", before)
        assert drawn(page) <= MOST_DRAWN
        # One reads on where one was: what came above has not moved it away.
        expect(page.locator(f"[data-key='{before}']")).to_be_in_viewport()
    page.get_by_role("button", name="Jump to latest").click()
    done(page)
    model.script([Say("Still here.")])
    say(page, "And now?")
    expect(reply(page)).to_have_text("Still here.")
    assert drawn(page) <= MOST_DRAWN


def test_message_that_was_found_is_opened_where_it_stands(page: Page, model: ScriptedModel):
    tour.search(page, "purple elephant").click()
    message = log(page).get_by_text(UNUSUAL)
    expect(message).to_be_in_viewport()
    page.reload()
    expect(message).to_be_in_viewport()
    assert drawn(page) <= MOST_DRAWN
    # One reads on from there, in both directions
    for end, top in (
        (page.locator("[data-key]").last, "it.scrollHeight"),
        (page.locator("[data-key]").first, "0"),
    ):
        before = end.get_attribute("data-key") or ""
        scroll(page, top)
        expect(end).not_to_have_attribute("data-key", before)
        assert drawn(page) <= MOST_DRAWN
    # What is said next stands at the end, not below the old message.
    model.script([Say("No, it was grey.")])
    say(page, "Was it really purple?")
    expect(reply(page)).to_have_text("No, it was grey.")
    expect(message).to_have_count(0)
    done(page)


# What grows is below whatever the page still draws above it.
ADD = """(it, by) => {
    const more = document.createElement("div");
    more.style.height = `${by}px`;
    it.firstElementChild.append(more);
}"""
# The event for the page's own scrolling may arrive when the answer has grown again.
# What the page draws above meanwhile is followed a frame later, so one frame says little.
GROW = f"""async (it, by) => {{
    ({ADD})(it, by);
    it.dispatchEvent(new Event("scroll"));
    for (let frame = 0; frame < 20; frame++) {{
        await new Promise(requestAnimationFrame);
        if (frame > 0 && it.scrollHeight - it.scrollTop - it.clientHeight < 2) return true;
    }}
    return false;
}}"""


def test_view_follows_what_grows_until_the_user_scrolls_up(page: Page):
    scroller = page.locator(".scroller")
    to_latest = page.get_by_role("button", name="Jump to latest")
    is_at_end = scroller.evaluate(GROW, 300)
    assert is_at_end
    expect(to_latest).to_have_count(0)
    scroll(page, "it.scrollTop - 200")
    expect(to_latest).to_be_visible()
    is_at_end = scroller.evaluate(GROW, 300)
    assert not is_at_end


# An answer that grows with every frame.
GROW_ON = f"""it => {{
    const grow = () => {{
        ({ADD})(it, 10);
        requestAnimationFrame(grow);
    }};
    grow();
}}"""


def test_user_scrolls_up_by_little_steps_while_a_reply_grows(page: Page):
    scroller = page.locator(".scroller")
    scroller.hover()
    scroller.evaluate(GROW_ON)
    for _ in range(10):
        page.mouse.wheel(0, -20)
        page.wait_for_timeout(30)
    expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()
    # Older entries may be drawn above it meanwhile.
    top_of_newest = 'it => [...it.querySelectorAll("[data-key]")].at(-1).getBoundingClientRect().top'
    before = scroller.evaluate(top_of_newest)
    page.wait_for_timeout(100)
    # Each of them may move it by less than a pixel; following would by ten with every frame.
    assert abs(scroller.evaluate(top_of_newest) - before) < 5
