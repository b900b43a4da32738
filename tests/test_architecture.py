"""The house's rules: who may import whom, no cycle, no import inside a function but for extras."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import threadkeep

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted((SOURCE / "threadkeep").rglob("*.py"))

ROOMS = {
    "domain": set[str](),
    "ports": {"domain"},
    "engine": {"ports", "domain"},
    "exchange": {"ports", "domain"},
    # The log is stored as the `events` dialect writes it.
    "services": {"engine", "dialects", "ports", "domain", "logs", "tasks"},
    "dialects": {"domain"},
    "http": {
        "services",
        "engine",
        "dialects",
        "ports",
        "domain",
        "choices",
        "settings",
        "logs",
        "tasks",
        "version",
    },
    # How a text is searched is told once, in `retrieval/tokens.py`.
    "storage": {"retrieval", "ports", "domain", "tasks"},
    "gateways": {"ports", "domain"},
    "mcp": {"retrieval", "ports", "domain", "logs", "tasks", "version"},
    "retrieval": {"ports", "domain"},
    # It also runs a Threadkeep of its own, reads streams as gateways do, and shares the views.
    "client": {"bootstrap", "http", "gateways", "dialects", "domain", "settings", "tasks", "version"},
    "settings": {"domain", "choices"},
    "choices": set[str](),
    "logs": {"domain"},
    "version": set[str](),
    "tasks": set[str](),
}
# These put the house together, so they may know everything.
BUILDERS = {"bootstrap", "cli", "doctor", "__init__", "__main__"}
# Heavy libraries that come with an extra, or that few turns need, and are loaded on first use.
EXTRAS = {
    "threadkeep.mcp.promptx_stdio",
    "threadkeep.storage.postgres",
    "threadkeep.retrieval.minilm",
    "threadkeep.retrieval.vectors",
    "docx",
    "docx.table",
    "pypdfium2",
    "xllamacpp",
    "jsonschema",
    "referencing",
}


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    return [*module.split("."), "__init__"][1]


def imports(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from (name.name for name in inner.names)
        elif isinstance(inner, ast.ImportFrom):
            assert not inner.level, "imports are absolute"
            assert inner.module
            known = {module_of(file) for file in FILES}
            for name in inner.names:
                whole = f"{inner.module}.{name.name}"
                yield whole if whole in known else inner.module


@pytest.mark.parametrize("file", FILES, ids=lambda file: module_of(file))
def test_module_imports_only_from_rooms_below_it(file: Path):
    room = room_of(module_of(file))
    if room in BUILDERS:
        return
    for imported in imports(ast.parse(file.read_text())):
        if imported.split(".")[0] == "threadkeep":
            assert room_of(imported) in ROOMS[room] | {room}, f"{room} may not import {imported}"
        elif room == "domain":
            assert imported.split(".")[0] in sys.stdlib_module_names, f"domain imports {imported}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: module_of(file))
def test_module_has_no_import_inside_a_function(file: Path):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert set(imports(node)) <= EXTRAS


def test_modules_form_no_cycle():
    edges = {
        module_of(file): {
            name for name in imports(ast.parse(file.read_text())) if name.startswith("threadkeep")
        }
        for file in FILES
    }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join((*path, module))
        if module not in done:
            for imported in edges.get(module, ()):
                visit(imported, (*path, module))
            done.add(module)

    for module in edges:
        visit(module, ())


def test_public_names_are_the_promised_ones():
    assert sorted(threadkeep.__all__) == [
        "BlockingClient", "Client", "Settings", "User", "UserId", "UserRole", "__version__", "create_app",
    ]  # fmt: skip
