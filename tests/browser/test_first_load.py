"""What the browser loads before it can show anything stays small."""

from playwright.sync_api import Browser
from scripts.size import first_files, first_load

# With what keeps what people write until the server has it, which is needed where nothing more can be loaded,
# with the fold of a program's steps, and with who is signed in, by a token or by a cookie.
MOST_BYTES = 166_999


def test_everything_before_the_first_paint_is_at_most_167_kb_as_brotli(browser: Browser):
    assert {it.suffix for it in first_files()} == {".js", ".css"}
    assert first_load() <= MOST_BYTES
