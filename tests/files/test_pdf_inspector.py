"""What is known of a PDF before it goes to a model."""

from pathlib import Path

import pytest

from tests.retrieval.files import make_encrypted_pdf, make_image_pdf, make_pdf, make_restricted_pdf
from threadkeep.domain.errors import UnsupportedFile
from threadkeep.files.pdf_inspector import ProcessPdfInspector
from threadkeep.ports.attachments import PdfFacts


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (
            make_pdf(["", "", "合同 on the third page"]),
            PdfFacts(page_count=3, encrypted=False, needs_password=False),
        ),
        (
            make_image_pdf(),
            PdfFacts(page_count=1, encrypted=False, needs_password=False),
        ),
        (
            make_pdf([""], count=1_000_000),  # which is a lie
            PdfFacts(page_count=1_000_000, encrypted=False, needs_password=False),
        ),
        (
            make_encrypted_pdf(),
            PdfFacts(page_count=0, encrypted=True, needs_password=True),
        ),
        (
            make_restricted_pdf(),
            PdfFacts(page_count=1, encrypted=True, needs_password=False),
        ),
    ],
    ids=["text", "scan", "many pages", "password", "restricted"],
)
async def test_pdf_is_described(tmp_path: Path, content: bytes, facts: PdfFacts):
    source = tmp_path / "upload"
    source.write_bytes(content)
    assert await ProcessPdfInspector().inspect(source) == facts


@pytest.mark.parametrize("content", [b"%PDF-1.7\nno more than this", make_pdf(["Hello"])[:60]])
async def test_damaged_pdf_is_refused(tmp_path: Path, content: bytes):
    source = tmp_path / "upload"
    source.write_bytes(content)
    with pytest.raises(UnsupportedFile, match="damaged"):
        await ProcessPdfInspector().inspect(source)


async def test_pdf_that_takes_too_long_is_refused(tmp_path: Path):
    source = tmp_path / "upload"
    source.write_bytes(make_pdf(["Hello"]))
    with pytest.raises(UnsupportedFile, match="takes too long"):
        await ProcessPdfInspector(most_s=0.01).inspect(source)
