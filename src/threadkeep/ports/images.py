"""Images of messages: how one is made fit for a model and for the page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Rendition:
    """An image encoded again, upright and without metadata, in a file of ours."""

    path: Path
    media_type: str
    size: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """The size of an image when it stands upright, and what models and the page get of it."""

    width: int
    height: int
    model: Rendition
    preview: Rendition


class ImagePreparer(Protocol):
    """Makes images fit for models, apart from everything else that runs here."""

    async def prepare(self, source: Path, folder: Path) -> PreparedImage:
        """Writes the renditions of an image into a folder, which the caller removes however this ends.

        Raises UnsupportedFile where the image cannot be read, and StorageUnavailable where a file cannot be.
        """
        ...
