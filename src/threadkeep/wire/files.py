"""Views of files for messages."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.wire.view import Id, View


class UploadedFileView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A file for a message."""

    id: Annotated[Id, Meta(description="What to name in a message's `files`.")]
    file_name: Annotated[str, Meta(description="The name of the uploaded file.")]
    media_type: Annotated[str, Meta(description="What kind of file it is, detected from its content.")]
    size: Annotated[int, Meta(description="How many bytes the file has.")]
    width: Annotated[int | None, Meta(description="An image's width in pixels.")] = None
    height: Annotated[int | None, Meta(description="An image's height in pixels.")] = None


class UploadedFilesView(View, frozen=True, kw_only=True):
    """The files, in the order in which they were sent."""

    items: Annotated[
        Sequence[UploadedFileView], Meta(description="A file for each upload, in the same order.")
    ]


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
