"""Prints how heavy and how quick the page is, as the browser itself measures it.

On a busy machine times say little: the CPU that the page spent says how long a key had to wait for it.

python -m bench.page [--save]
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from scripts import page as page_build
from tests.browser.conftest import QUIET, WIDE, Replying, chromium
from tests.browser.long import seed
from tests.browser.test_talking import log, say
from tests.serving import Server

from bench import results
from bench.page_trace import CATEGORIES, Trace
from bench.table import render
from threadkeep.testing import Pause, Say

ROUNDS = 7
EVENTS_A_SECOND = 100
KEYS = "the quick brown fox jumps over the lazy dog and " * 2
HEADINGS = ("what", "measured", "aim")
PIECE = "Some **bold** text, `code` and more. "
PIECE_SHOWN = len("Some bold text, code and more. ")
WATCHED_MS = 4000

_LOADED = """() => performance.getEntriesByType("resource")
  .filter(it => it.name.includes("/assets/")).reduce((sum, it) => sum + it.encodedBodySize, 0)"""
_LENGTH = """() => document.querySelector(".reply:last-child .markdown").textContent.length"""
_SHOWN = """() => new Promise(done => {
  const look = () => document.querySelector(".entry:last-child .actions")
    ? requestAnimationFrame(() => done(performance.now())) : requestAnimationFrame(look);
  look();
})"""


def open_time(browser: Browser, server: Server, conversation_id: str) -> float:
    """Milliseconds from asking for the page to the last message being drawn; the median."""
    times: list[float] = []
    for _ in range(ROUNDS):
        page = browser.new_page(viewport=WIDE, base_url=server.url)  # pyright: ignore[reportArgumentType]
        page.goto(f"/#/c/{conversation_id}", wait_until="commit")
        times.append(page.evaluate(_SHOWN))
        page.close()
    return statistics.median(times)


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


def at(values: Iterable[float], share: float) -> float:
    """The value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def main(*, save: bool) -> None:
    """Measures and prints."""
    run = results.Run.now(is_quick=False)
    page_build.build()
    pieces = [PIECE + ("\n\n" if count % 15 == 14 else "") for count in range(1200)]
    reply = [step for piece in pieces for step in (Say(piece), Pause(1 / EVENTS_A_SECOND))]
    with (
        tempfile.TemporaryDirectory() as folder,
        Replying(otherwise=reply) as model,
        sync_playwright() as playwright,
    ):
        short, long = seed(Path(folder) / "data", 50, 5000, branches=50)
        with Server(Path(folder), gateway="openai", gateway_url=model.url, model="scripted") as server:
            browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
            page = browser.new_page(viewport=WIDE, base_url=server.url, locale="en-GB")  # pyright: ignore[reportArgumentType]
            page.goto("/")
            page.get_by_role("textbox", name="Message").wait_for()
            weight = page.evaluate(_LOADED)
            of_50, of_5000 = open_time(browser, server, short), open_time(browser, server, long)
            page.bring_to_front()
            quiet = traced(page, lambda: write(page))
            page.get_by_role("textbox", name="Message").fill("")
            say(page, "Stream")
            log(page).get_by_text("bold").first.wait_for()
            before = page.evaluate(_LENGTH)
            alone = traced(page, lambda: page.wait_for_timeout(WATCHED_MS))
            events = (page.evaluate(_LENGTH) - before) / PIECE_SHOWN
            both = traced(page, lambda: write(page))
            browser.close()
    walls, cpus = [it.wall for it in both.keys], [it.cpu for it in both.keys]
    lines = [
        ("first load, packed", f"{weight / 1000:.0f} kB", "180 kB"),
        ("open a conversation of 50", f"{of_50:.0f} ms", ""),
        (
            "open one of 5,000 with 50 branches",
            f"{of_5000:.0f} ms ({of_5000 / of_50:.2f} times)",
            "as fast as 50",
        ),
        ("CPU of the page for a key, nothing streams", f"{quiet.cpu / len(KEYS):.1f} ms", ""),
        ("CPU of the page for an event of a stream", f"{alone.cpu / events:.1f} ms", ""),
        ("a key to its paint while 100 events/s stream, median", f"{at(walls, 0.5):.0f} ms", "50 ms"),
        ("the same, 95 of 100 at most", f"{at(walls, 0.95):.0f} ms", "50 ms"),
        ("the page's CPU in it, median", f"{at(cpus, 0.5):.0f} ms", "50 ms"),
        ("CPU of the longest task meanwhile", f"{max(it.cpu for it in both.tasks):.0f} ms", "50 ms"),
    ]
    print(f"{run}\n\n{render(lines, HEADINGS, markdown=False)}")
    if save:
        results.save_texts("page", "", HEADINGS, lines, run)


if __name__ == "__main__":
    main(save="--save" in sys.argv)
