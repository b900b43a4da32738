"""Opens an import: an export of ours, of ChatGPT or of Claude; a ZIP file, a folder or a file."""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import msgspec

from threadkeep.domain.conversation import WholeConversation
from threadkeep.domain.errors import InvalidRequest, UnsupportedImport
from threadkeep.domain.import_run import ImportProblem, SkipReason
from threadkeep.domain.payload import Payload, content_hash
from threadkeep.exports.format import HEADER
from threadkeep.exports.records import payload_name
from threadkeep.exports.writing import LINES
from threadkeep.imports import chatgpt, claude, threadkeep
from threadkeep.imports.foreign import ForeignConversation
from threadkeep.imports.items import Item, items
from threadkeep.imports.source import ImportLimits, OwnItem
from threadkeep.imports.tree import TooManySteps

MOST_CONVERSATION_BYTES = 256 * 1024 * 1024
OPERATOR_LIMITS = ImportLimits(conversation_bytes=MOST_CONVERSATION_BYTES)
"""For commands on this machine, which the operator runs: only the memory for one conversation is limited."""

# A ZIP file of little but repetition unpacks to a thousand times its size, and all of it would be read.
MOST_UNPACKED_TIMES = 200
SMALL_UNPACKED_BYTES = 16 * 1024 * 1024
"""Allowed however small an upload is."""

# Newer exports of ChatGPT have several.
_CONVERSATIONS = re.compile(r"(.*/)?conversations(-\d+)?\.json")

# The id that a file's name begins with: ChatGPT's in two forms, Claude's a UUID.
_ASSET = re.compile(r"file[-_][A-Za-z0-9]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

TOO_SLOW = "it takes too long to read"
TOO_BIG = "it needs more memory than allowed"


class OutOfTime(Exception):
    """One conversation took longer than allowed."""


Budget = Callable[[], AbstractContextManager[None]]
"""Limits the time for one conversation during a block, which it ends with OutOfTime."""

FileItem = OwnItem | WholeConversation | ForeignConversation
"""An item as a file has it."""

OnProgress = Callable[[int, int], None]
"""Receives how many bytes have been read, and of how many."""

_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError)

# The only methods that exports use; errors of others depend on how Python was built.
_READ = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class ImportFile:
    """A file to import."""

    def __init__(
        self, files: "_Files", limits: ImportLimits, on_progress: OnProgress, budget: Budget
    ) -> None:
        self._files = files
        self._limits = limits
        self._on_progress = on_progress
        self._budget = budget
        self._unpacked_bytes = 0
        names = sorted(files.names)
        self._conversations = [name for name in names if _CONVERSATIONS.fullmatch(name)]
        self._lines = next((name for name in names if PurePosixPath(name).name == LINES), None)
        # By id, wherever in the archive they are: its paths are never used on our disk.
        self._assets = {
            match[0]: name for name in reversed(names) if (match := _ASSET.match(PurePosixPath(name).name))
        }
        if self._lines is None and not self._conversations:
            raise UnsupportedImport(
                "not_an_export",
                f"{files.name} contains neither {LINES} (Threadkeep export) nor conversations.json "
                "(ChatGPT or Claude export).",
            )
        unpacked, most = sum(map(files.size, self._read_names)), limits.unpacked_bytes
        if most is not None and unpacked > most:
            raise UnsupportedImport(
                "too_large",
                f"The conversations in {files.name} have {unpacked:,} bytes unpacked; {most:,} are allowed.",
            )

    @property
    def is_ours(self) -> bool:
        """Whether it is an export of Threadkeep."""
        return self._lines is not None

    @property
    def _read_names(self) -> list[str]:
        return [self._lines] if self._lines is not None else self._conversations

    def count(self) -> int:
        """How many conversations it has, flawed ones too; reads all of it, but understands none."""
        count = 0
        for name in self._read_names:
            with _naming_problems(self._files.name), self._files.open(name) as file:
                found = threadkeep.conversations(file) if self.is_ours else items(file, most=0)
                for _ in found:
                    count += 1
                    if self._limits.conversations is not None and count > self._limits.conversations:
                        raise UnsupportedImport(
                            "too_large",
                            f"{self._files.name} has more than {self._limits.conversations:,} conversations.",
                        )
        return count

    def found(self) -> Iterator[FileItem | ImportProblem]:
        """Everything in it, in order."""
        names = self._read_names
        total = sum(self._files.size(name) for name in names)
        before, is_empty = 0, True
        for name in names:
            with _naming_problems(self._files.name), self._files.open(name) as file:
                reader = _followed(
                    file, lambda count, before=before: self._on_progress(before + count, total)
                )
                if name == self._lines:
                    yield from threadkeep.read(reader, most=self._limits.conversation_bytes)
                else:
                    for it in _foreign(reader, self._limits.conversation_bytes, self._budget):
                        is_empty = False
                        yield it
            before += self._files.size(name)
        if is_empty and not self.is_ours:
            raise UnsupportedImport("empty", f"No conversations found in {self._files.name}.")

    def open(self, name: str) -> BinaryIO | None:
        """A file beside the lines; None if it is missing."""
        folder = PurePosixPath(self._lines or "").parent
        whole = str(folder / name)
        return self._files.open(whole) if whole in self._files.names else None

    def read_payload(self, payload: Payload, *, most: int) -> bytes:
        """The content of a payload."""
        file = self.open(payload_name(payload))
        if file is None:
            raise InvalidRequest(f"the export doesn't contain payload {payload.id}")
        with file:
            content = self.counted(file.read(min(payload.size, most) + 1))
        if len(content) != payload.size or content_hash(content) != payload.sha256:
            raise InvalidRequest(f"payload {payload.id} is damaged or too large")
        return content

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
        return name, self.counted(content)

    def counted(self, content: bytes) -> bytes:
        """The content of a file beside the conversations; InvalidRequest if all together are too large."""
        self._unpacked_bytes += len(content)
        allowed = self._limits.unpacked_bytes
        if allowed is not None and self._unpacked_bytes > allowed:
            raise InvalidRequest(f"The files read from the archive have more than {allowed:,} bytes.")
        return content


