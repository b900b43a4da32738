"""Pictures of every screen for people to look at, and the outlines that the tests compare with.

python -m tests.browser.gallery [screen ...]    # writes build/screens/index.html and tests/browser/outlines/
"""

import difflib
import html
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from scripts import page as page_build

from tests.browser import outlines, tour
from tests.browser.conftest import PATIENCE_MS, QUIET, Replying, chromium, settings_for
from tests.serving import Server

FOLDER = Path(__file__).parents[2] / "build/screens"
SIZES = {390: 844, 768: 1024, 1440: 900}
LANGUAGES = ("en", "zh")
THEMES = ("light", "dark")
# As a sibling tab would tell of it.
PREFER = """([name, newValue]) => {
    const key = `threadkeep.${name}`;
    localStorage.setItem(key, newValue);
    dispatchEvent(new StorageEvent("storage", { key, newValue, storageArea: localStorage }));
}"""
STYLE = """body { font: 15px/1.5 system-ui; margin: 2rem; background: #fff; color: #222 }
section > div { display: flex; gap: 1rem; overflow-x: auto; align-items: flex-start }
figure { margin: 0 } img { height: 28rem; border: 1px solid #ccc } figcaption { color: #666 }
pre { background: #f6f4f0; padding: 1rem; overflow-x: auto }
ins { background: #d9f2d9 } del { background: #fbe0dc }"""


def pictures(page: Page, name: str) -> Iterator[tuple[str, str]]:
    """Takes the picture of a screen in every size, theme and language: file names and captions."""
    for language in LANGUAGES:
        page.evaluate(PREFER, ["language", language])
        for theme in THEMES:
            page.evaluate(PREFER, ["theme", theme])
            for width, height in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                page.wait_for_timeout(250)
                file = f"{name.replace(' ', '-')}-{width}-{theme}-{language}.png"
                page.screenshot(path=FOLDER / file)
                yield file, f"{width} px, {theme}, {language}"


def drift(name: str, now: str) -> str:
    """What has changed in the outline since it was last accepted, as HTML; nothing where it has not."""
    before = outlines.accepted(name)
    marks = {"+": "ins", "-": "del"}
    lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), "accepted", "now", lineterm=""))
    return "\n".join(
        f"<{tag}>{html.escape(it)}</{tag}>" if (tag := marks.get(it[0])) else html.escape(it) for it in lines
    )


def section(page: Page, name: str) -> str:
    """One screen of the gallery. Its outline is written as it is now."""
    page.wait_for_timeout(500)
    now = outlines.outline(page)
    changed = drift(name, now)
    outlines.path_of(name).write_text(now, "utf-8")
    figures = "".join(
        f'<figure><a href="{file}"><img src="{file}" loading="lazy" alt="{caption}"></a>'
        f"<figcaption>{caption}</figcaption></figure>"
        for file, caption in pictures(page, name)
    )
    return f"<section><h2>{name}</h2>{changed and f'<pre>{changed}</pre>'}<div>{figures}</div></section>"


def screens(browser: Browser, server: Server, model: Replying, names: Sequence[str]) -> Iterator[str]:
    """Each screen, by a user who begins with nothing."""
    for name in names:
        context = browser.new_context(
            viewport={"width": 1280, "height": 800},
            locale="en-GB",
            base_url=server.url,
            extra_http_headers=server.headers,
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto("/")
        model.start_over()
        tour.SCREENS[name](page, model)
        print(name, flush=True)
        yield section(page, name)
        context.close()
        with server.client() as client:
            client.delete("/api/users/local").raise_for_status()


def main(names: Sequence[str]) -> None:
    """Writes the gallery and the outlines."""
    page_build.build()
    FOLDER.mkdir(parents=True, exist_ok=True)
    outlines.FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Replying() as model,
        Server(Path(folder), **settings_for(model), mcp_allowed_commands="python") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
        body = "".join(screens(browser, server, model, names or list(tour.SCREENS)))
        browser.close()
    page = f'<!doctype html><meta charset="utf-8"><title>Screens</title><style>{STYLE}</style>{body}'
    (FOLDER / "index.html").write_text(page, "utf-8")
    print(f"Look at {FOLDER.relative_to(Path.cwd())}/index.html, and at git diff tests/browser/outlines.")


if __name__ == "__main__":
    main(sys.argv[1:])
