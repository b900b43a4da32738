"""Extracts a file's text, with the page and the heading of each part.

Runs in the confined process only, which a hostile file may kill without harm.
"""

import csv
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from threadkeep.confined.pdf import NEEDS_EXTRA, open_pdf
from threadkeep.domain.document import CSV, DOCX, HTML, MARKDOWN, PDF, TEXT
from threadkeep.domain.text import is_blank, storable
from threadkeep.ports.documents import ExtractionFailed

MOST_PAGES = 10_000
MOST_BAD_PAGES = 20
MOST_UNPACKED_BYTES = 256 * 1024 * 1024
MOST_MARKUP_BYTES = 32 * 1024 * 1024
"""For all that is parsed, which takes many times its size; a thousand pages have less than 10 MB."""


@dataclass(frozen=True, slots=True)
class Section:
    """A run of text under one heading, on one page, and how much of the file is read after it."""

    text: str
    page: int | None = None
    heading: str | None = None
    progress: float = 0.0


def extract(path: Path, media_type: str) -> Iterator[Section]:
    """The sections of a file, in order; raises ExtractionFailed with a readable reason."""
    found = False
    for section in _READERS[media_type](path):
        text = storable(section.text)
        if not is_blank(text):
            found = True
            heading = storable(section.heading)[:200] if section.heading else None
            yield Section(text, section.page, heading, section.progress)
    if not found:
        raise ExtractionFailed(_WITHOUT_TEXT.get(media_type, "The file contains no text."))


_WITHOUT_TEXT = {PDF: "The PDF contains no text, only images. Run text recognition (OCR) on it first."}


def pdf_page_text(pdf: Any, number: int) -> str | None:
    """The text of a page, counted from 0; None if the page is damaged."""
    import pypdfium2 as pdfium  # noqa: PLC0415 - an extra

    try:
        page = pdf[number]
        text_page = page.get_textpage()
        text = text_page.get_text_bounded().replace("\r\n", "\n")
        text_page.close()
        page.close()
    except pdfium.PdfiumError:
        return None
    return text


def _read_pdf(path: Path) -> Iterator[Section]:
    pdf = open_pdf(path)
    headings = _pdf_headings(pdf)
    # The file itself declares its page count, which may be false.
    count, heading, bad_pages = min(len(pdf), MOST_PAGES), None, 0
    for number in range(count):
        heading = headings.get(number, heading)
        text = pdf_page_text(pdf, number)
        if text is None:
            bad_pages += 1
            if bad_pages >= MOST_BAD_PAGES:
                return
            continue
        bad_pages = 0
        yield Section(text, number + 1, heading, (number + 1) / count)


def _pdf_headings(pdf: Any) -> dict[int, str]:
    """The heading at the start of each page, from the outline if there is one."""
    headings: dict[int, str] = {}
    try:
        for bookmark in pdf.get_toc(max_depth=3):
            destination = bookmark.get_dest()
            page = destination.get_index() if destination else None
            if page is not None:
                headings.setdefault(page, bookmark.get_title())
    except Exception:  # noqa: BLE001 - an outline is a convenience, and a broken one must not fail the document
        return {}
    return headings


def _read_docx(path: Path) -> Iterator[Section]:
    try:
        import docx  # noqa: PLC0415 - an extra
        from docx.table import Table  # noqa: PLC0415
    except ImportError as exc:
        raise ExtractionFailed(NEEDS_EXTRA.format("DOCX")) from exc
    try:
        with zipfile.ZipFile(path) as archive:
            _check_unpacked(archive.infolist())
        document = docx.Document(str(path))
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, SyntaxError) as exc:
        raise ExtractionFailed("The file is damaged, or isn't a Word document.") from exc
    heading = None
    blocks = list(document.iter_inner_content())
    for number, block in enumerate(blocks, 1):
        if isinstance(block, Table):
            rows = (" | ".join(dict.fromkeys(cell.text.strip() for cell in row.cells)) for row in block.rows)
            yield Section("\n".join(rows), None, heading, number / len(blocks))
            continue
        style = block.style.name if block.style is not None else None
        if style and (style.startswith("Heading") or style == "Title") and not is_blank(block.text):
            heading = block.text.strip()
        yield Section(block.text, None, heading, number / len(blocks))


