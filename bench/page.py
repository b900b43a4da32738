"""Prints how heavy and how quick the page is, as the browser itself measures it.

On a busy machine times say little: the CPU that the page spent says how long a key had to wait for it.
Another checkout with a built page and the same migrations can be measured in the same rounds.

python -m bench.page [--save] [--beside ../other-checkout]
"""

import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from scripts import page as page_build
from tests.browser.conftest import QUIET, WIDE, Replying, chromium
from tests.browser.long import seed
from tests.browser.test_talking import log, say
from tests.serving import SOURCE, Server

from bench import results
from bench.page_trace import CATEGORIES, Span, Trace
from bench.table import render
from threadkeep.testing import Pause, Say

ROUNDS = 3
OPENED = 7
EVENTS_A_SECOND = 100
KEYS = "the quick brown fox jumps over the lazy dog and " * 2
HEADINGS = ("what", "measured", "aim")
PIECE = "Some **bold** text, `code` and more. "
PIECE_SHOWN = len("Some bold text, code and more. ")
WATCHED_MS = 4000
SCROLLED_S = 8
LISTED = 1000

ANSWER = """## The clause

It sets the damages at **thirty percent** of the contract's value, see `amount` and [the law](https://example.org).

- first, a court may reduce them
- second, *nobody* asked for it

| year | value | damages |
| --- | ---: | ---: |
| 2025 | 1000 | 300 |
| 2026 | 1100 | 330 |

```python
def damages(value: float, rate: float = 0.3) -> float:
    if rate > 0.3:
        raise ValueError("too high")
    return value * rate
```
"""

_LENGTH = """() => document.querySelector(".reply:last-child .markdown").textContent.length"""
_SHOWN = """() => new Promise(done => {
  const look = () => document.querySelector(".entry:last-child .actions")
    ? requestAnimationFrame(() => done(performance.now())) : requestAnimationFrame(look);
  look();
})"""
_EVERY_FRAME = "() => { const again = () => requestAnimationFrame(again); again(); }"


def first_load(page: Path) -> float:
    """Kilobytes that the browser loads before the first paint, as Brotli; the test has the limit."""
    html = (page / "index.html").read_text("utf-8")
    files = re.findall(r'(?:src|href)="\./(assets/[^"]+\.(?:js|css))"', html)
    return (len(html) + sum((page / f"{it}.br").stat().st_size for it in files)) / 1000


def open_time(browser: Browser, server: Server, conversation_id: str) -> float:
    """Milliseconds from asking for the page to the last message being drawn; the median."""
    times: list[float] = []
    for _ in range(OPENED):
        page = opened(browser, server)
        page.goto(f"/#/c/{conversation_id}", wait_until="commit")
        times.append(page.evaluate(_SHOWN))
        page.close()
    return statistics.median(times)


def opened(browser: Browser, server: Server) -> Page:
    """An empty tab."""
    return browser.new_page(viewport=WIDE, base_url=server.url, locale="en-GB")  # pyright: ignore[reportArgumentType]


def traced(page: Page, do: Callable[[], object]) -> Trace:
    """What the browser did meanwhile."""
    browser = page.context.browser
    assert browser
    browser.start_tracing(page=page, categories=CATEGORIES)
    do()
    return Trace.read(browser.stop_tracing())


def write(page: Page) -> None:
    """Types as quickly as nobody does."""
    page.get_by_role("textbox", name="Message").press_sequentially(KEYS, delay=40)


def scroll(page: Page, place: str, by: int) -> Trace:
    """Turns the wheel over something, faster than anybody reads."""
    box = page.locator(place).bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.evaluate(_EVERY_FRAME)

    def turn() -> None:
        end = time.monotonic() + SCROLLED_S
        while time.monotonic() < end:
            page.mouse.wheel(0, by)
            page.wait_for_timeout(16)

    return traced(page, turn)


