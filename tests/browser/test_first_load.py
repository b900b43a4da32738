"""What the browser loads before it can show anything stays small."""

import re

from playwright.sync_api import Browser
from scripts import page as page_build

# With what keeps what people write until the server has it: that is needed where nothing more can be loaded.
MOST_BYTES = 165_000


def test_everything_before_the_first_paint_is_at_most_165_kb_as_brotli(browser: Browser):
    html = (page_build.BUILT / "index.html").read_text("utf-8")
    files = re.findall(r'(?:src|href)="\./(assets/[^"]+\.(?:js|css))"', html)
    assert {it.rpartition(".")[2] for it in files} == {"js", "css"}
    packed = sum((page_build.BUILT / f"{it}.br").stat().st_size for it in files)
    assert packed + len(html) <= MOST_BYTES
