"""API keys on the page: made, shown once, used by the programs that the page shows, and revoked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect
from scripts import page as page_build

from tests.serving import SOURCE, Server
from threadkeep.testing import Say, ScriptedModel
from threadkeep.testing.waiting import PATIENCE_S

SAID = "I keep threads."


def make(page: Page, name: str, scope: str = "Chat", agent: str | None = None) -> str:
    """Makes a key as a person does; its value."""
    page.goto("/#/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_role("radio", name=scope).check()
    if agent:
        page.get_by_role("radio", name="Only some").check()
        page.get_by_role("checkbox", name=agent).check()
    page.get_by_role("button", name="Make key").click()
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
    page.get_by_role("button", name="Make key").click()
    expect(budget).to_have_accessible_description(re.compile("decimal"))
    budget.fill("2.50")
    page.get_by_role("button", name="Make key").click()
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


def in_shell(code: str, _: Path) -> str:
    return ended("sh", "-ec", code)


def in_python(code: str, _: Path) -> str:
    return ended(sys.executable, "-c", code)


def in_typescript(code: str, folder: Path) -> str:
    """Bundled as a front end does it, and run by Node."""
    node, _ = page_build.commands()
    program, bundle, config = (folder / name for name in ("program.ts", "program.mjs", "rolldown.config.mjs"))
    program.write_text(code)
    client = page_build.SOURCE / "packages" / "client" / "src" / "index.ts"
    config.write_text(
        f"""export default {{
            input: {str(program)!r}, platform: "node",
            resolve: {{ alias: {{ "@threadkeep/client": {str(client)!r} }} }},
            output: {{ file: {str(bundle)!r} }},
        }};"""
    )
    tool = page_build.SOURCE / "node_modules" / "rolldown" / "bin" / "cli.mjs"
    ended(*node, str(tool), "-c", str(config))
    return ended(*node, str(bundle))


def ended(*command: str) -> str:
    """What a program prints."""
    paths = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=paths)
    assert done.returncode == 0, done.stderr
    return done.stdout


RUNNERS = {"curl": in_shell, "Python": in_python, "TypeScript": in_typescript}


@pytest.mark.parametrize("agent", [None, "Advisor"])
def test_programs_that_the_page_shows_talk_to_the_agent(
    page: Page, model: ScriptedModel, tmp_path: Path, agent: str | None
):
    if agent:
        page.request.post("/api/agents", data={"name": agent})
        page.reload()
    make(page, "Web shop", "Chat", agent)
    for name, run in RUNNERS.items():
        model.script([Say(SAID)])
        assert SAID in run(shown(page, name), tmp_path), name


def test_programs_of_a_key_that_only_reads_list_conversations(page: Page, tmp_path: Path):
    (agent,) = page.request.get("/api/agents").json()["items"]
    page.request.post(f"/api/agents/{agent['id']}/conversations", data={"title": "Lease"})
    make(page, "Nightly report", "Read")
    for name, run in RUNNERS.items():
        assert "Lease" in run(shown(page, name), tmp_path), name


def shown(page: Page, name: str) -> str:
    """The program that the page shows in a language."""
    page.get_by_role("button", name=name, exact=True).click()
    code = page.locator(".snippet pre")
    expect(code).to_have_attribute("aria-label", name)
    return code.inner_text()
