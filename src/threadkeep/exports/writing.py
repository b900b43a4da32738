"""Writes an export: one ZIP file, first all lines, then the files they refer to."""

import os
import shutil
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from threadkeep.domain.errors import StorageRefused
from threadkeep.exports.format import encode
from threadkeep.exports.records import Record

LINES = "data.jsonl"
README = """This is an export of Threadkeep.

data.jsonl   one JSON object a line: agents, documents, memories, conversations with their messages, briefings
payloads/    files and large values of tools, by the SHA-256 of their content
documents/   the documents of agents, by their ids

`threadkeep import FILE --user NAME` brings it into another Threadkeep.
The format is described in docs/data.md.
"""


class ExportFile:
    """An export being written."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    @contextmanager
    def lines(self) -> Generator[Callable[[Record], None]]:
        """Takes records while the block runs."""
        with self._archive.open(LINES, "w", force_zip64=True) as file:

            def put(record: Record) -> None:
                file.write(encode(record) + b"\n")

            yield put

    def add(self, name: str, content: bytes | BinaryIO) -> None:
        """Adds a file, and closes it."""
        if isinstance(content, bytes):
            self._archive.writestr(name, content)
            return
        with content as source, self._archive.open(name, "w", force_zip64=True) as file:
            shutil.copyfileobj(source, file, 1024 * 1024)


@contextmanager
def writing(path: Path) -> Generator[ExportFile]:
    """A new ZIP file, readable only by its owner; if writing fails, nothing is left."""
    with new_file(path) as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", README)
        yield ExportFile(archive)


@contextmanager
def new_file(path: Path) -> Generator[BinaryIO]:
    """A new file, readable only by its owner; if writing fails, nothing is left."""
    if path.exists():
        raise StorageRefused(f"{path} already exists. Choose another file name.")
    partial = path.with_name(f"{path.name}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        partial.replace(path)
    except OSError as exc:
        raise StorageRefused(f"Couldn't write the export; no file was left behind: {exc}.") from exc
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
