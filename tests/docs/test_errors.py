"""docs/errors.md lists every code of the source, and no other."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.docs.pages import DOCS, ROOT
from threadkeep.client import errors as of_the_client
from threadkeep.domain import errors
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.handling.errors import STATUSES

SOURCE = ROOT / "src" / "threadkeep"
NEVER_SENT = {
    errors.SettingsError.code: "the process doesn't start",
    errors.SecretUnreadable.code: "the tool server or provider that needs it fails",
}
OF_A_TURN = {"details.message"}
"""What `turns.py` adds to the error of a turn, whichever that is."""


@dataclass(frozen=True)
class Row:
    """A code as the page explains it."""

    status: str
    carries: set[str]


def cells(section: str) -> Iterator[list[str]]:
    """The rows of the tables in a section of the page, without the heads."""
    for line in section.splitlines():
        if line.startswith("| ") and "`" in line:
            yield [cell.strip() for cell in line.strip("|").split("|")]


PAGE = (DOCS / "errors.md").read_text(encoding="utf-8")
OF_ERRORS, _, REST = PAGE.partition("## Notices")
OF_NOTICES, _, OF_CLIENTS = REST.partition("## Codes of the clients")
ROWS = {
    code.strip("`"): Row(status, set(re.findall(r"`([^`]+)`", carries)))
    for status, code, _meaning, _help, carries in cells(OF_ERRORS)
}


@dataclass
class Raised:
    """What the places that raise an error give it."""

    has_param: bool = False
    details: set[str] = field(default_factory=set[str])

    def note(self, call: ast.Call) -> None:
        """Adds one place."""
        for keyword in call.keywords:
            is_own = isinstance(keyword.value, ast.Constant) and keyword.value.value is not None
            if keyword.arg == "param" and (is_own or not isinstance(call.func, ast.Attribute)):
                self.has_param = True
            if keyword.arg == "details" and isinstance(keyword.value, ast.Dict):
                keys = (key.value for key in keyword.value.keys if isinstance(key, ast.Constant))
                self.details |= {f"details.{key}" for key in keys}


@cache
def sources() -> dict[Path, str]:
    """Every module of ours."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def calls(names: Iterable[str]) -> Iterator[tuple[Path, ast.AST]]:
    """The nodes of the modules that call something of these names."""
    called = re.compile(rf"\b(?:{'|'.join(names)})\(")
    for path, text in sources().items():
        if called.search(text):
            for node in ast.walk(ast.parse(text)):
                yield path, node


def kinds() -> dict[str, type[ThreadkeepError]]:
    """The errors by the names of their classes."""
    found = {name: it for name, it in vars(errors).items() if isinstance(it, type)}
    return {name: it for name, it in found.items() if issubclass(it, ThreadkeepError)}


def raised() -> dict[str, Raised]:
    """By code."""
    by_code: defaultdict[str, Raised] = defaultdict(Raised)
    classes = kinds()
    for _, node in calls(classes):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in classes:
                by_code[classes[name].code].note(node)
            case ast.ClassDef(name=name) if name in classes:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Call):
                        by_code[classes[name].code].note(inner)
            case _:
                pass
    return by_code


def notices() -> Iterator[str]:
    """The codes of the notices in our source; one that a notice only passes on is none of its own."""
    for path, node in calls(["Notice", "NoticePart"]):
        match node:
            case ast.Call(func=ast.Name(id="Notice"), args=[code, *_]):
                pass
            case ast.Call(func=ast.Name(id="NoticePart"), keywords=[ast.keyword("code", code), *_]):
                pass
            case _:
                continue
        if isinstance(code, ast.Constant):
            yield str(code.value)
        elif (known := constant(path, ast.unparse(code))) is not None:
            yield known


def constant(path: Path, name: str) -> str | None:
    """What a dotted name of a module means; None for a variable of one of its functions."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    value: object = importlib.import_module(".".join(parts))
    for part in name.split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, str) else None


def test_every_error_code_is_explained_with_its_status():
    assert {code: row.status for code, row in ROWS.items()} == {
        code: str(status) for code, status in STATUSES.items()
    }
    assert {it.code for it in kinds().values()} == (STATUSES.keys() | NEVER_SENT) - {"DOMAIN_NOT_FOUND"}


def test_page_says_what_each_error_carries():
    given = raised()
    for code, row in ROWS.items():
        expected: set[str] = given[code].details | ({"param"} if given[code].has_param else set())
        assert row.carries - OF_A_TURN == expected, code


def test_every_notice_is_explained():
    assert {code.strip("`") for code, *_ in cells(OF_NOTICES)} == set(notices())


def test_codes_of_the_python_client_are_explained():
    ours = (it for it in vars(of_the_client).values() if isinstance(it, type))
    own = {vars(it)["code"] for it in ours if issubclass(it, ThreadkeepError) and "code" in vars(it)}
    told = {code for first, *_ in cells(OF_CLIENTS) for code in re.findall(r"`([^`]+)`", first)}
    assert own - {ThreadkeepError.code} <= told


def test_every_error_says_what_to_do():
    for section, columns in ((OF_ERRORS, 5), (OF_NOTICES, 3), (OF_CLIENTS, 4)):
        for row in cells(section):
            assert len(row) == columns, row
            assert row[3 if columns > 3 else 2] or "`DOMAIN_NOT_FOUND`" in row, row
