"""A long conversation opens at its end, and only a part of it is ever drawn."""

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import WIDE, settings_for
from tests.browser.long import seed
from tests.browser.test_talking import answer, done, log, say
from tests.http.process import Server
from tests.scripted_model import Say, ScriptedModel

MOST_DRAWN = 200


def drawn(page: Page) -> int:
    return log(page).get_by_role("article").count()


def scroll(page: Page, top: str) -> None:
    page.locator(".scroller").evaluate(f"it => it.scrollTop = {top}")


def test_conversation_of_5000_messages_is_drawn_in_part(
    tmp_path: Path, browser: Browser, model: ScriptedModel
):
    (conversation_id,) = seed(tmp_path / "data", 5000)
    with Server(tmp_path, **settings_for(model)) as server:
        page = browser.new_page(viewport=WIDE, base_url=server.url, locale="en-GB")  # pyright: ignore[reportArgumentType]
        page.goto(f"/#/c/{conversation_id}")
        done(page)
        assert drawn(page) == 50
        oldest = page.locator("[data-key]").first
        for _ in range(5):
            before = oldest.get_attribute("data-key") or ""
            scroll(page, "0")
            expect(oldest).not_to_have_attribute("data-key", before)
            assert drawn(page) <= MOST_DRAWN
            # One reads on where one was: what came above has not moved it away.
            expect(page.locator(f"[data-key='{before}']")).to_be_in_viewport()
        page.get_by_role("button", name="Jump to the latest").click()
        done(page)
        model.script([Say("Still here.")])
        say(page, "And now?")
        expect(answer(page)).to_have_text("Still here.")
        assert drawn(page) <= MOST_DRAWN
        page.close()
