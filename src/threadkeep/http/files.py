"""Files for messages, over HTTP."""

from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest
from threadkeep.http.reports.handlers import disposition
from threadkeep.http.routing import StreamedAttachment
from threadkeep.http.services import ApiCall
from threadkeep.http.uploads import Files
from threadkeep.wire.files import UploadedFilesView, file_view


class FileQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which form of the file to return."""

    preview: Annotated[bool, Meta(description="For an image: a small version for display.")] = False


async def add_files(call: ApiCall, *, files: Files) -> UploadedFilesView:
    """Upload one or more files for a message: images, PDF, DOCX, text, CSV, Markdown, JSON, source code.

    The content determines a file's type, not its name. If Threadkeep rejects one file, it accepts none. It
    deletes files that no message uses after a day.
    """
    async with files.read() as uploads:
        if not uploads:
            raise InvalidRequest("The request contains no file.", param="files")
        kept = await call.services.files.add(call.user, *((it.file_name, it.file) for it in uploads))
    return UploadedFilesView(items=[file_view(file) for file in kept])


async def get_file(call: ApiCall, *, file_id: str, query: FileQuery) -> StreamedAttachment:
    """Download one of your files; only the preview is for display."""
    file = await call.services.files.open(call.user, file_id, preview=query.preview)
    return StreamedAttachment(
        file.pieces,
        media_type=file.media_type,
        headers={
            "Content-Disposition": "inline" if file.is_shown else disposition(file.file_name),
            "Content-Length": str(file.size),
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, max-age=86400" if file.is_shown else "private, no-store",
        },
    )
