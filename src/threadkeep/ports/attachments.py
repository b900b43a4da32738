"""Images and PDFs of messages: prepared and inspected before a model receives them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Rendition:
    """A re-encoded image, upright and without metadata, in a temporary file."""

    path: Path
    media_type: str
    size: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """The size of an image when upright, and its renditions for models and the page."""

    width: int
    height: int
    model: Rendition
    preview: Rendition


class ImagePreparer(Protocol):
    """Prepares images for models, isolated from everything else."""

    async def prepare(self, source: Path, folder: Path) -> PreparedImage:
        """Writes the renditions of an image into a folder, which the caller always removes.

        Raises UnsupportedFile if the image can't be decoded, and StorageUnavailable if a file can't be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class PdfFacts:
    """A PDF's properties.

    `encrypted` includes a PDF that opens without a password and only forbids printing or the like; providers
    refuse it all the same. With `needs_password` nothing else is known, and `page_count` is 0.
    """

    page_count: int
    encrypted: bool
    needs_password: bool


class PdfInspector(Protocol):
    """Inspects PDFs, isolated from everything else."""

    async def inspect(self, source: Path) -> PdfFacts:
        """A PDF's properties; raises UnsupportedFile if it can't be opened or takes too long."""
        ...
