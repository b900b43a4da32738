"""Reads the requirement documents: each scenario, criterion or table row becomes a Requirement with an id."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCUMENTS = Path(__file__).parents[2] / "docs" / "requirements"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a document asks for, or a heading that groups such things."""

    id: str
    seed: str
    kind: str
    title: str
    parent: str | None

    @property
    def needs_tests(self) -> bool:
        return self.kind != "heading"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a line of a kind looks like, how its id and title are made, and what can stand below it."""

    kind: str
    pattern: str
    id: str
    title: str = "{title}"
    below: "tuple[Rule, ...]" = ()


def heading(pattern: str, id_format: str, *below: Rule) -> Rule:
    return Rule("heading", pattern, id_format, below=below)


SCENARIO = Rule("scenario", r"#### Scenario: (?P<title>.+)", "{parent}-S{n}")
ENDPOINT = Rule("endpoint", r"\| (?P<key>[A-Z]+) \| (?P<title>/\S*) \|.*", "{parent}-{n}", "{key} {title}")
ERROR_CODE = Rule("error code", r"\| (?P<key>[A-Z_]+) \| \d{3} \| (?P<title>.+) \|", "{parent}-{key}")
STORY_SCENARIO = Rule("scenario", r"(?P<key>\d+)\. (?P<title>.+)", "{parent}.{key}")
EDGE_CASE = Rule("edge case", r"- (?P<title>.+)", "{parent}{n}")
FUNCTIONAL = Rule("functional requirement", r"- \*\*(?P<key>FR-\d+)\*\*: (?P<title>.+)", "{key}")
SUCCESS = Rule("success criterion", r"- \*\*(?P<key>SC-\d+)\*\*: (?P<title>.+)", "{key}")
CRITERION = Rule("acceptance criterion", r"(?P<key>\d+)\. (?P<title>.+?):?", "{parent}.{key}")
QUALITY = Rule("quality", r"- (?P<title>.+)", "{parent}-{n}")

GRAMMARS = {
    "000": (heading(r"### Requirement: (?P<key>REQ-CONV-\S+) (?P<title>.+)", "{key}", SCENARIO),),
    "001": (heading(r"### Requirement: (?P<title>.+)", "001-R{n}", SCENARIO),),
    "002": (
        heading(r"### Requirement: (?P<key>CONV-\S+) (?P<title>.+)", "{key}", SCENARIO),
        heading(r"## (?P<title>API 端点)", "002-API", ENDPOINT),
        heading(r"## (?P<title>错误码)", "002-ERR", ERROR_CODE),
    ),
    "003": (
        heading(r"### User Story (?P<key>\d+) - (?P<title>.+)", "003-US{key}", STORY_SCENARIO),
        heading(r"### (?P<title>Edge Cases)", "003-EC", EDGE_CASE),
        heading(r"### (?P<title>Functional Requirements)", "003-FR", FUNCTIONAL),
        heading(r"### (?P<title>Measurable Outcomes)", "003-SC", SUCCESS),
    ),
    "004": (
        heading(r"### Requirement (?P<key>\d+): (?P<title>.+)", "004-R{key}", CRITERION),
        heading(
            r"## (?P<title>Non-Functional Requirements)",
            "004-NFR",
            heading(r"### (?P<title>.+)", "{parent}-{last_word}", QUALITY),
        ),
    ),
}


def read_requirements() -> list[Requirement]:
    """All requirements of all documents, in order; an id that stands for two of them is refused."""
    found = [
        requirement
        for path in sorted(DOCUMENTS.glob("[0-9]*.md"))
        for requirement in parse(path.name[:3], path.read_text("utf-8"))
    ]
    times = Counter(requirement.id for requirement in found)
    if repeated := [key for key in times if times[key] > 1]:
        raise ValueError(f"requirement ids used twice: {', '.join(repeated)}")
    return found


def parse(seed: str, text: str) -> Iterator[Requirement]:
    """The requirements of one document, in its order."""
    open_headings: list[tuple[int, str, tuple[Rule, ...]]] = [(0, "", GRAMMARS[seed])]
    numbers = Counter[tuple[str, str]]()
    for line in lines_outside_code(text):
        if level := len(line) - len(line.lstrip("#")):
            open_headings = [opened for opened in open_headings if opened[0] < level]
        _, parent, rules = open_headings[-1]
        for rule in rules:
            if match := re.fullmatch(rule.pattern, line):
                numbers[parent, rule.kind] += 1
                title = rule.title.format(**match.groupdict()).replace("**", "")
                words = {
                    "parent": parent,
                    "n": numbers[parent, rule.kind],
                    "last_word": title.split()[-1].lower(),
                }
                key = rule.id.format(**match.groupdict(), **words)
                yield Requirement(key, seed, rule.kind, title, parent or None)
                if rule.below:
                    open_headings.append((level, key, rule.below))
                break


def lines_outside_code(text: str) -> Iterator[str]:
    in_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield line.rstrip()
