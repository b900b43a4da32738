"""Views of files for messages."""

from collections.abc import Sequence

from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.wire.view import Id, View


class UploadedFileView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A file for a message."""

    id: Id
    file_name: str
    media_type: str
    size: int
    width: int | None = None
    height: int | None = None


class UploadedFilesView(View, frozen=True, kw_only=True):
    """The files, in the order in which they were sent."""

    items: Sequence[UploadedFileView]


def file_view(file: UploadedFile) -> UploadedFileView:
    """A file for a message."""
    return UploadedFileView(
        id=file.id,
        file_name=file.file_name,
        media_type=file.media_type,
        size=file.size,
        width=file.width,
        height=file.height,
    )
