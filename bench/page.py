"""Prints how heavy and how quick the page is, as the browser itself measures it.

python -m bench.page
"""

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Browser, Page, sync_playwright
from scripts import page as page_build
from tests.browser.conftest import QUIET, WIDE, Answering, chromium
from tests.browser.long import seed
from tests.browser.test_talking import log, say
from tests.http.process import Server
from tests.scripted_model import Pause, Say

from bench.table import render

ROUNDS = 7
EVENTS_A_SECOND = 100
KEYS = "the quick brown fox jumps over the lazy dog and " * 2
HEADINGS = ("what", "measured", "aim")
PIECE = "Some **bold** text, `code` and more. "

# Times on a busy machine say little; CPU says how long a key must wait for the page's own work.
TRACED = ["toplevel", "devtools.timeline"]

# Event Timing: from a key to the next paint; the browser rounds to 8 ms.
_WATCH = """() => {
  window.keys = [];
  new PerformanceObserver(list => {
    for (const it of list.getEntries()) if (it.name === "keydown") window.keys.push(it.duration);
  }).observe({type: "event", durationThreshold: 16, buffered: true});
}"""
_LOADED = """() => performance.getEntriesByType("resource")
  .filter(it => it.name.includes("/assets/")).reduce((sum, it) => sum + it.encodedBodySize, 0)"""
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


def typing_times(page: Page) -> list[float]:
    """Milliseconds from each key to its paint; those under 16 are not told."""
    page.evaluate(_WATCH)
    page.get_by_role("textbox", name="Message").press_sequentially(KEYS, delay=40)
    slow: list[float] = page.evaluate("window.keys")
    return sorted([*slow, *[16.0] * (len(KEYS) - len(slow))])


def tasks(trace: bytes) -> list[float]:
    """Milliseconds of CPU of each task of the page's main thread."""
    events: list[dict[str, Any]] = msgspec.json.decode(trace)["traceEvents"]
    names = {(it["pid"], it["tid"]): it["args"]["name"] for it in events if it["name"] == "thread_name"}
    return sorted(
        it["tdur"] / 1000
        for it in events
        if it["name"].endswith("RunTask")
        and "tdur" in it
        and names.get((it["pid"], it["tid"])) == "CrRendererMain"
    )


def main() -> None:
    """Measures and prints."""
    page_build.build()
    pieces = [PIECE + ("\n\n" if count % 15 == 14 else "") for count in range(1200)]
    reply = [step for piece in pieces for step in (Say(piece), Pause(1 / EVENTS_A_SECOND))]
    with (
        tempfile.TemporaryDirectory() as folder,
        Answering(otherwise=reply) as model,
        sync_playwright() as playwright,
    ):
        short, long = seed(Path(folder) / "data", 50, 5000)
        with Server(Path(folder), gateway="openai", gateway_url=model.url, model="scripted") as server:
            browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
            page = browser.new_page(viewport=WIDE, base_url=server.url, locale="en-GB")  # pyright: ignore[reportArgumentType]
            page.goto("/", wait_until="networkidle")
            weight = page.evaluate(_LOADED)
            of_50, of_5000 = open_time(browser, server, short), open_time(browser, server, long)
            page.bring_to_front()
            quiet = typing_times(page)
            page.get_by_role("textbox", name="Message").fill("")
            say(page, "Stream")
            log(page).get_by_text("bold").first.wait_for()
            browser.start_tracing(page=page, categories=TRACED)
            keys = typing_times(page)
            spent = tasks(browser.stop_tracing())
            browser.close()
    lines = [
        ("first load, packed", f"{weight / 1000:.0f} kB", "350 kB"),
        ("open a conversation of 50", f"{of_50:.0f} ms", ""),
        ("open a conversation of 5,000", f"{of_5000:.0f} ms ({of_5000 / of_50:.2f} times)", "as fast as 50"),
        ("a key to its paint, nothing streams, median", f"{statistics.median(quiet):.0f} ms", ""),
        ("the same while 100 events/s stream", f"{statistics.median(keys):.0f} ms", "50 ms"),
        ("CPU of the longest task meanwhile", f"{spent[-1]:.0f} ms", "50 ms"),
        ("CPU of 99 of 100 tasks, at most", f"{spent[int(len(spent) * 0.99)]:.0f} ms", "50 ms"),
    ]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print(render(lines, HEADINGS, markdown=True))


if __name__ == "__main__":
    main()
