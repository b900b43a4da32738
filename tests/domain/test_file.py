"""What a file is, by its content, and what is refused."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.making import animation, encode, photograph
from tests.retrieval.files import make_docx, make_pdf
from threadkeep.domain.document import CSV, DOCX, MARKDOWN, PDF, TEXT
from threadkeep.domain.errors import UnsupportedFile
from threadkeep.domain.file import (
    ACCEPTED,
    CODE,
    GIF,
    HEAD_BYTES,
    JPEG,
    JSON,
    PNG,
    TAIL_BYTES,
    WEBP,
    detect,
    is_image,
    is_text,
)

HTML = b"<!DOCTYPE html><html><body><script>alert(1)</script></body></html>"
SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
MAGIC = [
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF89a",
    b"RIFF1234WEBP",
    b"%PDF-1.7",
    b"PK\x03\x04",
    b"\xff\xfe",
]


def archive(*names: str, first_bytes: int = 0) -> bytes:
    """A ZIP with these members, the first of them as large as that."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as members:
        for number, name in enumerate(names):
            members.writestr(name, b"\x55" * (0 if number else first_bytes))
    return raw.getvalue()


def reason(content: bytes, file_name: str) -> str:
    """Why a file is refused."""
    with pytest.raises(UnsupportedFile) as refused:
        detect(content, file_name)
    assert (refused.value.code, refused.value.param) == ("UNSUPPORTED_FILE", "fileName")
    return refused.value.message


@pytest.mark.parametrize("file_name", ["a.png", "a.jpg", "a.txt", "a.pdf", "a", "a.html"])
def test_image_is_told_by_its_content_whatever_its_name(file_name: str):
    image = photograph(20, 10)
    assert detect(encode(image, "PNG"), file_name) == PNG
    assert detect(encode(image, "JPEG"), file_name) == JPEG
    assert detect(encode(image, "WEBP"), file_name) == WEBP
    assert detect(animation([(1, 2, 3), (4, 5, 6)]), file_name) == GIF


def test_pdf_and_word_are_told_by_their_content():
    assert detect(make_pdf(["Hello"])[:HEAD_BYTES], "x.txt") == PDF
    assert detect(make_docx([(None, "Hello")])[:HEAD_BYTES], "x") == DOCX


def test_word_document_is_recognised_by_its_end_where_it_begins_with_a_large_picture():
    content = archive("docProps/thumbnail.jpeg", "word/document.xml", first_bytes=2 * HEAD_BYTES)
    assert detect(content[:HEAD_BYTES], "a.docx", tail=content[-TAIL_BYTES:]) == DOCX


@pytest.mark.parametrize(
    ("names", "kind"),
    [(["xl/workbook.xml"], "an Excel file"), (["ppt/x.xml"], "a PowerPoint"), (["a.txt"], "a ZIP archive")],
)
def test_other_archive_is_refused_by_its_name_of_kind(names: list[str], kind: str):
    assert kind in reason(archive(*names), "a.docx")


@pytest.mark.parametrize(
    ("file_name", "media_type"),
    [
        ("notes.txt", TEXT),
        ("build.log", TEXT),
        ("Makefile", TEXT),
        ("unknown.xyz", TEXT),
        ("data.CSV", CSV),
        ("README.md", MARKDOWN),
        ("data.json", JSON),
        ("main.py", CODE),
        ("page.html", CODE),
    ],
)
def test_name_tells_texts_apart(file_name: str, media_type: str):
    assert detect("héllo, 世界\n".encode(), file_name) == media_type
    assert detect("héllo, 世界\n".encode("utf-16"), file_name) == media_type


def test_text_cut_inside_a_character_is_text():
    assert detect("世界".encode()[:-1], "a.txt") == TEXT


def test_colours_of_a_terminal_are_text():
    assert detect(b"\x1b[31mfailed\x1b[0m\r\n", "build.log") == TEXT


@pytest.mark.parametrize("content", [b"a\x00b", b"a\x07", b"\xff\xfe\x00\x00a\x00\x00\x00", b"\x80\x81"])
def test_control_bytes_and_broken_encodings_are_no_text(content: bytes):
    assert "Can't attach" in reason(content, "a.txt")


