"""The types of events: what they mean to other nodes, to the page and to other people's front ends."""

import re
from pathlib import Path
from typing import get_args

import pytest

from threadkeep.domain.events import EventBody
from threadkeep.storage.turns import LOG_VERSION

ROOT = Path(__file__).parents[2]
TYPES = {event.type for event in get_args(EventBody)}


def test_new_type_of_event_comes_with_a_new_version_of_the_log():
    # A node of the version before can't read it; if LOG_VERSION is higher, it leaves such turns to others.
    # Raise it, then change both numbers here.
    assert (LOG_VERSION, len(TYPES)) == (4, 18)


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("web/packages/client/src/turn/events.ts", r'\btype: "(\w+)"'),
        ("docs/front-end.md", r"^\| `(\w+)` \|[^|\n]*\|[^|\n]*\|$"),
    ],
)
def test_page_and_documentation_know_every_type_of_event(file: str, pattern: str):
    text = (ROOT / file).read_text(encoding="utf-8").partition("## What to draw")
    found = set(re.findall(pattern, text[2] or text[0], re.MULTILINE))
    assert TYPES - found == set()
