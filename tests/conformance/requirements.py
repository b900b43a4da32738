"""Reads the requirement documents: a heading with an id groups clauses, a list item with an id is one."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCUMENTS = Path(__file__).parents[2] / "docs" / "requirements"

HEADING = re.compile(r"##+ (?P<id>\S+) (?P<title>.+)")
CLAUSE = re.compile(r"- \*\*(?P<id>\S+)\*\* (?P<title>.+(?:\n  .+)*)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a document asks for, or a heading that groups such things."""

    id: str
    document: str
    title: str
    needs_tests: bool = True


def read_requirements() -> list[Requirement]:
    """All requirements of all documents, in order; an id that stands for two of them is refused."""
    found = [
        requirement
        for path in sorted(DOCUMENTS.glob("[0-9]*.md"))
        for requirement in parse(path.stem, path.read_text("utf-8"))
    ]
    times = Counter(requirement.id for requirement in found)
    if repeated := [key for key in times if times[key] > 1]:
        raise ValueError(f"requirement ids used twice: {', '.join(repeated)}")
    return found


def parse(document: str, text: str) -> Iterator[Requirement]:
    """The requirements of one document, in its order; a line that looks like one and is none is refused."""
    for block in re.split(r"\n+(?! )", text):
        if match := HEADING.fullmatch(block.rstrip()):
            yield Requirement(match["id"], document, match["title"], needs_tests=False)
        elif match := CLAUSE.fullmatch(block.rstrip()):
            yield Requirement(match["id"], document, " ".join(match["title"].split()))
        elif block.startswith(("##", "- ")):
            raise ValueError(f"{document}: no requirement: {block}")
