"""Files for messages: uploaded one by one in chunks before their message, and saved as they arrive."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from os import PathLike
from pathlib import Path

from threadkeep.client.connection import ApiConnection
from threadkeep.client.errors import ClientError
from threadkeep.client.sending import Sending, SentFile
from threadkeep.wire.files import UploadedFilesView, UploadedFileView
from threadkeep.wire.parts import FilePartView

GivenFile = str | PathLike[str] | bytes | tuple[str, bytes] | UploadedFileView | FilePartView
"""A path, contents with or without a name, or a file on the server: an uploaded file, a part of a message."""

UNNAMED = "file"
"""The name of contents that have none."""


class MessageFiles:
    """The files that messages of this client have."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def ids(self, files: Sequence[GivenFile]) -> list[str]:
        """The ids of a message's files; uploads those that aren't on the server first."""
        for file in files:
            _check_readable(file)
        return [await self._id(file) for file in files]

    async def upload(
        self, file: GivenFile, on_progress: Callable[[Sending], None] | None = None
    ) -> UploadedFileView:
        """Uploads a file; an error names it."""
        match file:
            case UploadedFileView():
                return file
            case FilePartView():
                return UploadedFileView(
                    id=file.file_id,
                    file_name=file.file_name,
                    media_type=file.media_type,
                    size=file.size,
                    width=file.width,
                    height=file.height,
                )
            case bytes():
                return await self._send(UNNAMED, file)
            case (name, content):
                return await self._send(name, content)
            case _:
                path = Path(file)
                with SentFile(path, on_progress) as opened:
                    return await self._send(path.name, opened)

    async def read(self, file_id: str, *, preview: bool) -> bytes:
        """All of a file."""
        response = await self._connection.send("GET", _path(file_id), params=_form(preview=preview))
        return response.content

    async def save(self, file_id: str, target: Path, *, preview: bool) -> None:
        """Writes a file to disk as it arrives; leaves nothing there if it breaks off."""
        partial = target.with_name(f"{target.name}.part")
        pieces = self._connection.pieces(_path(file_id), params=_form(preview=preview))
        try:
            async with aclosing(pieces):
                with partial.open("wb") as file:
                    async for piece in pieces:
                        file.write(piece)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    async def _id(self, file: GivenFile) -> str:
        return (await self.upload(file)).id

    async def _send(self, name: str, content: SentFile | bytes) -> UploadedFileView:
        try:
            # Uploading twice does no harm: the server removes a file that no message uses.
            response = await self._connection.send_once(
                "POST", "/api/files", files={"files": (name, content)}
            )
        except ClientError as refusal:
            raise _naming(name, refusal) from refusal
        return self._connection.read(UploadedFilesView, response).items[0]


def _check_readable(file: GivenFile) -> None:
    """Finds a wrong path before the files ahead of it are sent."""
    if isinstance(file, str | PathLike):
        with Path(file).open("rb"):
            pass


def _naming(name: str, refusal: ClientError) -> ClientError:
    if name in refusal.message:
        return refusal
    return ClientError(
        f"{name}: {refusal.message}",
        code=refusal.code,
        status=refusal.status,
        param=refusal.param,
        details=refusal.details,
        request_id=refusal.request_id,
    )


def _path(file_id: str) -> str:
    return f"/api/files/{file_id}"


def _form(*, preview: bool) -> dict[str, str]:
    return {"preview": "true"} if preview else {}
