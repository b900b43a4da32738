"""Long suites that only matter when what they look at has changed: others' programs, crashes, strange input.

A suite that has passed passes again while its inputs are the same, to the byte. `make compat` runs all suites
and writes down in `compat.lock` what their inputs were. `scripts/test`, which is CI, gives pytest the option
`--skip-unchanged`: a suite whose inputs are still those is skipped, and pytest says first which and why;
every other one runs. Without git, which knows the repository's files, nothing is skipped.
"""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LOCK = Path(__file__).with_suffix(".lock")

SHARED = (
    "pyproject.toml",
    "requirements/dev.lock",
    "src/threadkeep/*.py",
    "src/threadkeep/domain",
    "src/threadkeep/handling",
    "src/threadkeep/ports",
    "src/threadkeep/storage",
    "src/threadkeep/testing",
    "src/threadkeep/wire",
    "tests/*.py",
)
"""What every suite stands on, and this table."""


@dataclass(frozen=True)
class Suite:
    """Tests, and what they look at besides themselves, our modules that they import, and what is shared."""

    name: str
    tests: tuple[str, ...]
    looks_at: tuple[str, ...]
    twins_only: bool = False
    """Of the tests that run on both databases, what runs on PostgreSQL; what runs on SQLite always runs."""

    @property
    def inputs(self) -> list[str]:
        """All that its outcome depends on."""
        return sorted({*self.tests, *self.looks_at, *SHARED, *imported(self.tests)})


