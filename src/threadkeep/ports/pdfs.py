"""PDFs of messages: their properties that matter to models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PdfFacts:
    """A PDF's properties.

    `encrypted` includes a PDF that opens without a password and only forbids printing or the like; providers
    refuse it all the same. With `needs_password` nothing else is known, and `pages` is 0.
    """

    page_count: int
    encrypted: bool
    needs_password: bool


class PdfInspector(Protocol):
    """Inspects PDFs, isolated from everything else."""

    async def inspect(self, source: Path) -> PdfFacts:
        """A PDF's properties; raises UnsupportedFile if it can't be opened or takes too long."""
        ...
