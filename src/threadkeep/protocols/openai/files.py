"""`/v1/files`: files for messages, kept like every upload until a message uses them."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.handling.routing import RequestContext, StreamedAttachment
from threadkeep.handling.uploads import UploadedFiles
from threadkeep.protocols.files import ReceivedFile, take_in
from threadkeep.protocols.openai.ids import file_id, parse_file_id
from threadkeep.services.reach import check_reach

PURPOSE = "user_data"
MOST_FILES = 10_000


class FileView(Struct, frozen=True, kw_only=True):
    """A file."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: Literal["user_data"] = PURPOSE
    status: Literal["processed"] = "processed"


class FileList(Struct, frozen=True, kw_only=True):
    """A list of files."""

    object: Literal["list"] = "list"
    data: Sequence[FileView]
    first_id: str | None
    last_id: str | None
    has_more: bool

    @staticmethod
    def of(files: Sequence[FileView], *, has_more: bool) -> "FileList":
        """A page of files."""
        ids = [it.id for it in files] or [None]
        return FileList(data=files, first_id=ids[0], last_id=ids[-1], has_more=has_more)


class DeletedFile(Struct, frozen=True, kw_only=True):
    """A file that was deleted."""

    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class FilesQuery(Struct, frozen=True):
    """Which files to list."""

    limit: Annotated[int, Meta(ge=1, le=MOST_FILES)] = 1_000
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None
    purpose: str | None = None


async def file_parts(
    request: RequestContext, files: Sequence[ReceivedFile | str], param: str = "input"
) -> tuple[FilePart, ...]:
    """The files of a message in their order: new ones, and those that the user has here."""
    # A client may name a file twice: the message has it once.
    sent = [ReceivedFile("", file_id=it) if isinstance(it, str) else it for it in dict.fromkeys(files)]
    return await take_in(request.services.files, request.user, sent, param=param)


async def upload(request: RequestContext, *, files: UploadedFiles) -> FileView:
    """Upload a file for a message; its `purpose` makes no difference here."""
    async with files.read() as uploads:
        if len(uploads) != 1:
            raise InvalidRequest("Send one file, as `file`.", param="file")
        (kept,) = await request.services.files.add(request.user, (uploads[0].file_name, uploads[0].file))
    return _view(kept)


async def list_files(request: RequestContext, *, query: FilesQuery) -> FileList:
    """List your files, newest first unless asked otherwise."""
    if query.purpose not in (None, PURPOSE):
        return FileList.of((), has_more=False)
    after = parse_file_id(query.after) if query.after is not None else None
    page = await request.services.files.page(
        request.user, after=after, newest_first=query.order == "desc", limit=query.limit + 1
    )
    return FileList.of([_view(it) for it in page[: query.limit]], has_more=len(page) > query.limit)


async def get_file(request: RequestContext, *, file: str) -> FileView:
    """Read what is known about one of your files."""
    return _view(await request.services.files.get(request.user, parse_file_id(file)))


async def delete_file(request: RequestContext, *, file: str) -> DeletedFile:
    """Delete one of your files, unless a message has it."""
    await request.services.files.delete(request.user, parse_file_id(file))
    return DeletedFile(id=file)


def _view(file: UploadedFile) -> FileView:
    return FileView(
        id=file_id(file.id), bytes=file.size, created_at=file.created_at // 1000, filename=file.file_name
    )


async def content(request: RequestContext, *, file: str) -> StreamedAttachment:
    """Download one of your files."""
    id_ = PayloadId(parse_file_id(file))
    await check_reach(request.services.store, request.user, {"file_id": id_})
    opened = await request.services.files.open(request.user, id_, preview=False)
    headers = {
        "Content-Type": opened.media_type,
        "Content-Disposition": "attachment",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-store",
        "Content-Length": str(opened.content.size),
    }
    return StreamedAttachment(opened.content.read(0, opened.content.size), status=200, headers=headers)
