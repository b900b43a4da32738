"""Files for messages, over HTTP."""

from dataclasses import replace
from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest
from threadkeep.handling.ranges import requested_range
from threadkeep.handling.routing import RequestContext, StreamedAttachment
from threadkeep.handling.uploads import UploadedFiles
from threadkeep.http.reports.handlers import disposition
from threadkeep.services.files import OpenedFile
from threadkeep.wire.files import UploadedFilesView, file_view

NOT_KEPT = "private, no-store"
"""What a browser must ask for again each time."""


# Shown by a browser they could do something; as an attachment of another type they are bytes.
_ACTIVE = ("html", "xml", "svg", "javascript", "ecmascript", "pdf", "flash")


class FileQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which form of the file to return."""

    preview: Annotated[bool, Meta(description="For an image: a small version for display.")] = False


async def add_files(request: RequestContext, *, files: UploadedFiles) -> UploadedFilesView:
    """Upload one or more files for a message: images, PDF, DOCX, text, CSV, Markdown, JSON, source code.

    The content determines a file's type, not its name. If Threadkeep rejects one file, it accepts none. It
    deletes files that no message uses after a day.
    """
    async with files.read() as uploads:
        if not uploads:
            raise InvalidRequest("The request contains no file.", param="files")
        kept = await request.services.files.add(request.user, *((it.file_name, it.file) for it in uploads))
    return UploadedFilesView(items=[file_view(file) for file in kept])


async def get_file(request: RequestContext, *, file_id: str, query: FileQuery) -> StreamedAttachment:
    """Download one of your files; only the preview is for display.

    With `Range`, the response is a 206 with that part of it, and `Content-Range` says which one it is.
    """
    file = await request.services.files.open(request.user, file_id, preview=query.preview)
    return file_response(request, file, caching="private, max-age=86400" if file.is_shown else NOT_KEPT)


async def get_artifact(request: RequestContext, *, artifact_id: str) -> StreamedAttachment:
    """Download a file that a tool returned.

    With `Range`, the response is a 206 with that part of it, and `Content-Range` says which one it is.
    """
    file = await request.services.reports.open_file(request.user, artifact_id)
    return file_response(request, replace(file, media_type=_inactive(file.media_type)), caching=NOT_KEPT)


def _inactive(media_type: str) -> str:
    if any(word in media_type for word in _ACTIVE):
        return "application/octet-stream"
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def file_response(request: RequestContext, file: OpenedFile, *, caching: str) -> StreamedAttachment:
    """A file, or the part of it that the request asks for."""
    asked, content = request.http.headers, file.content
    etag = f'"{content.sha256}"'
    headers = {  # what confines it comes before what a stranger's file may have named
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Content-Disposition": "inline" if file.is_shown else disposition(file.file_name),
        "Content-Type": file.media_type,
        "Cache-Control": caching,
        "Vary": "Authorization, X-Api-Key",  # the next user of a browser must not find the last one's
        "Accept-Ranges": "bytes",
        "ETag": etag,
    }
    part = requested_range(asked, etag, content.size)
    start, stop = part or (0, content.size)
    if part:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{content.size}"
    return StreamedAttachment(
        content.read(start, stop),
        status=206 if part else 200,
        headers={**headers, "Content-Length": str(stop - start)},
    )
