"""docs/troubleshooting.md quotes what Threadkeep really prints."""

import ast
import re
from collections.abc import Iterator

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
SAID_BY_THE_SYSTEM = "Address already in use"


def texts_of_the_source(quotes: list[str]) -> Iterator[str]:
    """Every text in files that have one of the quotes; `…` stands for what an f-string puts in."""
    pieces = (piece.strip() for quote in quotes for piece in quote.split("…"))
    beginnings = {piece[:12] for piece in pieces if len(piece) >= 12}
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if not any(it in source for it in beginnings):
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Constant(value=str(text)):
                    yield text
                case ast.JoinedStr(values=values):
                    yield "".join(str(it.value) if isinstance(it, ast.Constant) else "…" for it in values)
                case _:
                    pass


def test_errors_are_quoted_as_they_are_printed():
    quotes = re.findall(r"^> (.+)$", PAGE, re.MULTILINE)
    assert len(quotes) > 10
    printed = [quote.replace(SAID_BY_THE_SYSTEM, "…").removesuffix("…") for quote in quotes]
    source = "\n".join(texts_of_the_source(printed))
    assert [quote for quote in printed if quote not in source] == []
