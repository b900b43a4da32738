"""A backup as one file: a tar archive of regular files, and at its end a list of their hashes.

`back_up` verifies each archive with the code that restores it.
"""

import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from threadkeep.domain.data_folder import DATABASE, is_backed_up, kind_of
from threadkeep.domain.errors import StorageRefused

_LIST = "threadkeep.files"
"""The last member: the hash of each of the others. Backups of older versions have none."""
_FORMAT = "Threadkeep backup with a list of its files"
_PIECE_BYTES = 1024 * 1024
_TRIES = 3
_ENCODING, _ERRORS = "utf-8", "surrogateescape"


class UnreadableFile(Exception):
    """A file that can't be copied, and why."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is not in a backup or was not restored, and why."""

    name: str
    why: str


class _Reads(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Source:
    """A file that is hashed while it is copied. Keeps its own errors apart from the target's."""

    def __init__(self, file: _Reads) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes: as many as asked for."""
        try:
            piece = self._file.read(size)
        except OSError as exc:
            raise UnreadableFile(exc.strerror or str(exc)) from exc
        if len(piece) < size:
            raise UnreadableFile("it became shorter while it was copied")
        self._digest.update(piece)
        return piece

    @property
    def sha256(self) -> str:
        """The hash of what was read."""
        return self._digest.hexdigest()


class ArchiveWriter:
    """Adds files one after the other."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._archive = tarfile.open(  # noqa: SIM115 - `finish` closes it
            fileobj=raw,
            mode="w",
            format=tarfile.PAX_FORMAT,
            encoding=_ENCODING,
            pax_headers={"comment": _FORMAT},
        )
        self._hashes: dict[str, str] = {}

    def __contains__(self, path: PurePosixPath) -> bool:
        return str(path) in self._hashes

    def add(self, path: PurePosixPath, open_file: Callable[[], int]) -> None:
        """Copies a file as it is now, whatever else has a link to it; raises UnreadableFile if that fails."""
        for tries_left in reversed(range(_TRIES)):
            try:
                with os.fdopen(open_file(), "rb") as file:
                    self._add(path, file)
                return
            except UnreadableFile:
                if not tries_left:
                    raise

    def _add(self, path: PurePosixPath, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("it isn't a regular file")
        member = tarfile.TarInfo(str(path))
        member.size, member.mtime, member.mode = status.st_size, int(status.st_mtime), status.st_mode & 0o700
        source, before = _Source(file), self._archive.offset
        try:
            self._archive.addfile(member, source)
        except UnreadableFile:
            # The next file takes its place.
            self._raw.seek(before)
            self._raw.truncate()
            self._archive.offset = before
            raise
        self._hashes[str(path)] = source.sha256

    def finish(self) -> None:
        """Adds the list; everything is on the disk when this returns."""
        content = _encode_list(self._hashes)
        member = tarfile.TarInfo(_LIST)
        member.size, member.mode = len(content), 0o600
        self._archive.addfile(member, BytesIO(content))
        self._archive.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())


Take = Callable[[PurePosixPath, int, Iterator[bytes]], None]
"""Gets each file of a backup: its path, its mode and its content in pieces."""


def read_archive(file: Path, take: Take | None = None) -> list[LeftOut]:
    """Passes on the files of a backup and checks that all are there and intact; returns those left out."""
    left_out: list[LeftOut] = []
    hashes: dict[str, str] = {}
    listed: dict[str, str] | None = None
    with tarfile.open(file, encoding=_ENCODING) as archive:
        for member in archive:
            path = _checked_path(member)
            if member.name == _LIST:
                listed = _decode_list(b"".join(_pieces(archive, member)))
            elif is_backed_up(path):
                digest = hashlib.sha256()
                pieces = _passed_through(digest.update, _pieces(archive, member))
                if take is not None:
                    take(path, member.mode, pieces)
                for _ in pieces:  # those that nobody took
                    pass
                hashes[str(path)] = digest.hexdigest()
            elif kind_of(path) is None:
                left_out.append(LeftOut(member.name, "Threadkeep creates no such file"))
        has_list = archive.pax_headers.get("comment") == _FORMAT
    if DATABASE not in hashes:
        raise StorageRefused(f"{file} isn't a Threadkeep backup.")
    if has_list:
        _compare(file, hashes, listed)
    return left_out


def _checked_path(member: tarfile.TarInfo) -> PurePosixPath:
    """A path in the data folder. A hard link is another name of a file in the archive: nothing outside it."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isreg() or member.islnk()):
        raise StorageRefused(f"The backup contains {member.name!r}, which isn't part of a Threadkeep backup.")
    return path


def _pieces(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    try:
        content = archive.extractfile(member)
    except KeyError:
        content = None
    if content is None:
        raise StorageRefused(f"The backup is damaged: {member.name!r} has no content.")
    with content:
        while piece := content.read(_PIECE_BYTES):
            yield piece


def _passed_through(look: Callable[[bytes], None], pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        look(piece)
        yield piece


def _compare(file: Path, hashes: Mapping[str, str], listed: Mapping[str, str] | None) -> None:
    """Refuses a backup whose end is missing, or whose files are not those that were written."""
    if listed is None:
        raise StorageRefused(f"The backup {file} is incomplete: its end is missing.")
    for name in sorted(listed.keys() | hashes.keys()):
        if listed.get(name) != hashes.get(name):
            raise StorageRefused(f"The backup {file} is damaged: {name!r} is not what was written.")


# As `sha256sum --zero` writes and checks it: names may contain anything but a NUL.
def _encode_list(hashes: Mapping[str, str]) -> bytes:
    return "".join(f"{sha256}  {name}\0" for name, sha256 in hashes.items()).encode(_ENCODING, _ERRORS)


def _decode_list(content: bytes) -> dict[str, str]:
    lines = content.decode(_ENCODING, _ERRORS).split("\0")[:-1]
    return {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}
