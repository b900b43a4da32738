"""CONTRIBUTING shows the house as it is: every room, file and function that it names exists."""

import ast
import re

from tests.docs.pages import ROOT
from tests.test_architecture import LAYERS

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "threadkeep"

_FILE = re.compile(r"`((?:[\w-]+/)+[\w.-]*|\w+\.py)`")
_NAME_IN_FILE = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)?)`\s+in\s+`([\w/]+\.py)`")
_CLASS = re.compile(r"`([A-Z][a-z]\w*)(?:\.(\w+))?`")
_MADE_BY_A_COMMAND = ("build/", "dist/", "threadkeep-", "web/dist/", "src/threadkeep/page/")


FOLDERS = (SOURCE, ROOT, ROOT / "web", ROOT / "web/packages/client", ROOT / "web/packages/client/src")


def exists(name: str) -> bool:
    """Whether there is such a file or folder; one name alone may be anywhere, such as each protocol's."""
    is_alone = "/" not in name.rstrip("/")
    return any((it / name).exists() for it in FOLDERS) or (is_alone and any(SOURCE.rglob(name.rstrip("/"))))


def defined(tree: ast.Module) -> set[str]:
    """The functions, classes and constants of a file, and `Class.method`."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = (it for it in node.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {node.name, *(f"{node.name}.{it.name}" for it in methods)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {it.id for it in node.targets if isinstance(it, ast.Name)}
    return names


def test_every_file_and_folder_that_contributing_names_exists():
    named = {name for name in _FILE.findall(PAGE) if not name.startswith(_MADE_BY_A_COMMAND)}
    assert {"domain/", "http/routes.py"} <= named
    assert not {name for name in named if not exists(name)}


def test_every_function_that_contributing_follows_is_in_the_file_it_names():
    named = _NAME_IN_FILE.findall(PAGE)
    assert ("send_message", "http/api/turns.py") in named
    missing = [
        (name, file) for name, file in named if name not in defined(ast.parse((SOURCE / file).read_text()))
    ]
    assert not missing


def test_every_class_that_contributing_names_exists():
    methods: dict[str, set[str]] = {}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                its = (it.name for it in node.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef))
                methods.setdefault(node.name, set()).update(its)
    named = _CLASS.findall(PAGE)
    assert ("HeldTurn", "") in named
    assert not [
        name for name, method in named if name not in methods or (method and method not in methods[name])
    ]


def test_contributing_says_of_every_room_what_is_in_it():
    rooms = {room for room in LAYERS if (SOURCE / room).is_dir()}
    assert not {room for room in rooms if not re.search(rf"^\|.*`{room}/`", PAGE, re.MULTILINE)}
