"""docs/clients.md: its programs with the real packages, and its snippets as the page shows them."""

from pathlib import Path
from textwrap import indent

from tests.docs.pages import DOCS, ROOT, blocks
from tests.docs.scripts import GRAVITY, TOKYO
from tests.docs.walk import Walk
from tests.mcp.npm import install
from threadkeep.testing import Reply, Say, UseTool

PAGE = DOCS / "clients.md"
SNIPPETS = ROOT / "web" / "src" / "keys" / "snippets"
CLIENTS = ROOT / "tests" / "clients"
SCRIPT: dict[str, Reply] = {
    **(GRAVITY | TOKYO),
    "What can you do": [Say("I answer questions and use tools.")],
    "How much is the rent": [Say("900 euros a month.")],
    "for a room": [Say("It depends on the city.")],
    "How warm": [UseTool("temperature", {"room": "kitchen"})],
    "21 degrees": [Say("It is 21 degrees in the kitchen.")],
    "Describe Oslo": [Say('{"name": "Oslo", "people": 700000}')],
    "apples fall": [Say("Because of gravity.")],
}
# What neither the walk nor the page's own test runs, and what does.
ELSEWHERE = {
    "agent.py": "tests/clients/openai_agents/test_openai_agents.py",
    "threadkeep.jsx": "tests/browser/test_assistant_ui.py",
}


def test_page_works_as_written(tmp_path: Path):
    modules = tmp_path / "node_modules"
    modules.mkdir()
    for client, package in (("openai", "openai"), ("ag_ui", "@ag-ui")):
        (modules / package).symlink_to(install(CLIENTS / client / "node") / "node_modules" / package)
    settings = {"THREADKEEP_MCP_READABLE": str(tmp_path), "THREADKEEP_MCP_CONNECT_BUDGET_S": "60"}
    with Walk(PAGE, tmp_path, SCRIPT, settings) as walk:
        walk.all()


def test_files_are_those_that_the_page_shows_with_a_new_key():
    """Where they are run: tests/browser/test_connect.py."""
    of_the_page = {it.name: it.read_text() for it in SNIPPETS.iterdir()}
    here = {block.code for block in blocks(PAGE) if not block.file or block.file not in ELSEWHERE}
    of_the_page.pop("key.sh")  # here, a command makes the key
    assert here >= {*of_the_page.values()}
    files = {block.code for block in blocks(PAGE) if block.file and block.file not in ELSEWHERE}
    assert files <= {*of_the_page.values()}
    assert all((ROOT / test).exists() for test in ELSEWHERE.values())


def test_readme_shows_the_lines_of_the_page():
    (lines,) = (block.code for block in blocks(ROOT / "README.md") if block.file == "chat.jsx")
    assert indent(lines, "  ") in (SNIPPETS / "use-chat.jsx").read_text()


def test_nothing_is_left_out():
    assert not any("diagram" in block.words for block in blocks(PAGE))
