"""The architecture's rules: what may import what, no cycle, no import inside a function but for extras.

CONTRIBUTING describes the same rules in words.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import threadkeep
import threadkeep.client
from threadkeep.cli import COMMANDS

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted((SOURCE / "threadkeep").rglob("*.py"))

COMMON = {"clock", "logs", "loopback", "metrics", "tasks", "version", "choices"}
"""Small modules for the layers that have all of the engine below them."""

LAYERS: dict[str, set[str]] = {
    "domain": set(),
    "ports": {"domain"},
    "engine": {"ports", "domain"},
    "log": {"engine", "wire", "ports", "domain"} | COMMON,
    "jobs": {"engine", "log", "ports", "domain"} | COMMON,
    "services": {"engine", "log", "jobs", "ports", "domain"} | COMMON,
    # The two sides of the edge: a protocol serves its routes as `http` does, and `http` mounts them.
    "http": {"protocols", "services", "engine", "log", "wire", "ports", "domain", "settings"} | COMMON,
    "protocols": {"http", "services", "engine", "log", "wire", "ports", "domain"} | COMMON,
    "wire": {"ports", "domain"},
    "exchange": {"ports", "domain"},
    # How a text is searched is decided once, in `retrieval/terms.py`.
    "storage": {"retrieval", "ports", "domain", "tasks"},
    "gateways": {"ports", "domain", "sse"},
    "mcp": {"retrieval", "ports", "domain", "logs", "tasks", "version"},
    "tools": {"retrieval", "ports", "domain"},
    "retrieval": {"ports", "domain"},
    # A worker process is started, limited and ended in one way, and PDFs are opened in one.
    "files": {"retrieval", "ports", "domain"},
    # What a stranger's schema costs is limited in the same kind of process.
    "schemas": {"retrieval", "ports", "domain"},
    "client": {"wire", "domain", "loopback", "sse", "tasks"},
    # What tests run: a whole Threadkeep. Nothing else imports it.
    "testing": {"bootstrap", "client", "http", "wire", "domain", "settings"},
    "settings": {"domain", "choices", "loopback"},
    "choices": set(),
    "clock": set(),
    "logs": {"domain"},
    "metrics": {"domain"},
    "version": set(),
    "tasks": set(),
    "loopback": set(),
    "sse": set(),
}
# These put the parts together, so they may import everything that is not for tests.
BUILDERS = {"bootstrap", "cli", "doctor", "__init__", "__main__"}
EVERYTHING = (LAYERS.keys() | BUILDERS) - {"testing"}
# What comes with an extra, or takes long to load and is needed by few, and is loaded at first use.
EXTRAS = {
    "threadkeep.mcp.launch",
    "threadkeep.cli.embedded",
    "threadkeep.storage.postgres",
    "threadkeep.retrieval.minilm",
    "threadkeep.retrieval.vectors",
    "docx",
    "docx.table",
    "pypdfium2",
    "pypdfium2.raw",
    "xllamacpp",
    "jsonschema",
    "referencing",
}
# These load modules of ours by name when they are asked for. The names in them count as imports.
LOADERS = {"threadkeep", "threadkeep.cli"}


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in FILES}


@cache  # not when tests are collected: every worker does that
def trees() -> dict[str, ast.Module]:
    return {module: ast.parse(file.read_text()) for module, file in MODULES.items()}


def layer_of(module: str) -> str:
    return [*module.split("."), "__init__"][1]


def imports(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from (name.name for name in inner.names)
        elif isinstance(inner, ast.ImportFrom):
            assert not inner.level, "imports are absolute"
            assert inner.module
            for name in inner.names:
                whole = f"{inner.module}.{name.name}"
                yield whole if whole in MODULES else inner.module


def loaded_by_name(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(name)) if "." in name and name in MODULES:
                yield name
            case _:
                pass


def imported_modules() -> Iterator[tuple[str, set[str]]]:
    for module, tree in trees().items():
        yield module, {*imports(tree), *(loaded_by_name(tree) if module in LOADERS else ())}


def test_every_module_imports_only_from_the_layers_below_it():
    broken: list[str] = []
    for module, imported_by_it in imported_modules():
        layer = layer_of(module)
        allowed = EVERYTHING if layer in BUILDERS else LAYERS[layer] | {layer}
        for imported in imported_by_it:
            package = imported.split(".")[0]
            if package == "threadkeep" and layer_of(imported) not in allowed:
                broken.append(f"{module} may not import {imported}")
            if layer == "domain" and package not in {"threadkeep", *sys.stdlib_module_names}:
                broken.append(f"{module} may use the standard library only, not {imported}")
    assert not broken, "\n".join(broken)


def test_no_import_hides_inside_a_function():
    hidden = [
        f"{module} imports {name} in {node.name}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in imports(node)
        if name not in EXTRAS
    ]
    assert not hidden, "\n".join(hidden)


def test_schemas_of_strangers_are_validated_in_one_place():
    # Elsewhere it could take as long as the stranger likes.
    validators = re.compile(r"\b(jsonschema|fastjsonschema|jsonschema_rs)\b")
    using = {module for module, file in MODULES.items() if validators.search(file.read_text())}
    assert using == {"threadkeep.schemas.validation"}
    # The SDK's own way to call a tool validates the result in the event loop.
    calling = re.compile(r"\.(call_tool|validate_tool_result)\(")
    assert not {module for module, file in MODULES.items() if calling.search(file.read_text())}
    validating = re.compile(r"\bfind_problem\(")
    in_budget_or_worker = {"threadkeep.schemas." + name for name in ("validation", "checker", "worker")}
    assert {m for m, file in MODULES.items() if validating.search(file.read_text())} == in_budget_or_worker


def test_text_is_normalized_in_one_place_which_cuts_it_first():
    normalizing = re.compile(r"unicodedata\.normalize|import normalize\b|\bis_normalized\(")
    assert {module for module, file in MODULES.items() if normalizing.search(file.read_text())} == {
        "threadkeep.domain.text"
    }


def test_only_loaders_load_modules_of_ours_by_name():
    calls = [
        f"{module}: {ast.unparse(node)}"
        for module, tree in trees().items()
        if module not in LOADERS
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))
        if not _names_another_package(node)
    ]
    assert not calls, "\n".join(calls)


def _names_another_package(call: ast.Call) -> bool:
    match call.args:
        case [ast.Constant(value=str(name))]:
            return name.split(".")[0] != "threadkeep"
        case _:
            return False


def test_every_command_is_loaded_by_name():
    named = {*loaded_by_name(trees()["threadkeep.cli"])}
    assert {command.module for command in COMMANDS} == named


def test_modules_form_no_cycle():
    edges = {
        module: {name for name in names if name.startswith("threadkeep")}
        for module, names in imported_modules()
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
    assert threadkeep.client.__all__ == [
        "BlockingClient", "Client", "ClientError", "GivenFile", "MessageQueued", "NotReached", "Recorder",
        "Sending", "TurnWaiting",
    ]  # fmt: skip
