"""Opens PDFs; only in confined processes, which a hostile file may kill without harm."""

from pathlib import Path
from typing import Any

from threadkeep.ports.documents import ExtractionFailed, PasswordRequired

NEEDS_EXTRA = "This server can't read {} files. `threadkeep doctor` tells its operator how to change that."


def open_pdf(path: Path) -> Any:
    """A PDF to read page by page; raises PasswordRequired if it can't be read without one."""
    try:
        import pypdfium2 as pdfium  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise ExtractionFailed(NEEDS_EXTRA.format("PDF")) from exc
    try:
        return pdfium.PdfDocument(path)
    except pdfium.PdfiumError as exc:
        if "password" in str(exc).lower():
            raise PasswordRequired("The PDF is password-protected.") from exc
        raise ExtractionFailed("The PDF is damaged.") from exc
