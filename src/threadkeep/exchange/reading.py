"""Opens an import: an export of ours, of ChatGPT or of Claude; a ZIP file, a folder or a file."""

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import msgspec

from threadkeep.domain.errors import InvalidRequest
from threadkeep.exchange import chatgpt, claude, threadkeep
from threadkeep.exchange.format import HEADER
from threadkeep.exchange.items import Item, items
from threadkeep.exchange.writing import LINES
from threadkeep.ports.exchange import Flawed, ForeignConversation, ImportItem

MOST_CONVERSATION_BYTES = 256 * 1024 * 1024
# Newer exports of ChatGPT have several.
_CONVERSATIONS = re.compile(r"(.*/)?conversations(-\d+)?\.json")

# The id that a file's name begins with: ChatGPT's in two forms, Claude's a UUID.
_ASSET = re.compile(r"file[-_][A-Za-z0-9]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError)

# The only methods that exports use; errors of others depend on how Python was built.
_READ = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

OnProgress = Callable[[int, int], None]
"""Receives how many bytes have been read, and of how many."""


class ImportFile:
    """A file to import."""

    def __init__(self, files: "_Files", on_progress: OnProgress) -> None:
        self._files = files
        self._on_progress = on_progress
        names = sorted(files.names)
        self._conversations = [name for name in names if _CONVERSATIONS.fullmatch(name)]
        self._lines = next((name for name in names if PurePosixPath(name).name == LINES), None)
        # By id, wherever in the archive they are: its paths are never used on our disk.
        self._assets = {
            match[0]: name for name in reversed(names) if (match := _ASSET.match(PurePosixPath(name).name))
        }
        if self._lines is None and not self._conversations:
            raise InvalidRequest(
                f"{files.path} contains neither {LINES} (Threadkeep export) nor conversations.json "
                "(ChatGPT or Claude export)."
            )

    @property
    def is_ours(self) -> bool:
        """Whether it is an export of Threadkeep."""
        return self._lines is not None

    def found(self) -> Iterator[ImportItem | Flawed]:
        """Everything in it, in order."""
        names = [self._lines] if self._lines is not None else self._conversations
        total = sum(self._files.size(name) for name in names)
        before, is_empty = 0, True
        for name in names:
            with self._files.open(name) as file:
                counted = _Counted(
                    file, lambda count, before=before: self._on_progress(before + count, total)
                )
                reader = cast("BinaryIO", counted)
                if name == self._lines:
                    yield from threadkeep.read(reader, most=MOST_CONVERSATION_BYTES)
                else:
                    for it in _foreign(reader):
                        is_empty = False
                        yield it
            before += self._files.size(name)
        if is_empty and not self.is_ours:
            raise InvalidRequest(f"No conversations found in {self._files.path}.")

    def open(self, name: str) -> BinaryIO | None:
        """A file beside the lines; None if it is missing."""
        folder = PurePosixPath(self._lines or "").parent
        whole = str(folder / name)
        return self._files.open(whole) if whole in self._files.names else None

    def read_asset(self, asset_id: str, *, most: int) -> tuple[str, bytes] | None:
        """A file that another product refers to by id, and its name: `file-XXXX-cat.png` is `cat.png`."""
        if (found := self._assets.get(asset_id)) is None:
            return None
        name = PurePosixPath(found).name
        name = name.removeprefix(asset_id).removeprefix("-") or name
        try:
            with self._files.open(found) as file:
                content = file.read(most + 1)  # whatever size the archive declares
        except _BROKEN as exc:
            raise InvalidRequest(f"{name} is damaged: {exc}.") from exc
        if len(content) > most:
            raise InvalidRequest(f"{name} is larger than {most:,} bytes.")
        return name, content


@contextmanager
def reading(path: Path, on_progress: OnProgress = lambda count, total: None) -> Generator[ImportFile]:
    """An export to read; refuses anything else."""
    try:
        with _files(path) as files:
            yield ImportFile(files, on_progress)
    except (zipfile.BadZipFile, zlib.error) as exc:
        raise InvalidRequest(f"{path} is a damaged or incomplete ZIP file: {exc}.") from exc
    except (OSError, EOFError, NotImplementedError) as exc:
        raise InvalidRequest(f"Can't read {path}: {exc}.") from exc


class _Files:
    """Files by name in an archive or a folder."""

    def __init__(self, path: Path, names: dict[str, int], open_: Callable[[str], BinaryIO]) -> None:
        self.path = path
        self.names = names
        self.open = open_

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return self.names[name]


@contextmanager
def _files(path: Path) -> Generator[_Files]:
    if path.is_dir():
        files = (it for it in path.rglob("*") if it.is_file() and not it.is_symlink())
        names = {it.relative_to(path).as_posix(): it.stat().st_size for it in files}
        yield _Files(path, names, lambda name: (path / name).open("rb"))
        return
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PK"):
        with _archive(path) as archive:
            if any(it.flag_bits & 1 for it in archive.infolist()):
                raise InvalidRequest(f"{path} is password-protected; unpack it first.")
            if any(it.compress_type not in _READ for it in archive.infolist()):
                raise InvalidRequest(f"{path} uses an unsupported compression method; unpack it first.")
            names = {it.filename: it.file_size for it in archive.infolist() if not it.is_dir()}
            yield _Files(path, names, lambda name: cast("BinaryIO", archive.open(name)))
    elif head.startswith((b"[", b"{")):
        # A single file, named for what it is; the files that an export of ours refers to are beside it.
        name = LINES if HEADER.encode() in head.partition(b"\n")[0] else "conversations.json"
        beside = path.parent if name == LINES else None
        yield _plain(path, name, beside)
    else:
        raise InvalidRequest(
            f"{path} isn't an export of Threadkeep, ChatGPT or Claude: it is neither ZIP nor JSON."
        )


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except UnicodeDecodeError as exc:  # a name marked as UTF-8
        raise zipfile.BadZipFile("it contains an invalid file name") from exc
    if not all(archive.namelist()):
        archive.close()
        raise zipfile.BadZipFile("it contains a file without a name")
    return archive


def _plain(path: Path, name: str, beside: Path | None) -> _Files:
    names = {name: path.stat().st_size}
    for folder in ("payloads", "documents") if beside else ():
        found = (it for it in (beside or path).joinpath(folder).rglob("*") if it.is_file())
        names |= {it.relative_to(beside or path).as_posix(): it.stat().st_size for it in found}
    return _Files(path, names, lambda it: (path if it == name else path.parent / it).open("rb"))


class _Counted:
    """A file that reports how far it has been read."""

    def __init__(self, file: BinaryIO, on_progress: Callable[[int], None]) -> None:
        self._file = file
        self._on_progress = on_progress
        self._count = 0

    def read(self, size: int) -> bytes:
        return self._count_read(self._file.read(size))

    def readline(self, size: int) -> bytes:
        return self._count_read(self._file.readline(size))

    def _count_read(self, part: bytes) -> bytes:
        self._count += len(part)
        self._on_progress(self._count)
        return part


def _foreign(file: BinaryIO) -> Iterator[ForeignConversation | Flawed]:
    known: set[str] = set()
    for item in items(file, most=MOST_CONVERSATION_BYTES):
        for found in _conversations(item):
            if isinstance(found, ForeignConversation):
                if found.id in known:
                    yield Flawed(
                        _name(item, found.title), f"another item in this file has the same id {found.id!r}"
                    )
                    continue
                known.add(found.id)
            yield found


def _conversations(item: Item) -> Iterator[ForeignConversation | Flawed]:
    """One element as conversations: itself and its branches, or why it isn't one."""
    if item.problem is not None:
        yield Flawed(_name(item), item.problem)
        return
    title: object = None
    try:
        value: Any = json.loads(item.content)
        title = value.get("title") or value.get("name")
        if "mapping" in value:
            yield from list(chatgpt.read(value))
        elif "chat_messages" in value:
            yield from list(claude.read(value))
        else:
            yield Flawed(
                _name(item, title), "it has neither `mapping` (ChatGPT) nor `chat_messages` (Claude)"
            )
    except (ValueError, AttributeError, RecursionError, msgspec.MsgspecError) as exc:
        yield Flawed(_name(item, title), str(exc))


def _name(item: Item, title: object = None) -> str:
    shown = f"{title!r} " if isinstance(title, str) and title else ""
    return f"conversation {item.number} {shown}(at byte {item.offset:,})"