def at(values: Iterable[float], share: float) -> float:
    """The value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def frames_of(what: str, frames: list[Span]) -> dict[str, float]:
    """How late frames were."""
    return {
        f"{what}: frame, P99": at((it.wall for it in frames), 0.99),
        f"{what}: the page's CPU in it, P99": at((it.cpu for it in frames), 0.99),
    }


def measure(browser: Browser, server: Server, short: str, long: str) -> dict[str, float]:
    """One round; what needs comparing with itself is compared by whoever prints it."""
    page = opened(browser, server)
    page.goto("/")
    page.get_by_role("textbox", name="Message").wait_for()
    quiet = traced(page, lambda: write(page))
    page.get_by_role("textbox", name="Message").fill("")
    say(page, "Stream")
    log(page).get_by_text("bold").first.wait_for()
    before = page.evaluate(_LENGTH)
    alone = traced(page, lambda: page.wait_for_timeout(WATCHED_MS))
    events = (page.evaluate(_LENGTH) - before) / PIECE_SHOWN
    both = traced(page, lambda: write(page))
    page.close()

    page = opened(browser, server)
    page.goto(f"/#/c/{long}")
    page.locator(".entry:last-child .actions").wait_for()
    messages = scroll(page, ".scroller", -400)
    page.close()

    page = opened(browser, server)
    page.goto("/")
    page.locator(".conversations li").first.wait_for()
    sidebar = scroll(page, ".conversations .list", 400)
    mounted = page.locator(".conversations li").count()
    page.close()
    return {
        "open a conversation of 50": open_time(browser, server, short),
        "open one of 5,000 with 50 branches": open_time(browser, server, long),
        "CPU for a key, nothing streams": quiet.cpu / len(KEYS),
        "CPU for an event of a stream of 100 a second": alone.cpu / events,
        "a key to its paint while 100 events/s stream, median": at((it.wall for it in both.keys), 0.5),
        "a key to its paint while 100 events/s stream, P95": at((it.wall for it in both.keys), 0.95),
        "the page's CPU in it, P95": at((it.cpu for it in both.keys), 0.95),
        "CPU of the longest task meanwhile": max(it.cpu for it in both.tasks),
        **frames_of("scroll 5,000 messages", messages.frames),
        "scroll 5,000 messages: CPU of the longest task": max(it.cpu for it in messages.tasks),
        **frames_of("scroll 1,000 conversations in the sidebar", sidebar.frames),
        "rows in the DOM then": mounted,
    }


AIMS = {
    "open one of 5,000 with 50 branches": "as fast as 50",
    "a key to its paint while 100 events/s stream, P95": "50 ms",
    "the page's CPU in it, P95": "50 ms",
    "CPU of the longest task meanwhile": "50 ms",
    "scroll 5,000 messages: frame, P99": "50 ms",
    "scroll 5,000 messages: the page's CPU in it, P99": "50 ms",
    "scroll 5,000 messages: CPU of the longest task": "50 ms",
    "scroll 1,000 conversations in the sidebar: frame, P99": "50 ms",
}


def lines_of(weight: float, rounds: list[dict[str, float]]) -> list[tuple[str, str, str]]:
    """The medians of all rounds."""
    lines = [("first load, Brotli (a test checks it)", f"{weight:.0f} kB", "165 kB")]
    for what in rounds[0]:
        value = statistics.median(it[what] for it in rounds)
        unit = "" if what.startswith("rows") else " ms"
        lines.append((what, f"{value:.{1 if value < 10 else 0}f}{unit}", AIMS.get(what, "")))
    return lines


def fill(data: Path) -> tuple[str, str]:
    """A short and a long conversation, whose answers are typeset, and many others. The ids of both."""
    *_, short, long = seed(data, *([2] * LISTED), 50, 5000, branches=50)
    with closing(sqlite3.connect(data / "threadkeep.db")) as database, database:
        database.execute("UPDATE tk_messages SET content = ? WHERE role = 'assistant'", (ANSWER,))
    return short, long


def main(*, save: bool, beside: Path | None) -> None:
    """Measures and prints."""
    run = results.Run.now(is_quick=False)
    page_build.build()
    sources = {"here": SOURCE} | ({"beside": beside / "src"} if beside else {})
    pieces = [PIECE + ("\n\n" if count % 15 == 14 else "") for count in range(1200)]
    reply = [step for piece in pieces for step in (Say(piece), Pause(1 / EVENTS_A_SECOND))]
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    with (
        tempfile.TemporaryDirectory() as folder,
        Replying(otherwise=reply) as model,
        sync_playwright() as playwright,
    ):
        short, long = fill(Path(folder) / "data")
        for name, source in list(sources.items()) * ROUNDS:
            settings = {"gateway": "openai", "gateway_url": model.url, "model": "scripted"}
            with Server(Path(folder), source=source, **settings) as server:
                browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
                rounds[name].append(measure(browser, server, short, long))
                browser.close()
    print(run)
    for name, source in sources.items():
        lines = lines_of(first_load(source / "threadkeep" / "page"), rounds[name])
        print(f"\n{name}\n{render(lines, HEADINGS, markdown=False)}")
        if save and name == "here":
            results.save_texts("page", "", HEADINGS, lines, run)


if __name__ == "__main__":
    given = sys.argv[1:]
    other = Path(given[given.index("--beside") + 1]) if "--beside" in given else None
    main(save="--save" in given, beside=other)
