"""An admin connects a model on the page; people switch between its models, compare them and meet a budget."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import NARROW, Replying
from tests.browser.going import choose, open_agent
from tests.browser.test_access import violations
from tests.browser.test_newcomer import open_page
from tests.browser.test_talking import done, reply, say
from tests.serving import Server
from threadkeep.testing import Say, Usage

KEY = "sk-the-only-key"
# Their prices are known.
LARGE, SMALL = "gpt-4.1", "gpt-4.1-mini"


@pytest.mark.timeout(300)
def test_admin_connects_a_model_switches_and_compares_models_and_meets_a_budget(
    browser: Browser, tmp_path: Path
):
    with (
        Replying(models=(LARGE, SMALL, "text-embedding-x"), key=KEY) as provider,
        Server(tmp_path, user_budget_day="1.00") as server,
    ):
        page = open_page(browser, server)
        page.get_by_role("button", name="Connect a model").press("Enter")
        _connect(page, provider)
        expect(page.get_by_role("listitem").filter(has_text="ollama")).to_contain_text(SMALL)
        assert violations(page) == []
        _offer_any_model(page)
        page.get_by_role("button", name="Start chat").click()
        expect(page.get_by_text("demo model")).to_have_count(0)
        provider.script([Say("From the first.")], [Say("From the second.")], [Say("From the first again.")])
        picker = page.get_by_role("button", name="Model: ")
        expect(picker).to_have_accessible_name(f"Model: {SMALL}")
        say(page, "One")
        expect(reply(page)).to_contain_text("From the first.")
        done(page)
        picker.click()
        page.get_by_role("menuitemradio").filter(has_not_text=SMALL).click()
        say(page, "Two")
        expect(reply(page)).to_contain_text("From the second.")
        done(page)
        page.reload()
        expect(picker).to_have_accessible_name(f"Model: {LARGE}")  # the conversation keeps its model
        page.get_by_role("button", name="Regenerate").last.click()
        page.get_by_role("menuitemradio", name=SMALL).click()
        expect(reply(page)).to_contain_text("From the first again.")
        done(page)
        asked = [it.body["model"] for it in provider.requests if len(it.body["messages"]) > 1]
        assert [it for it in asked if it != SMALL] == [LARGE]
        _compare(page, provider)
        page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
        assert violations(page) == []
        _meet_the_budget(page, provider)
        page.goto("/#/gateways")
        page.get_by_role("button", name="Delete ollama").click()
        page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("form", name="Connect a model")).to_be_visible()
        assert violations(page) == []
        page.close()


def _connect(page: Page, provider: Replying) -> None:
    """Fills in the form: a wrong key first, then the right one."""
    form = page.get_by_role("form", name="Connect a model")
    page.get_by_role("radio", name="Anthropic").press("ArrowUp")  # to the last one
    page.get_by_role("textbox", name="Address").fill(f"{provider.url}/v1")
    key = page.get_by_label("API key")
    key.fill("sk-wrong")
    key.press("Enter")
    expect(form.get_by_role("alert")).to_have_text("The model provider rejected the API key.")
    key.fill(KEY)
    form.locator("summary").click()
    form.get_by_role("textbox", name="Name", exact=True).fill("ollama")
    form.get_by_role("button", name="Test").click()
    expect(form.get_by_role("checkbox")).to_have_count(3)  # the third shows those that don't chat
    assert violations(page) == []
    form.get_by_role("checkbox", name=SMALL).check()
    form.get_by_role("checkbox", name=LARGE, exact=True).check()
    expect(form.get_by_role("button", name=f"Default model: {SMALL}")).to_be_visible()
    form.get_by_role("button", name="Connect").click()
    expect(page.get_by_text("Connected: ollama")).to_be_visible()


def _offer_any_model(page: Page) -> None:
    """On the agent's page: its users can choose, and one model stands in for another."""
    open_agent(page, "General")
    expect(page.get_by_role("button", name="Model: Server default")).to_be_visible()
    page.get_by_role("combobox", name="Users can choose").select_option("Any model")
    fallbacks = page.get_by_role("button", name="Fallback models")
    choose(page, "Fallback models", f"ollama/{LARGE}")
    assert violations(page) == []
    page.get_by_role("button", name=f"Remove ollama/{LARGE}").press("Enter")
    expect(fallbacks).to_be_focused()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()


def _compare(page: Page, provider: Replying) -> None:
    """Tries the last turn with the other model, beside its answer."""
    provider.script([Say("As another would say it."), Usage(1000, 100)])
    page.get_by_role("button", name="Try with another model").last.click()
    drawer = page.get_by_role("dialog", name="Try with another model")
    drawer.get_by_role("button", name="Model:").click()
    drawer.get_by_role("menuitemradio", name=re.compile(rf"{re.escape(LARGE)}(?!-)")).click()
    drawer.get_by_role("button", name="Run").click()
    expect(drawer.get_by_role("region", name="This answer")).to_contain_text("From the first again.")
    other = drawer.get_by_role("region", name="Other model")
    expect(other).to_contain_text("As another would say it.")
    expect(other).to_contain_text("0.0028 USD")
    drawer.get_by_role("button", name="Close").click()
    expect(reply(page)).to_contain_text("From the first again.")


def _meet_the_budget(page: Page, provider: Replying) -> None:
    """One expensive answer uses it up: the next message stays unsent, with the reason and a way to Usage."""
    provider.script([Say("That was expensive."), Usage(400_000, 100_000)])
    say(page, "Three")
    expect(reply(page)).to_contain_text("That was expensive.")
    done(page)
    say(page, "Four")
    refused = page.get_by_role("alert")
    expect(refused).to_contain_text(re.compile(r"There isn’t enough budget left\. It resets .+, \d+:\d\d"))
    expect(page.get_by_role("textbox", name="Message")).to_have_value("Four")
    assert violations(page) == []
    refused.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("meter", name="Your budget per day")).to_have_attribute("data-level", "full")
