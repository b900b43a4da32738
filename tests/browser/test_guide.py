"""The tour: the Guide shows what there is to see, one thing after the other, without a model."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import NARROW, PATIENCE_MS, WIDE, settings_for
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
        stage = page.locator(".crash-stage")
        for said in (
            "Server connected",
            "Server gone · resuming…",
            "Server back · steps kept, text written again",
        ):
            expect(stage).to_have_text(said)
        expect(log(page)).to_contain_text("The turn's details show the fragment.")
        expect(page.get_by_role("dialog", name="Answer details")).to_contain_text("Replay")
        page.keyboard.press("Escape")
        page.close()


def test_tour_starts_at_once_and_starters_do(browser: Browser, shared_model: ScriptedModel, tmp_path: Path):
    with Server(tmp_path, **settings_for(shared_model), guide="on") as server:
        page = browser.new_page(viewport=NARROW, base_url=server.url, locale="en-GB")  # pyright: ignore[reportArgumentType]
        page.set_default_timeout(PATIENCE_MS)
        body = {"name": "Harbour", "settings": {"starters": ["Which berth is free?"]}}
        assert page.request.post("/api/agents", data=body).ok
        page.goto("/")
        card = page.get_by_role("listitem").filter(has_text="Harbour")
        expect(card.get_by_role("button", name="Which berth is free?")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Take the tour").click()
        expect(page.get_by_role("article", name="You said")).to_contain_text("Show me everything")
        page.get_by_role("button", name="Allow once").click()
        expect(log(page)).to_contain_text("I sent the report")
        done(page)
        # By keyboard: another agent from the picker.
        page.get_by_role("main").get_by_role("button", name="New conversation", exact=True).click()
        page.get_by_role("button", name="Agent: Assistant").focus()
        page.keyboard.press("ArrowDown")
        assert violations(page) == []
        page.keyboard.press("h")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Ask Harbour anything")
        expect(page.get_by_role("heading", name="Recent conversations")).to_be_visible()
        page.close()
