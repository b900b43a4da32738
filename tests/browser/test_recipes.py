"""docs/recipes.md, carried out: projects of `create vite` and Next.js with a chat, in a browser."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.docs.pages import DOCS
from tests.docs.walk import Walk
from tests.machine import CACHE, PERSON
from threadkeep.testing import Gate, Say, Wait

OF_NETWORKS = ("npm_config_", "node_extra", "node_use", "http_proxy", "https_proxy", "no_proxy")


def test_projects_have_a_chat_that_survives_a_reload(browser: Browser, tmp_path: Path):
    gates = {"vite": Gate(), "next": Gate()}
    script = {f"Tell {name}": [Say("Once upon"), Wait(gate), Say(" a time.")] for name, gate in gates.items()}
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
            page.goto(url)
            page.get_by_role("textbox", name="Message").fill(f"Tell {name}")
            page.get_by_role("button", name="Send").click()
            expect(page.get_by_text("Once upon", exact=False)).to_be_visible()
            page.reload()
            expect(page.get_by_text("Once upon", exact=False)).to_be_visible()
            expect(page.get_by_text(f"Tell {name}", exact=False)).to_have_count(1)
            gates[name].open()
            expect(page.get_by_text("Once upon a time.", exact=False)).to_be_visible()
            page.close()