SUITES = (
    Suite(
        "MCP: sessions, sandboxes, servers of others from npm and PyPI",
        ("tests/faults/test_turn_mcp.py", "tests/mcp"),
        (
            "src/threadkeep/engine",
            "src/threadkeep/mcp",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "src/threadkeep/tools",
            "src/threadkeep/confined",
            "tests/faults",
        ),
    ),
    Suite(
        "official clients of model providers",
        ("tests/gateways/test_against_official_sdks.py", "tests/gateways/test_official_types.py"),
        ("src/threadkeep/gateways", "src/threadkeep/sse.py", "tests/gateways", "tests/testing"),
    ),
    Suite(
        "AG-UI and CopilotKit, in node and in a browser",
        (
            "tests/browser/test_copilotkit_example.py",
            "tests/clients/ag_ui",
            "tests/clients/test_across.py",
        ),
        (
            "examples/copilotkit",
            "src/threadkeep/bootstrap",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/log",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
        ),
    ),
    Suite(
        "MCP clients, in Python and in node",
        ("tests/clients/mcp",),
        (
            "docs/clients.md",
            "src/threadkeep/bootstrap",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/log",
            "src/threadkeep/mcp",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
        ),
    ),
    Suite(
        "OpenAI's packages, in Python and in node",
        ("tests/clients/openai", "tests/clients/openai_agents"),
        (
            "docs/clients.md",
            "src/threadkeep/bootstrap",
            "src/threadkeep/context",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/log",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
        ),
    ),
    Suite(
        "applications that mount Threadkeep",
        ("tests/browser/test_todo_example.py", "tests/conformance/test_todo_example.py", "tests/hosts"),
        (
            "examples",
            "src/threadkeep/bootstrap",
            "src/threadkeep/http",
            "src/threadkeep/protocols",
            "src/threadkeep/services",
            "src/threadkeep/settings",
            "web",
        ),
    ),
    Suite(
        "the AI SDK and assistant-ui, in node and in a browser",
        ("tests/browser/test_assistant_ui.py", "tests/browser/test_use_chat.py", "tests/clients/ai_sdk"),
        (
            "docs/clients.md",
            "examples/use-chat",
            "src/threadkeep/agents",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/log",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "tests/protocols",
        ),
    ),
    Suite(
        "the model that runs here, of llama.cpp",
        ("tests/browser/test_newcomer.py", "tests/gateways/test_local.py"),
        (
            "requirements/weights.lock",
            "src/threadkeep/bootstrap",
            "src/threadkeep/cli",
            "src/threadkeep/gateways",
            "src/threadkeep/retrieval",
            "tests/gateways",
            "web",
        ),
    ),
    Suite(
        "servers that die at every commit, are killed, upgraded and stopped, or lose disk and database",
        (
            "tests/faults/test_deploy.py",
            "tests/faults/test_every_boundary.py",
            "tests/faults/test_http_server.py",
            "tests/faults/test_killed_servers.py",
            "tests/faults/test_last_release.py",
            "tests/faults/test_payload_crashes.py",
            "tests/faults/test_processes.py",
            "tests/faults/test_rolling_upgrade.py",
            "tests/faults/test_stopping.py",
            "tests/faults/test_turn_nodes.py",
        ),
        (
            "deploy",
            "src/threadkeep/bootstrap",
            "src/threadkeep/cli",
            "src/threadkeep/confined",
            "src/threadkeep/context",
            "src/threadkeep/engine",
            "src/threadkeep/gateways",
            "src/threadkeep/http",
            "src/threadkeep/jobs",
            "src/threadkeep/log",
            "src/threadkeep/mcp",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "src/threadkeep/settings",
            "src/threadkeep/tools",
            "tests/faults",
        ),
    ),
    Suite(
        "agents in code: killed, cut off, changed, misbehaving; the harness with which users do that",
        (
            "tests/faults/test_agents_in_code.py",
            "tests/faults/test_changed_programs.py",
            "tests/faults/test_killed_programs.py",
            "tests/faults/test_programs_and_their_data.py",
            "tests/faults/test_programs_that_are_cut_off.py",
            "tests/faults/test_programs_that_misbehave.py",
            "tests/testing/test_crashes.py",
            "tests/testing/test_other_agents.py",
            "tests/testing/test_processes.py",
        ),
        ("examples/orders", "src/threadkeep", "tests/faults", "tests/testing"),
    ),
    Suite(
        "agents of pydantic-ai, the OpenAI Agents SDK and LangGraph, killed and not",
        (
            "tests/agents/test_frameworks.py",
            "tests/agents/test_langgraph.py",
            "tests/agents/test_openai_agents.py",
            "tests/agents/test_pydantic_ai.py",
            "tests/frameworks",
        ),
        ("examples", "src/threadkeep", "tests/agents", "tests/faults", "tests/testing"),
    ),
    Suite(
        "agents of other servers: pydantic-ai, LangGraph, Agno, ourselves; killed at every commit",
        ("tests/clients/ag_ui_agents",),
        (
            "src/threadkeep/agents",
            "src/threadkeep/engine/code",
            "src/threadkeep/log",
            "src/threadkeep/mcp",
            "src/threadkeep/protocols/ag_ui",
            "src/threadkeep/remote_agents",
            "src/threadkeep/runtime",
            "src/threadkeep/services/replies",
            "tests/clients/python.py",
            "tests/remote_agents",
        ),
    ),
    Suite(
        "the checker of tests/proof finds what is put wrong on purpose",
        ("tests/proof/test_mutants.py",),
        ("src/threadkeep", "tests/proof"),
    ),
    Suite(
        "commands that start servers of their own",
        (
            "tests/cli/test_attaching.py",
            "tests/cli/test_data_folders.py",
            "tests/cli/test_ingest.py",
            "tests/cli/managing/test_keys.py",
            "tests/cli/test_rerun.py",
            "tests/cli/test_terminal.py",
            "tests/cli/test_terminal_approvals.py",
        ),
        ("src/threadkeep", "tests/cli"),
    ),
    Suite(
        "the documentation, carried out as written",
        (
            "tests/docs/test_clients.py",
            "tests/docs/test_hosting.py",
            "tests/docs/test_pages.py",
            "tests/docs/test_postgresql.py",
        ),
        (
            "README.md",
            "deploy",
            "docs",
            "src/threadkeep",
            "tests/clients/*/node",
            "tests/docs",
            "web/src/keys",
        ),
    ),
    Suite(
        "the npm packages, installed from their tarballs",
        ("tests/browser/test_react_chat.py", "tests/docs/test_typescript.py", "tests/packages"),
        (
            "docs/typescript.md",
            "examples/react-chat",
            "scripts",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/log",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "tests/docs/*.py",
            "web",
        ),
    ),
    Suite(
        "projects of `create vite` and Next.js with a chat, as docs/recipes.md makes them",
        ("tests/browser/test_recipes.py",),
        (
            "docs/recipes.md",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/log",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "tests/docs/*.py",
            "tests/docs/programs",
        ),
    ),
    Suite(
        "what the page shows with a new key, run with the packages that it names",
        ("tests/browser/test_connect.py",),
        (
            "examples/copilotkit",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "tests/clients",
            "web",
        ),
    ),
    Suite(
        "every parser and every route, fuzzed",
        ("tests/faults/test_http_bad_input.py", "tests/fuzz", "tests/http/test_fuzz.py"),
        (
            "src/threadkeep/exports",
            "src/threadkeep/files",
            "src/threadkeep/gateways",
            "src/threadkeep/http",
            "src/threadkeep/imports",
            "src/threadkeep/mcp",
            "src/threadkeep/protocols",
            "src/threadkeep/schemas",
            "src/threadkeep/services",
            "tests/hostile",
            "tests/http",
        ),
    ),
    Suite(
        "texts of strangers, which may take no more than linear work",
        ("tests/hostile",),
        ("src/threadkeep",),
    ),
    Suite(
        "imports: files of strangers, tampered exports, processes that die or burn",
        (
            "tests/http/api/test_import_processes.py",
            "tests/http/test_imported_replies.py",
            "tests/imports",
        ),
        (
            "docs/data.md",
            "src/threadkeep/bootstrap",
            "src/threadkeep/cli",
            "src/threadkeep/confined",
            "src/threadkeep/context",
            "src/threadkeep/exports",
            "src/threadkeep/files",
            "src/threadkeep/http",
            "src/threadkeep/imports",
            "src/threadkeep/jobs",
            "src/threadkeep/log",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "tests/http",
        ),
    ),
    Suite(
        "runs of LangGraph, recorded",
        ("tests/client/test_langgraph_example.py",),
        (
            "examples/langgraph",
            "src/threadkeep/bootstrap",
            "src/threadkeep/client",
            "src/threadkeep/context",
            "src/threadkeep/engine",
            "src/threadkeep/http",
            "src/threadkeep/log",
            "src/threadkeep/protocols",
            "src/threadkeep/runtime",
            "src/threadkeep/services",
            "src/threadkeep/settings",
        ),
    ),
    Suite(
        "the page: each screen with what assistive technology reads, strange texts, previews, lists, offline",
        (
            "tests/browser/test_access.py",
            "tests/browser/test_bad_input.py",
            "tests/browser/test_guide.py",
            "tests/browser/test_imports.py",
            "tests/browser/test_long.py",
            "tests/browser/test_offline.py",
            "tests/browser/test_order.py",
            "tests/browser/test_outbox.py",
            "tests/browser/test_previews.py",
            "tests/browser/test_rhythm.py",
            "tests/browser/test_sidebar.py",
            "tests/browser/test_typeface.py",
        ),
        ("scripts/page.py", "src/threadkeep", "tests/browser", "web"),
    ),
    Suite(
        "above storage and in chaos, on PostgreSQL what passes on SQLite",
        ("tests/chaos", "tests/conformance", "tests/http", "tests/protocols", "tests/services"),
        ("src/threadkeep",),
        twins_only=True,
    ),
)


def imported(tests: Iterable[str]) -> set[str]:
    """The modules of our own tests on which these stand, with the fixtures beside them."""
    found: set[Path] = set()
    waiting = [ROOT / name for path in tests for name in files(path) if name.endswith(".py")]
    while waiting:
        module = waiting.pop()
        if module in found or not module.is_file():
            continue
        found.add(module)
        waiting += (folder / "conftest.py" for folder in module.parents if folder.is_relative_to(ROOT))
        waiting += (ROOT / name for name in _imports(module.read_bytes()))
    return {str(it.relative_to(ROOT)) for it in found}


@cache
def _imports(module: bytes) -> list[str]:
    """Where what it imports of our tests may be: a name may be a module, or in one."""
    found: list[str] = []
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tests":
            source = node.module.replace(".", "/")
            found += (f"{source}.py", *(f"{source}/{it.name}.py" for it in node.names))
    return found


def files(path: str) -> list[str]:
    """The repository's files at a path, new ones included; none without git."""
    return sorted({*_git("ls-files", "-z", "-co", "--exclude-standard", f":(glob){path}").split("\0")} - {""})


def content(path: str) -> str:
    """A hash of what the files at a path say now."""
    digest = hashlib.sha256()
    for name in files(path):
        if (file := ROOT / name).is_file():  # else it is deleted, though git still lists it
            digest.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def contents(suite: Suite) -> dict[str, str]:
    """What the suite's inputs are now."""
    return {path: content(path) for path in suite.inputs}


def why_skipped(suite: Suite) -> str | None:
    """Why the suite need not run, if it need not."""
    if not files("pyproject.toml") or changed(suite):
        return None
    commit = _git("log", "-1", "--format=%h", "--", *suite.inputs)
    looked_at = ", ".join(sorted({*suite.tests, *suite.looks_at, *SHARED}))
    return f"{suite.name}: nothing changed in {looked_at} and what it imports since {commit}; run make compat"


def changed(suite: Suite) -> list[str]:
    """The inputs that are others than when the suite passed."""
    all_passed: dict[str, dict[str, str]] = json.loads(LOCK.read_text()) if LOCK.exists() else {}
    passed = all_passed.get(suite.name, {})
    return [path for path, now in contents(suite).items() if passed.get(path) != now]


def write_down(suites: Iterable[Suite]) -> None:
    """These suites have passed with what their inputs are now."""
    LOCK.write_text(json.dumps({suite.name: contents(suite) for suite in suites}, indent=2) + "\n")


SKIPPED = pytest.StashKey[dict[Suite, str]]()
"""The suites that need not run, and why."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skip-unchanged",
        action="store_true",
        help="skip the suites of tests/compat.py that would repeat themselves",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Looks once: workers are told what was found."""
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    if told is not None:
        reasons: dict[str, str] = told["unchanged"]
    elif config.getoption("skip_unchanged"):
        reasons = {it.name: why for it in SUITES if (why := why_skipped(it))}
    else:
        reasons = {}
    config.stash[SKIPPED] = {it: reasons[it.name] for it in SUITES if it.name in reasons}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Before xdist starts a worker."""
    node.workerinput["unchanged"] = {it.name: why for it, why in node.config.stash[SKIPPED].items()}


def pytest_report_header(config: pytest.Config) -> Iterator[str]:
    """What becomes of each suite."""
    for suite in SUITES if config.getoption("skip_unchanged") else ():
        if reason := config.stash[SKIPPED].get(suite):
            yield f"skipped: {reason}"
        else:
            yield f"runs: {suite.name}; changed since it passed: {', '.join(changed(suite))}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips before anything is loaded, which takes long where others' programs are spoken to."""
    if not collection_path.is_relative_to(config.rootpath):
        return None
    path = collection_path.relative_to(config.rootpath)
    suites = [it for it in config.stash[SKIPPED] if not it.twins_only]
    return any(path.is_relative_to(it) for suite in suites for it in suite.tests) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the skipped twins."""
    paths = [path for suite in config.stash[SKIPPED] if suite.twins_only for path in suite.tests]
    there = {it.nodeid for it in items}
    left_out = [it for it in items if _is_below(it, paths) and _twin(it) in there]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [it for it in items if it not in {*left_out}]


def _is_below(item: pytest.Item, paths: list[str]) -> bool:
    return any(Path(item.nodeid.partition("::")[0]).is_relative_to(path) for path in paths)


def _twin(item: pytest.Item) -> str | None:
    """The same test on SQLite, for one on PostgreSQL."""
    test, _, parameters = item.nodeid.partition("[")
    names = parameters.removesuffix("]").split("-")
    if "postgres" not in names:
        return None
    return f"{test}[{'-'.join('sqlite' if it == 'postgres' else it for it in names)}]"


def _git(*arguments: str) -> str:
    program = shutil.which("git")
    if program is None:
        return ""
    return subprocess.run(
        [program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def main() -> None:
    """Runs every suite and, if all pass, writes down with what."""
    tests = sorted({path for suite in SUITES for path in suite.tests})
    workers = str(2 * (os.cpu_count() or 1))
    command = [sys.executable, "-m", "pytest", "-n", workers, "--dist", "worksteal", *tests]
    if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(code)
    write_down(SUITES)
    print(f"All suites passed: commit {LOCK.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