def test_text_in_another_encoding_is_told_what_to_do():
    assert "save it as UTF-8" in reason("合同模板".encode("gb18030"), "a.txt")


@pytest.mark.parametrize("file_name", ["a.png", "a.jpg", "a.JPEG", "a.gif", "a.webp", "a.pdf", "a.docx"])
def test_html_with_the_name_of_another_kind_is_refused(file_name: str):
    assert "contains HTML" in reason(HTML, file_name)
    assert "contains text" in reason(b"hello", file_name)


def test_html_is_never_html():
    for file_name in ("a.html", "a.txt", "a", "a.md"):
        assert is_text(detect(HTML, file_name))


def test_svg_is_source_code_and_never_an_image():
    assert detect(SVG, "logo.svg") == CODE
    assert "contains HTML or SVG" in reason(SVG, "logo.png")


@pytest.mark.parametrize(
    "content",
    [
        b"GIF89a/*" + make_pdf(["Hello"]) + b"*/=1;",
        encode(photograph(8, 8), "JPEG", comment=make_pdf(["Hello"])),
        b"\xff\xd8\xff\xe0" + b"%PDF-1.7",
        archive("word/document.xml").replace(b"word/document.xml", b"word/%PDF-1.7.xml"),
        b"%PDF-1.7\n<script>alert(1)</script>",
        b"%PDF-1.7\n<!doctype html>",
    ],
)
def test_file_of_two_kinds_is_refused(content: bytes):
    assert "two file types at once" in reason(content[:HEAD_BYTES], "a.pdf")


def test_pdf_that_begins_late_is_refused():
    assert "contains HTML" in reason(HTML + b"\n" + make_pdf(["Hello"]), "a.pdf")
    assert reason(b"\x00\x00" + make_pdf(["Hello"]), "a.pdf")


def test_source_that_mentions_pdf_is_source():
    assert detect(b'MAGIC = b"%PDF-"\n', "file.py") == CODE


@pytest.mark.parametrize("hidden", [HTML, archive("evil.jar"), make_pdf(["x"])])
def test_image_with_something_behind_it_is_an_image(hidden: bytes):
    # Only its pixels are ever shown or sent: tests/files/test_images.py proves that.
    assert detect(encode(photograph(64, 64), "JPEG") + hidden, "a.jpg") == JPEG


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x00\x00\x00\x18ftypheic\x00\x00", "a HEIC image"),
        (b"\x00\x00\x00\x18ftypavif\x00\x00", "an AVIF image"),
        (b"\x00\x00\x00\x18ftypisom\x00\x00", "a video or audio file"),
        (b"BM\x00\x00\x00\x00", "a BMP image"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00", "old format"),
        (b"\x1f\x8b\x08\x01", "a compressed file"),
        (b"\x7fELF\x02\x00", "a program"),
        (b"\x00\x01\x02", "Can't attach .bin files. Try an image, PDF, Word, text or code."),
    ],
)
def test_other_kind_is_refused_by_its_name_of_kind(content: bytes, kind: str):
    assert kind in reason(content, "a.bin")


def test_empty_file_is_refused():
    assert reason(b"", "a.txt") == "a.txt is empty."


@given(
    head=st.one_of(
        st.binary(max_size=300),
        st.builds(bytes.__add__, st.sampled_from(MAGIC), st.binary(max_size=300)),
        st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")),
    ),
    file_name=st.one_of(
        st.text(max_size=20), st.sampled_from(["a.png", "a.pdf", "a.svg", "a.docx", "a.csv"])
    ),
    tail=st.binary(max_size=50),
)
def test_any_bytes_are_accepted_as_a_known_kind_or_refused(head: bytes, file_name: str, tail: bytes):
    try:
        media_type = detect(head, file_name, tail=tail)
    except UnsupportedFile as exc:
        assert exc.message
    else:
        assert media_type in ACCEPTED
        assert is_image(media_type) + is_text(media_type) + (media_type in {PDF, DOCX}) == 1


@given(st.text(alphabet=st.characters(min_codepoint=32, codec="utf-8"), min_size=1, max_size=200))
def test_any_text_is_text_whatever_it_begins_like(text: str):
    content = ("a" + text).encode()
    assert is_text(detect(content, "a.txt"))
