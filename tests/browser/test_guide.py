"""The tour: the Guide shows what there is to see, one thing after the other, without a model."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE_MS, WIDE, settings_for
from tests.browser.test_access import violations
from tests.browser.test_talking import done, log
from tests.serving import Server
from threadkeep.domain.guide import GUIDE_ID
from threadkeep.testing import ScriptedModel


def test_tour_goes_from_one_thing_to_the_next(browser: Browser, shared_model: ScriptedModel, tmp_path: Path):
    with Server(tmp_path, **settings_for(shared_model), guide="on") as server:
        page = browser.new_page(viewport=WIDE, base_url=server.url, locale="en-GB")  # pyright: ignore[reportArgumentType]
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"/#/new/{GUIDE_ID}")
        page.get_by_role("button", name="Show me a chart").click()
        done(page)
        expect(log(page)).to_contain_text("Sales grew")
        expect(log(page).locator(".chart")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Ask for my approval").click()
        page.get_by_role("button", name="Allow once").click()
        expect(log(page)).to_contain_text("I sent the report")
        done(page)
        page.get_by_role("button", name="Show me a crash").click()
        expect(log(page)).to_contain_text("The turn's details show the fragment.")
        done(page)
        page.close()
