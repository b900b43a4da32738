"""Prepares images for models in a separate process, which is killed when it takes too long."""

from pathlib import Path

import msgspec

from threadkeep.domain.errors import StorageUnavailable, UnsupportedFile
from threadkeep.files.asking import ask_process, cannot_be_read
from threadkeep.ports.attachments import PreparedImage, Rendition

MOST_S = 60.0


class _Response(msgspec.Struct):
    """The confined process's report."""

    width: int = 0
    height: int = 0
    model: Rendition | None = None
    preview: Rendition | None = None
    failed: str | None = None
    unavailable: str | None = None


_decode = msgspec.json.Decoder(_Response, dec_hook=lambda kind, value: kind(value)).decode


class ProcessImagePreparer:
    """Reads each image in its own confined process."""

    def __init__(self, *, most_s: float = MOST_S) -> None:
        self._most_s = most_s

    async def prepare(self, source: Path, folder: Path) -> PreparedImage:
        """Writes an image's renditions into a folder, which the caller removes even on failure."""
        line = await ask_process(
            "threadkeep.files.image_process", source, writes=[folder], noun="image", most_s=self._most_s
        )
        return _prepared(line)


def _prepared(line: bytes) -> PreparedImage:
    try:
        report = _decode(line)
    except msgspec.MsgspecError as exc:
        raise cannot_be_read("image") from exc
    if report.failed is not None:
        raise UnsupportedFile(report.failed)
    if report.model is None or report.preview is None:
        raise StorageUnavailable(report.unavailable or "Couldn't save the image.")
    return PreparedImage(width=report.width, height=report.height, model=report.model, preview=report.preview)
