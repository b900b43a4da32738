"""Inspects PDFs in a separate process, which is killed when it takes too long."""

from pathlib import Path

import msgspec

from threadkeep.domain.errors import UnsupportedFile
from threadkeep.files.asking import ask_process, cannot_be_read
from threadkeep.ports.attachments import PdfFacts

MOST_S = 30.0


class _Response(msgspec.Struct):
    """The confined process's report."""

    page_count: int = 0
    encrypted: bool = False
    needs_password: bool = False
    failed: str | None = None


_decode = msgspec.json.Decoder(_Response).decode


class ProcessPdfInspector:
    """Inspects each PDF in its own confined process."""

    def __init__(self, *, most_s: float = MOST_S) -> None:
        self._most_s = most_s

    async def inspect(self, source: Path) -> PdfFacts:
        """The facts about a PDF; raises UnsupportedFile if it can't be opened or takes too long."""
        line = await ask_process("threadkeep.files.pdf_process", source, noun="PDF", most_s=self._most_s)
        try:
            report = _decode(line)
        except msgspec.MsgspecError as exc:
            raise cannot_be_read("PDF") from exc
        if report.failed is not None:
            raise UnsupportedFile(report.failed)
        return PdfFacts(
            page_count=report.page_count,
            encrypted=report.encrypted,
            needs_password=report.needs_password,
        )
