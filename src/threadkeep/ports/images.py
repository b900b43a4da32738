"""Images of messages: preparation for models and for the page."""

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