def _ignore_progress(count: int, total: int) -> None:
    pass


@contextmanager
def reading(
    path: Path, on_progress: OnProgress = _ignore_progress, budget: Budget = nullcontext
) -> Generator[ImportFile]:
    """An export on this machine to read; refuses anything else."""
    with _naming_problems(str(path)):
        if path.is_dir():
            yield ImportFile(_folder(path), OPERATOR_LIMITS, on_progress, budget)
            return
        with path.open("rb") as file, _files(_Opened(str(path), file, path.parent), OPERATOR_LIMITS) as files:
            yield ImportFile(files, OPERATOR_LIMITS, on_progress, budget)


@contextmanager
def reading_upload(
    name: str,
    file: BinaryIO,
    limits: ImportLimits,
    on_progress: OnProgress = _ignore_progress,
    budget: Budget = nullcontext,
) -> Generator[ImportFile]:
    """An export that a user uploaded under a name; refuses anything else."""
    if limits.unpacked_bytes is not None:
        most = SMALL_UNPACKED_BYTES + MOST_UNPACKED_TIMES * os.fstat(file.fileno()).st_size
        limits = replace(limits, unpacked_bytes=min(limits.unpacked_bytes, most))
    with _naming_problems(name), _files(_Opened(name, file), limits) as files:
        yield ImportFile(files, limits, on_progress, budget)


@contextmanager
def _naming_problems(name: str) -> Generator[None]:
    """Says what is wrong with a file that can't be read."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error) as exc:
        raise UnsupportedImport("damaged", f"{name} is a damaged or incomplete ZIP file: {exc}.") from exc
    except (OSError, EOFError, NotImplementedError) as exc:
        raise UnsupportedImport("damaged", f"Can't read {name}: {exc}.") from exc


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file that is open, and the folder beside it, if its neighbours may be read."""

    name: str
    file: BinaryIO
    beside: Path | None = None

    def again(self) -> BinaryIO:
        """The same file from its beginning, to be closed on its own."""
        again = os.fdopen(os.dup(self.file.fileno()), "rb")
        again.seek(0)
        return again


class _Files:
    """Files by name in an archive or a folder."""

    def __init__(self, name: str, names: dict[str, int], open_: Callable[[str], BinaryIO]) -> None:
        self.name = name
        self.names = names
        self.open = open_

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return self.names[name]


def _folder(path: Path) -> _Files:
    files = (it for it in path.rglob("*") if it.is_file() and not it.is_symlink())
    names = {it.relative_to(path).as_posix(): it.stat().st_size for it in files}
    return _Files(str(path), names, lambda name: (path / name).open("rb"))


@contextmanager
def _files(opened: _Opened, limits: ImportLimits) -> Generator[_Files]:
    opened.file.seek(0)
    head = opened.file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PK"):
        with _archive(opened.file, limits) as archive:
            if any(it.flag_bits & 1 for it in archive.infolist()):
                raise UnsupportedImport("encrypted", f"{opened.name} is password-protected; unpack it first.")
            if any(it.compress_type not in _READ for it in archive.infolist()):
                raise UnsupportedImport(
                    "damaged", f"{opened.name} uses an unsupported compression method; unpack it first."
                )
            names = {it.filename: it.file_size for it in archive.infolist() if not it.is_dir()}
            yield _Files(opened.name, names, lambda name: cast("BinaryIO", archive.open(name)))
    elif head.startswith((b"[", b"{")):
        # A single file, named for what it is; the files that an export of ours refers to are beside it.
        name = LINES if HEADER.encode() in head.partition(b"\n")[0] else "conversations.json"
        yield _plain(opened, name)
    else:
        raise UnsupportedImport(
            "not_an_export",
            f"{opened.name} isn't an export of Threadkeep, ChatGPT or Claude: it is neither ZIP nor JSON.",
        )


