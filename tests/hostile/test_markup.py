"""Documents made of one long word keep nobody busy: readers of markup and tables do linear work."""

from collections.abc import Callable
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest

from threadkeep.domain.document import CSV, HTML
from threadkeep.ports.documents import ExtractionFailed
from threadkeep.retrieval.extract import extract

LOOKS_FOR_AN_END = ("parse_starttag", "parse_endtag", "parse_pi", "parse_comment", "parse_html_declaration")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters lie before the parser each time it looks for the end of something."""
    found: list[int] = []

    def counting(search: Callable[..., int]) -> Callable[..., int]:
        def counted(parser: HTMLParser, i: int, *rest: object) -> int:
            end = search(parser, i, *rest)
            found.append((len(parser.rawdata) if end < 0 else end) - i)
            return end

        return counted

    for name in LOOKS_FOR_AN_END:
        monkeypatch.setattr(HTMLParser, name, counting(getattr(HTMLParser, name)))
    return found


def read(path: Path, text: str, media_type: str) -> int:
    """How much text a file gives."""
    path.write_text(text)
    with suppress(ExtractionFailed):
        return sum(len(section.text) for section in extract(path, media_type))
    return 0


@pytest.mark.parametrize("word", ["<a", "a<", "<!--", "</a", "<?", '<a b="', "<![CDATA[", "<!d"])
def test_page_of_one_long_word_is_searched_in_linear_work(word: str, searched: list[int], tmp_path: Path):
    work: list[int] = []
    for times in (1_000, 2_000):
        searched.clear()
        read(tmp_path / "page.html", word * times, HTML)
        work.append(sum(searched))
    assert work[1] <= 2.2 * work[0]


def test_page_with_some_tags_left_open_is_read(tmp_path: Path):
    assert read(tmp_path / "page.html", "Words <b>and</b> more <i" * 20, HTML) > 150


def test_table_with_a_long_column_name_is_no_longer_than_its_values_make_it(tmp_path: Path):
    rows = "1,2\n" * 50
    short, long = (read(tmp_path / "t.csv", f"{'a' * width},b\n{rows}", CSV) for width in (100, 100_000))
    assert long == short > 0
