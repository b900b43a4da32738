"""Uploads: streamed to the disk, refused as soon as they prove too large."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from threadkeep.domain.errors import InvalidRequest, PayloadTooLarge
from threadkeep.domain.text import size_text
from threadkeep.handling.bodies import body_parts

MOST_FILES = 50


@dataclass(frozen=True, slots=True)
class Upload:
    """One file, with its name on the client."""

    file_name: str
    file: BinaryIO


class UploadedFiles:
    """The files of a request. Nothing is read before `read` is called."""

    def __init__(self, request: Request, most_bytes: int, wait_s: float) -> None:
        self._request = request
        self._most_bytes = most_bytes
        self._wait_s = wait_s

    @asynccontextmanager
    async def read(self, most_bytes: int | None = None) -> AsyncGenerator[Sequence[Upload]]:
        """Receives the files; they are deleted when the block ends. `most_bytes` replaces the limit."""
        if not self._request.headers.get("content-type", "").startswith("multipart/form-data"):
            raise InvalidRequest("Send files as multipart/form-data.", param="Content-Type")
        most = self._most_bytes if most_bytes is None else most_bytes
        parts = body_parts(self._request, most, self._wait_s, _too_large(most))
        parser = MultiPartParser(self._request.headers, parts, max_files=MOST_FILES, max_fields=MOST_FILES)
        try:
            form = await parser.parse()
        except MultiPartException as exc:
            raise InvalidRequest(f"The upload couldn't be parsed: {exc.message}") from exc
        try:
            yield [_upload(item) for _, item in form.multi_items() if isinstance(item, UploadFile)]
        finally:
            await form.close()


def _too_large(most: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"The files together can have at most {size_text(most)}. Send large files one at a time.",
        details={"most": most},
    )


def _upload(item: UploadFile) -> Upload:
    # Some clients send the whole path, on Windows with backslashes.
    name = PurePosixPath((item.filename or "").replace("\\", "/")).name
    if not name:
        raise InvalidRequest("One of the files has no name.", param="fileName")
    return Upload(name, item.file)
