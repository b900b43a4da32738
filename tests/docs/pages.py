"""The pages of the documentation, and what is in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

# A fenced block; a line before it that is nothing but a name in backquotes names the file that it is.
_BLOCK = re.compile(
    r"^(?:`(?P<file>[^`\n]+)`\n)?```(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: a command, a program, a file, or what the block before it prints."""

    place: str
    language: str
    words: frozenset[str]
    code: str
    file: str | None = None


def pages() -> list[Path]:
    """Every page that people read, but for the requirements, which others wrote."""
    ours = [it for it in ROOT.glob("examples/**/*.md") if "node_modules" not in it.parts]
    return sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *ours])


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        language, *words = found["info"].split() or [""]
        place = f"{page.relative_to(ROOT)}:{line}"
        yield Block(place, language, frozenset(words), found["code"], found["file"])


def links(page: Path) -> list[str]:
    """Where a page points to within the repository."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    targets = (one or other for one, other in _LINK.findall(text))
    return [target for target in targets if "://" not in target and not target.startswith(("/", "mailto:"))]


def anchors(page: Path) -> set[str]:
    """The headings of a page as a link names them."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}
