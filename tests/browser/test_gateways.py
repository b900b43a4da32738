"""An admin connects a model on the page, and people switch between its models while they talk."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import NARROW, Replying
from tests.browser.test_access import violations
from tests.browser.test_newcomer import open_page
from tests.browser.test_talking import done, reply, say
from tests.serving import Server
from threadkeep.testing import Say

KEY = "sk-the-only-key"


@pytest.mark.timeout(300)
def test_admin_connects_a_model_and_switches_between_its_models_while_talking(
    browser: Browser, tmp_path: Path
):
    with (
        Replying(models=("large", "small", "text-embedding-x"), key=KEY) as provider,
        Server(tmp_path) as server,
    ):
        page = open_page(browser, server)
        page.get_by_role("button", name="Connect a model").press("Enter")
        _connect(page, provider)
        expect(page.get_by_role("listitem").filter(has_text="ollama")).to_contain_text("small")
        assert violations(page) == []
        with server.client() as client:
            agent = next(it for it in client.get("/api/agents").json()["items"] if it["isDefault"])
            offer = {"settings": {"models": ["*"]}}
            client.patch(f"/api/agents/{agent['id']}", json=offer).raise_for_status()
        page.goto("/#/")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_text("demo model")).to_have_count(0)
        provider.script([Say("From the first.")], [Say("From the second.")], [Say("From the first again.")])
        picker = page.get_by_role("button", name="Model: ")
        expect(picker).to_have_accessible_name("Model: small")
        say(page, "One")
        expect(reply(page)).to_contain_text("From the first.")
        done(page)
        picker.click()
        page.get_by_role("menuitemradio", name="large").click()
        say(page, "Two")
        expect(reply(page)).to_contain_text("From the second.")
        done(page)
        page.reload()
        expect(picker).to_have_accessible_name("Model: large")  # the conversation keeps its model
        page.get_by_role("button", name="Regenerate").last.click()
        page.get_by_role("menuitemradio", name="small").click()
        expect(reply(page)).to_contain_text("From the first again.")
        done(page)
        asked = [it.body["model"] for it in provider.requests if len(it.body["messages"]) > 1]
        assert [it for it in asked if it != "small"] == ["large"]
        page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
        assert violations(page) == []
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
    form.get_by_text("Name and address").click()
    form.get_by_role("textbox", name="Name", exact=True).fill("ollama")
    form.get_by_role("button", name="Test").click()
    expect(form.get_by_role("checkbox")).to_have_count(3)  # the third shows those that don't chat
    assert violations(page) == []
    form.get_by_role("checkbox", name="small").check()
    form.get_by_role("checkbox", name="large").check()
    expect(form.get_by_role("combobox", name="Default model")).to_have_value("small")
    form.get_by_role("button", name="Connect").click()
    expect(page.get_by_text("Connected: ollama")).to_be_visible()
