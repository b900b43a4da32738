"""What the browser loads before it can show anything stays small."""

import re

from playwright.sync_api import Browser
from scripts import page as page_build

# 5 kB of it keep what people write until the server has it: they are needed where nothing more can be loaded.
MOST_BYTES = 183_000


def test_first_load_is_at_most_183_kb_gzipped(browser: Browser):
    html = (page_build.BUILT / "index.html").read_text("utf-8")
    files = re.findall(r'(?:src|href)="\./(assets/[^"]+\.(?:js|css))"', html)
    assert {it.rpartition(".")[2] for it in files} == {"js", "css"}
    packed = sum((page_build.BUILT / f"{it}.gz").stat().st_size for it in files)
    assert packed <= MOST_BYTES