class _BoundedReads:
    """A file that reads at most `most` at once: an archive's list of files can be huge."""

    def __init__(self, file: BinaryIO, most: int | None) -> None:
        self._file = file
        self.most = most
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        if self.most is not None and size > self.most:
            raise UnsupportedImport(
                "too_large", f"The ZIP file's list of files is larger than {self.most:,} bytes."
            )
        return self._file.read(size)

    def close(self) -> None:
        """Who opened the file closes it."""


def _archive(file: BinaryIO, limits: ImportLimits) -> zipfile.ZipFile:
    bounded = _BoundedReads(file, limits.directory_bytes)
    try:
        archive = zipfile.ZipFile(cast("BinaryIO", bounded))
    except UnicodeDecodeError as exc:  # a name marked as UTF-8
        raise zipfile.BadZipFile("it contains an invalid file name") from exc
    if not all(archive.namelist()):
        archive.close()
        raise zipfile.BadZipFile("it contains a file without a name")
    bounded.most = None  # the list has been read; files have limits of their own
    return archive


def _plain(opened: _Opened, name: str) -> _Files:
    names = {name: os.fstat(opened.file.fileno()).st_size}
    beside = opened.beside if name == LINES else None
    if beside is not None:
        for folder in ("payloads", "documents"):
            found = (it for it in (beside / folder).rglob("*") if it.is_file())
            names |= {it.relative_to(beside).as_posix(): it.stat().st_size for it in found}
    return _Files(
        opened.name,
        names,
        lambda it: opened.again() if beside is None or it == name else (beside / it).open("rb"),
    )


def _followed(file: BinaryIO, on_read: Callable[[int], None]) -> BinaryIO:
    return cast("BinaryIO", _Followed(file, on_read))


class _Followed:
    """A file that reports how far it has been read."""

    def __init__(self, file: BinaryIO, on_read: Callable[[int], None]) -> None:
        self._file = file
        self._on_read = on_read
        self._count = 0

    def read(self, size: int) -> bytes:
        return self._count_read(self._file.read(size))

    def readline(self, size: int) -> bytes:
        return self._count_read(self._file.readline(size))

    def _count_read(self, part: bytes) -> bytes:
        self._count += len(part)
        self._on_read(self._count)
        return part


def _foreign(file: BinaryIO, most: int, budget: Budget) -> Iterator[ForeignConversation | ImportProblem]:
    known: set[str] = set()
    for item in items(file, most=most):
        for found in _conversations(item, budget):
            if isinstance(found, ForeignConversation):
                if found.id in known:
                    yield ImportProblem(
                        _name(item, found.title),
                        f"another item in this file has the same id {found.id!r}",
                        SkipReason.DUPLICATE,
                    )
                    continue
                known.add(found.id)
            yield found


def _conversations(item: Item, budget: Budget) -> Sequence[ForeignConversation | ImportProblem]:
    """One element as a conversation, and what of it is left out; or why it isn't one."""
    if item.problem is not None:
        return [ImportProblem(_name(item), item.problem, SkipReason.TOO_LARGE)]
    title: object = None
    try:
        with budget():
            value: Any = json.loads(item.content)
            title = value.get("title") or value.get("name")
            if "mapping" in value:
                return list(chatgpt.read(value))
            if "chat_messages" in value:
                return list(claude.read(value))
        why = "it has neither `mapping` (ChatGPT) nor `chat_messages` (Claude)"
        return [ImportProblem(_name(item, title), why, SkipReason.NOT_A_CONVERSATION)]
    except TooManySteps as exc:
        return [ImportProblem(_name(item, title), str(exc), SkipReason.TOO_LARGE)]
    except OutOfTime:
        return [ImportProblem(_name(item, title), TOO_SLOW, SkipReason.TOO_LARGE)]
    except MemoryError:
        return [ImportProblem(_name(item, title), TOO_BIG, SkipReason.TOO_LARGE)]
    except (ValueError, AttributeError, RecursionError, msgspec.MsgspecError) as exc:
        return [ImportProblem(_name(item, title), str(exc))]


def _name(item: Item, title: object = None) -> str:
    shown = f"{title!r} " if isinstance(title, str) and title else ""
    return f"conversation {item.number} {shown}(at byte {item.offset:,})"
