"""What each screen says to someone who cannot see it, as text that people read in a review.

A screen that changes without anybody having meant it fails its test with a readable difference;
`make screens` writes the outlines again, beside pictures of every screen.
"""

import re
from pathlib import Path

from playwright.sync_api import Page

LOOKS = 50
LOOK_MS = 200
FOLDER = Path(__file__).with_name("outlines")
# What differs from run to run: times, sizes, counts, and names that the server made.
CHANGING = [
    (re.compile(r"\btk_[A-Za-z0-9_-]+"), "<key>"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b"), "<id>"),
    (re.compile(r"(?<!level=)\d[\d.,:]*(dev\d+)?"), "#"),
    (re.compile(r"[Jj]ust now|# (minutes?|seconds?) ago"), "<ago>"),
    (re.compile(r"# (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*( #)*"), "<date>"),
    (re.compile(r"# (ms|s|min)\b"), "# s"),
    # A line of tools says how long they took, unless nobody would notice.
    (re.compile(r"^ *- text: · # s\n|(?<=:) · # s(?= ·)| · # s(?=\"?$)", re.MULTILINE), ""),
]


def outline(page: Page) -> str:
    """The screen as assistive technology reads it, without what differs from run to run."""
    text = page.locator("body").aria_snapshot()
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text.strip() + "\n"


def settled(page: Page, name: str) -> str:
    """The outline once it is the accepted one, or as it is after a while."""
    for _ in range(LOOKS):
        if outline(page) == accepted(name):
            break
        page.wait_for_timeout(LOOK_MS)
    return outline(page)


def accepted(name: str) -> str:
    """The outline that somebody has looked at."""
    kept = path_of(name)
    return kept.read_text("utf-8") if kept.exists() else ""


def path_of(name: str) -> Path:
    """Where the outline of a screen is kept."""
    return FOLDER / f"{name.replace(' ', '-')}.yaml"