def _check_unpacked(members: Sequence[zipfile.ZipInfo]) -> None:
    """Relies on declared sizes: a member never unpacks to more than it declares."""
    markup = sum(it.file_size for it in members if it.filename.lower().endswith((".xml", ".rels")))
    for size, most in (
        (sum(it.file_size for it in members), MOST_UNPACKED_BYTES),
        (markup, MOST_MARKUP_BYTES),
    ):
        if size > most:
            raise ExtractionFailed(
                f"The file unpacks to {size // 2**20} MB; the limit is {most // 2**20} MB."
            )


_SKIPPED = {"script", "style", "template", "noscript", "svg", "head"}
_BLOCKS = {
    "p", "div", "br", "li", "ul", "ol", "tr", "table", "section", "article", "header", "footer", "blockquote",
    "pre", "dt", "dd", "figure", "figcaption", "hr", "main", "nav", "aside", "form",
}  # fmt: skip
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
MOST_UNCLOSED = 100
"""The parser searches the whole file for the end of each tag: one long word of `<a` would take hours."""
MOST_COLUMN_NAME = 100
"""Each value of a CSV file repeats the name of its column: a long one would make a small file a huge text."""


class _HtmlText(HTMLParser):
    """Reads what a page shows; skips scripts and the like. Fails if too many tags or comments have no end."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[Section] = []
        self._text: list[str] = []
        self._heading: str | None = None
        self._skipping = 0
        self._unclosed = 0

    def parse_starttag(self, i: int) -> int:
        return self._closed(super().parse_starttag(i))

    def parse_endtag(self, i: int) -> int:
        return self._closed(super().parse_endtag(i))

    def parse_pi(self, i: int) -> int:
        return self._closed(super().parse_pi(i))

    def parse_comment(self, i: int, report: bool = True) -> int:
        return self._closed(super().parse_comment(i, report))

    def parse_html_declaration(self, i: int) -> int:
        return self._closed(super().parse_html_declaration(i))

    def _closed(self, end: int) -> int:
        self._unclosed += end < 0
        if self._unclosed > MOST_UNCLOSED:
            raise ExtractionFailed("The HTML file has too many tags or comments without an end.")
        return end

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _SKIPPED:
            self._skipping += 1
        elif tag in _HEADINGS:
            self.flush()
        elif tag in _BLOCKS:
            self._text.append("\n")
        elif tag in {"td", "th"}:
            self._text.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipping = max(0, self._skipping - 1)
        elif tag in _HEADINGS:
            self._heading = " ".join("".join(self._text).split()) or self._heading
            self._text.append("\n")
        elif tag in _BLOCKS:
            self._text.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._text.append(data if data.strip() else " ")

    def flush(self) -> None:
        """Ends the section under the current heading."""
        lines = (" ".join(line.split()) for line in "".join(self._text).split("\n"))
        self.sections.append(Section("\n".join(line for line in lines if line), None, self._heading))
        self._text.clear()


def _read_html(path: Path) -> Iterator[Section]:
    parser = _HtmlText()
    parser.feed(_decoded(path))
    parser.close()
    parser.flush()
    yield from parser.sections


def _read_markdown(path: Path) -> Iterator[Section]:
    heading: str | None = None
    lines: list[str] = []
    in_code = False
    for line in _decoded(path).splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
        marks = line.split(" ", 1)[0]
        if not in_code and marks and marks == "#" * len(marks) and len(marks) <= 6 and " " in line:
            yield Section("\n".join(lines), None, heading)
            lines, heading = [line], line.strip("# \t")
        else:
            lines.append(line)
    yield Section("\n".join(lines), None, heading)


def _read_csv(path: Path) -> Iterator[Section]:
    text = _decoded(path)
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        header = next(rows, list[str]())
        for row in rows:
            # Each row names its values, so that it can be understood alone.
            named = (
                f"{header[place][:MOST_COLUMN_NAME]}: {value}" if place < len(header) else value
                for place, value in enumerate(row)
                if value.strip()
            )
            yield Section("; ".join(named))
    except csv.Error as exc:
        raise ExtractionFailed(f"The CSV file couldn't be parsed: {exc}.") from exc
    if rows.line_num <= 1:
        yield Section("; ".join(header))


def _read_text(path: Path) -> Iterator[Section]:
    yield Section(_decoded(path))


def _decoded(path: Path) -> str:
    """A text file in any of the usual encodings; Chinese ones are often GB 18030."""
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("cp1252", "replace")


_READERS: Mapping[str, Callable[[Path], Iterator[Section]]] = {
    PDF: _read_pdf,
    DOCX: _read_docx,
    HTML: _read_html,
    MARKDOWN: _read_markdown,
    CSV: _read_csv,
    TEXT: _read_text,
}
