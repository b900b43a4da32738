"""PDFs of messages: what is to be known of one before it goes to a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PdfFacts:
    """What a PDF is like.

    `encrypted` is also said of a PDF that opens without a password and only forbids printing or the like;
    providers refuse it all the same. With `needs_password` nothing else can be known: there are 0 pages.
    """

    page_count: int
    encrypted: bool
    needs_password: bool


class PdfInspector(Protocol):
    """Looks into PDFs, apart from everything else that runs here."""

    async def inspect(self, source: Path) -> PdfFacts:
        """What a PDF is like; raises UnsupportedFile where it cannot be opened or takes too long."""
        ...
