"""What the documentation tells people to type and to write works, and prints what is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, blocks, links, pages
from tests.docs.scripts import GRAVITY, PAINT, ROOM, STORY, TOKYO
from tests.docs.walk import Script, Walk
from threadkeep.testing import Reply, Say, UseTool


@dataclass(frozen=True)
class Scene:
    """What a page needs besides itself: what the model says, and how the page's own server is set up."""

    script: Script = field(default_factory=dict[str, Reply])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the environment; `{model}` is the scripted model's address."""


OPENAI = {"OPENAI_BASE_URL": "{model}/v1", "OPENAI_API_KEY": "scripted"}
"""For programs that ask OpenAI themselves."""
REFUND: Script = {
    "Refund order 7.": [Say("I look it up. "), UseTool("find_order", {"order_id": 7})],
    "Order 7 costs 120 euros.": [UseTool("refund", {"order_id": 7})],
    "Order 7 is refunded.": [Say("The 120 euros are on their way.")],
}

SCENES = {
    "README.md": Scene(STORY | GRAVITY),
    "docs/quickstart.md": Scene(STORY | GRAVITY),
    "docs/concepts.md": Scene(),
    "docs/keys.md": Scene(),
    "docs/tokens.md": Scene(),
    "docs/roles.md": Scene(),
    "docs/crashes.md": Scene(),
    "docs/agents-in-code.md": Scene(),
    "docs/agents-as-files.md": Scene(),
    "docs/approvals.md": Scene(TOKYO | ROOM | PAINT),
    "docs/python.md": Scene(STORY | GRAVITY | ROOM | PAINT),
    "docs/websocket.md": Scene(GRAVITY),
    "docs/testing.md": Scene(),
    "docs/models.md": Scene(),
    "docs/feedback.md": Scene({"What is a contract": [Say("An agreement that binds.")]}),
    "docs/mcp.md": Scene(TOKYO, {"THREADKEEP_MCP_ALLOWED_COMMANDS": "npx,uvx,python"}),
    "docs/documents.md": Scene(
        {
            "When can": [UseTool("search_documents", {"query": "notice of the tenant"})],
            "thirty days": [Say("With a notice of thirty days [1].")],
        },
    ),
    "docs/files.md": Scene({"How much is the rent": [Say("900 euros a month.")]}),
    "docs/importing.md": Scene(),
    "docs/moving.md": Scene(),
    "docs/briefings.md": Scene({"Why is that": [Say("Because few people review.")]}),
    "docs/costs.md": Scene(GRAVITY),
    "docs/pydantic-ai.md": Scene(REFUND, OPENAI),
    "docs/openai-agents.md": Scene(REFUND, {**OPENAI, "OPENAI_AGENTS_DISABLE_TRACING": "1"}),
    "docs/langgraph.md": Scene(REFUND, OPENAI),
    "docs/ag-ui-agents.md": Scene(REFUND, OPENAI),
    "docs/compaction.md": Scene({"Assistant: Gravity": [Say("They spoke about gravity.")]} | GRAVITY),
}


# Pages that need more than a script, and what carries them out.
ELSEWHERE = {
    "docs/front-end.md": "tests/browser/test_front_end_page.py",
    "docs/hosting.md": "tests/docs/test_hosting.py",
    "docs/sign-in.md": "tests/docs/test_sign_in.py",
    "docs/postgresql.md": "tests/docs/test_postgresql.py",
    "docs/clients.md": "tests/docs/test_clients.py",
    "docs/typescript.md": "tests/docs/test_typescript.py",
    "docs/operating.md": "tests/test_operating_guide.py",
    "docs/hardening.md": "tests/test_operating_guide.py",
    "docs/docker.md": "tests/test_operating_guide.py",
    "docs/data.md": "tests/imports/test_commands.py",
    "docs/recipes.md": "tests/browser/test_recipes.py",
    "docs/performance.md": "bench",  # takes minutes, and says how it was measured
}


@pytest.mark.parametrize("name", SCENES)
def test_page_works_as_written(name: str, tmp_path: Path):
    scene = SCENES[name]
    settings = {
        **scene.settings,
        "THREADKEEP_MCP_READABLE": str(tmp_path),  # programs that the page writes
        "THREADKEEP_MCP_CONNECT_BUDGET_S": "60",  # a busy machine is no reason to fail
    }
    with Walk(ROOT / name, tmp_path, scene.script, settings) as walk:
        walk.all()


def test_no_page_goes_untried():
    told = [*DOCS.glob("*.md"), ROOT / "README.md"]
    names = {str(page.relative_to(ROOT)) for page in told if any(blocks(page))}
    assert names <= {*SCENES, *ELSEWHERE}
    for page, test in ELSEWHERE.items():
        assert (ROOT / test).exists() or not (ROOT / page).exists(), page


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists() or str(target.relative_to(ROOT)) in ELSEWHERE, link
        assert not anchor or anchor in anchors(target), link
