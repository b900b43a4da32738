"""What the page shows to write with a new key: programs, pages and configurations, all run."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from scripts import page as page_build

from tests.browser.conftest import NARROW, PATIENCE_MS
from tests.browser.test_keys import make
from tests.clients.ai_sdk.driver import PACKAGES as AI_SDK
from tests.clients.ai_sdk.pages import served
from tests.clients.mcp import configuration
from tests.clients.mcp.client import connected
from tests.mcp.npm import install
from tests.serving import SOURCE, Server
from threadkeep.testing import Say, ScriptedModel
from threadkeep.testing.waiting import PATIENCE_S

CLIENTS = Path(__file__).parents[1] / "clients"
COPILOTKIT = Path(__file__).parents[2] / "examples" / "copilotkit"
SAID = "I keep threads."

Blocks = dict[str, str]
"""What is shown for a client, by where it goes."""


def shown(page: Page, client: str) -> Blocks:
    """What the page shows for a client."""
    page.get_by_role("radio", name=client, exact=True).check()
    codes = page.locator(".connect pre")
    return {it.get_attribute("aria-label") or "": it.inner_text() for it in codes.all()}


def in_shell(blocks: Blocks, _: Path) -> str:
    return ended("sh", "-ec", blocks["Terminal"])


def in_python(blocks: Blocks, _: Path) -> str:
    return ended(sys.executable, "-c", blocks["Python"])


def in_typescript(blocks: Blocks, folder: Path) -> str:
    """Bundled as a front end does it, and run by Node."""
    node, _ = page_build.commands()
    program, bundle, config = (folder / name for name in ("program.ts", "program.mjs", "rolldown.config.mjs"))
    program.write_text(blocks["TypeScript"])
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


def in_openai_python(blocks: Blocks, folder: Path) -> str:
    program = folder / "ask.py"
    program.write_text(blocks["openai for Python"])
    return ended("sh", "-ec", f"{blocks['Terminal']}\n'{sys.executable}' '{program}'")


def in_openai_node(blocks: Blocks, folder: Path) -> str:
    packages = install(CLIENTS / "openai" / "node")
    (folder / "node_modules").symlink_to(packages / "node_modules")
    program = folder / "ask.mjs"
    program.write_text(blocks["openai for Node.js"])
    return ended("sh", "-ec", f"{blocks['Terminal']}\n'{packages / 'bin' / 'node'}' '{program}'")


def ended(*command: str) -> str:
    """What a program prints."""
    paths = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=paths)
    assert done.returncode == 0, done.stderr
    return done.stdout


READING = {"curl": in_shell, "Python": in_python, "TypeScript": in_typescript}
CHATTING = {**READING, "openai for Python": in_openai_python, "openai for Node.js": in_openai_node}
CONFIGURATIONS = {
    "Claude Code": ".mcp.json",
    "Cursor": ".cursor/mcp.json",
    "VS Code": ".vscode/mcp.json",
    "Codex": "~/.codex/config.toml",
}
PAGES = {"useChat": AI_SDK, "CopilotKit": COPILOTKIT}


@pytest.mark.parametrize("agent", [None, "Advisor"])
def test_programs_talk_to_the_agent(page: Page, model: ScriptedModel, tmp_path: Path, agent: str | None):
    if agent:
        page.request.post("/api/agents", data={"name": agent})
        page.reload()
    make(page, "Web shop", "Chat", agent)
    for client, run in CHATTING.items():
        model.script([Say(SAID)])
        assert SAID in run(shown(page, client), tmp_path), client


def test_programs_of_a_key_that_only_reads_list_conversations(page: Page, tmp_path: Path):
    (agent,) = page.request.get("/api/agents").json()["items"]
    page.request.post(f"/api/agents/{agent['id']}/conversations", data={"title": "Lease"})
    make(page, "Nightly report", "Read")
    for client, run in READING.items():
        assert "Lease" in run(shown(page, client), tmp_path), client
    expect(choices(page)).to_have_count(len(READING) + len(CONFIGURATIONS))


def test_configurations_connect_mcp_clients(page: Page, server: Server):
    key = make(page, "My assistant")
    for client, file in CONFIGURATIONS.items():
        blocks = shown(page, client)
        given = blocks.get("Terminal", f"export {configuration.KEY}={key}")
        assert given.strip() == f"export {configuration.KEY}={key}"
        configured = configuration.read(blocks[file], key)
        assert configured.url == f"{server.url}/mcp"
        assert "Assistant" in beside_the_browser(agents_of(server.url, configured.headers)), client


async def agents_of(url: str, headers: dict[str, str]) -> set[str]:
    # The newer era begins with a probe of at most 10 s, too short for a cold server on a busy machine.
    async with connected(url, headers, "2025-11-25") as client:
        listed = (await client.call_tool("list_agents", {})).structured_content["agents"]
        return {it["name"] for it in listed}


def beside_the_browser(work: Coroutine[Any, Any, set[str]]) -> set[str]:
    """Runs it in another thread: the browser's loop runs in this one."""
    with ThreadPoolExecutor() as threads:
        return threads.submit(asyncio.run, work).result()


@pytest.mark.parametrize(
    ("client", "agent"), [("useChat", None), ("useChat", "Advisor"), ("CopilotKit", None)]
)
def test_pages_talk_to_the_agent(
    page: Page, browser: Browser, model: ScriptedModel, tmp_path: Path, client: str, agent: str | None
):
    if agent:
        page.request.post("/api/agents", data={"name": agent})
        page.reload()
    key = make(page, "Web shop", "Chat", agent)
    blocks = shown(page, client)
    assert blocks.pop("Terminal").strip() == f"export {configuration.KEY}={key}"
    made = copytree(CLIENTS / "bare_page", tmp_path / "page")
    with served(made, blocks, locked=PAGES[client], THREADKEEP_KEY=key) as url:
        context = browser.new_context(base_url=url)
        context.set_default_timeout(PATIENCE_MS)
        model.script([Say(SAID)])
        other = context.new_page()
        other.goto("/")
        ask(other, client)
        expect(other.get_by_text(SAID)).to_be_visible()
        other.reload()
        context.close()
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    named = page.request.get(f"/api/agents/{conversation['agentId']}").json()["name"]
    assert named == (agent or "Assistant")


def ask(page: Page, client: str) -> None:
    if client == "useChat":
        page.get_by_role("button", name="Ask").click()
    else:
        page.get_by_test_id("copilot-chat-textarea").fill("Hello!")
        page.get_by_test_id("copilot-send-button").click()


def test_client_is_picked_with_the_keyboard_on_a_narrow_screen(page: Page):
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    make(page, "Web shop")
    expect(choices(page)).to_have_count(len(CHATTING) + len(PAGES) + len(CONFIGURATIONS))
    choices(page).first.focus()
    for _ in range(len(CHATTING)):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="useChat")).to_be_checked()
    expect(page.get_by_role("figure").last).to_contain_text("DefaultChatTransport")
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]


def test_programs_can_be_looked_up_after_the_key_was_saved(page: Page):
    key = make(page, "Web shop")
    page.get_by_role("button", name="I have saved it").click()
    page.get_by_text("Connect", exact=True).click()
    blocks = shown(page, "openai for Python")
    assert "base_url" in blocks["openai for Python"]
    assert blocks["Terminal"].strip() == f"export {configuration.KEY}=tk_your_key"
    expect(page.get_by_text(key)).to_have_count(0)


def choices(page: Page) -> Locator:
    return page.get_by_role("radiogroup", name="Connect").get_by_role("radio")
