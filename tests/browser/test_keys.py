"""API keys on the page: made, shown once, and revoked."""

import re

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.serving import Server


def make(page: Page, name: str, scope: str = "Chat", agent: str | None = None) -> str:
    """Makes a key as a person does; its value."""
    page.goto("/#/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_role("radio", name=scope).check()
    if agent:
        page.get_by_role("radio", name="Only some").check()
        page.get_by_role("checkbox", name=agent).check()
    page.get_by_role("button", name="Create key").click()
    shown = page.get_by_role("region", name=f"Your key “{name}”").locator(".secret code")
    expect(shown).to_have_text(re.compile(r"tk_[\w-]{43}"))
    return shown.inner_text()


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("list", name="API keys").get_by_role("listitem").filter(has_text=name)


def test_key_is_made_shown_once_used_and_revoked(page: Page, server: Server):
    page.get_by_role("button", name="Profile").click()
    page.get_by_role("menuitem", name="Settings").click()
    page.get_by_role("link", name="Manage API keys").click()
    value = make(page, "Nightly report", "Read")
    page.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_text(value)).to_have_count(0)
    expect(row(page, "Nightly report")).to_contain_text(f"{value[:11]}… · Read")
    expect(row(page, "Nightly report")).to_contain_text("Never used")
    signed = {"x-api-key": value}
    assert httpx.get(f"{server.url}/api/me", headers=signed).status_code == 200
    page.reload()
    expect(row(page, "Nightly report")).to_contain_text("Last used")
    page.get_by_role("button", name="Revoke “Nightly report”").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
    expect(row(page, "Nightly report")).to_be_visible()
    page.get_by_role("button", name="Revoke “Nightly report”").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No keys yet")).to_be_visible()
    assert httpx.get(f"{server.url}/api/me", headers=signed).status_code == 401


def test_what_is_wrong_is_told_at_its_field(page: Page):
    page.goto("/#/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("textbox", name="Name").fill("x")
    budget = page.get_by_role("textbox", name="Budget per month")
    budget.fill("a lot")
    page.get_by_role("button", name="Create key").click()
    expect(budget).to_have_accessible_description(re.compile("decimal"))
    budget.fill("2.50")
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("button", name="I have saved it").click()
    expect(row(page, "x")).to_contain_text("2.50 per month")
    # A key for everything expires, and the form offers nothing longer.
    page.get_by_role("button", name="New key").click()
    page.get_by_role("radio", name="Everything").check()
    assert page.get_by_role("combobox", name="Expires").locator("option").all_inner_texts() == [
        "In 7 days",
        "In 30 days",
        "In 90 days",
    ]
