"""The process that reads one export: what a stranger's file costs is limited, and its end stops it at once.

Its argument is an `Opening`. It answers requests (`frames.py`) until its input ends.
"""

import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import assert_never

import msgspec

from threadkeep.confined.limits import limit_process
from threadkeep.domain.conversation import WholeConversation
from threadkeep.domain.document import MOST_NAME_CHARACTERS
from threadkeep.domain.errors import ThreadkeepError, UnsupportedImport
from threadkeep.domain.ids import UserId
from threadkeep.domain.import_run import ImportProblem, SkipReason
from threadkeep.domain.text import one_line, storable
from threadkeep.engine.json_values import TooDeep
from threadkeep.exports.format import encode as encode_line
from threadkeep.exports.records import ConversationEnd, Record
from threadkeep.imports.checks import check_whole
from threadkeep.imports.conversion import convert_conversation, files_in, foreign_id
from threadkeep.imports.foreign import ForeignConversation, ForeignFile
from threadkeep.imports.frames import (
    FRAME_BYTES,
    HEADER,
    LINES,
    REPLY,
    Convert,
    Count,
    Next,
    Opening,
    Refusal,
    Reply,
    Request,
    Unpack,
    UnpackedFile,
    UnpackFile,
    UnpackPayloads,
    decode_request,
    encode,
)
from threadkeep.imports.reading import (
    TOO_BIG,
    TOO_SLOW,
    FileItem,
    ImportFile,
    OutOfTime,
    reading,
    reading_upload,
)
from threadkeep.imports.source import ENDING, ForeignOutline

MOST_CHARACTERS = 1_000
"""Of what is reported about an item."""
MOST_GROWTH = 4
"""A conversation is at most so many times as large as its limit when it has become ours: branches repeat."""


class _Slices:
    """Interrupts long work to ask whether it may go on, and ends what has used up its own time."""

    def __init__(self, slice_s: float, ask: Callable[[], None]) -> None:
        self._slice_s = slice_s
        self._ask = ask
        self._left: float | None = None
        self._may_interrupt = False
        signal.signal(signal.SIGPROF, self._interrupt)
        signal.setitimer(signal.ITIMER_PROF, slice_s, slice_s)

    @contextmanager
    def interrupting(self, *, allowed: bool) -> Generator[None]:
        """Whether work may be interrupted during the block: never while a frame is written."""
        before, self._may_interrupt = self._may_interrupt, allowed
        try:
            yield
        finally:
            self._may_interrupt = before

    @contextmanager
    def within(self, cpu_s: float) -> Generator[None]:
        """Raises OutOfTime once the block has used this much."""
        self._left = cpu_s
        try:
            yield
        finally:
            self._left = None

    def _interrupt(self, *_: object) -> None:
        if not self._may_interrupt:
            return
        if self._left is not None:
            self._left -= self._slice_s
            if self._left <= 0:
                self._left = None
                raise OutOfTime
        with self.interrupting(allowed=False):
            self._ask()


class _Session:
    """Answers requests about one export."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._folder = Path(opening.folder)
        self._read = (0, 0)
        self._slices = _Slices(opening.slice_s, self._ask_to_go_on)
        self._found: Iterator[FileItem | ImportProblem] = iter(())
        self._whole: WholeConversation | None = None
        self._foreign: ForeignConversation | None = None
        self._files: list[ForeignFile] = []

    def run(self) -> None:
        """Answers until nobody asks any more."""
        try:
            with ExitStack() as stack:
                source = self._open(stack)
                self._found = source.found()
                self._send(Reply(is_ours=source.is_ours))
                while line := sys.stdin.buffer.readline():
                    self._send(self._answered(source, decode_request(line)))
        except ThreadkeepError as exc:
            self._send(_refused(exc))
        except MemoryError:
            message = f"{self._opening.name} needs more memory than allowed."
            self._send(_refused(UnsupportedImport("too_large", message)))

    def _open(self, stack: ExitStack) -> ImportFile:
        it = self._opening
        with self._slices.interrupting(allowed=True):
            if it.path is not None:
                return stack.enter_context(reading(Path(it.path), self._note, self._budget))
            file = stack.enter_context(os.fdopen(it.descriptor, "rb"))
            return stack.enter_context(reading_upload(it.name, file, it.limits, self._note, self._budget))

    def _budget(self) -> AbstractContextManager[None]:
        return self._slices.within(self._opening.conversation_cpu_s)

    def _note(self, read: int, total: int) -> None:
        self._read = read, total

    def _answered(self, source: ImportFile, request: Request) -> Reply:
        with self._slices.interrupting(allowed=True):
            try:
                return self._answer(source, request)
            except ThreadkeepError as exc:
                return _refused(exc)

    def _answer(self, source: ImportFile, request: Request) -> Reply:
        match request:
            case Count():
                return Reply(count=source.count())
            case Next():
                return self._next()
            case Unpack(name, target, most):
                file = source.open(name)
                if file is None:
                    return Reply()
                with file:
                    self._write(target, source.counted(file.read(most + 1)))
                return Reply(unpacked=UnpackedFile(target, is_text=False))
            case UnpackPayloads(most):
                assert self._whole is not None
                for sha256, payload in {it.sha256: it for it in self._whole.payloads}.items():
                    self._write(sha256, source.read_payload(payload, most=most))
                return Reply()
            case UnpackFile(number, most):
                return self._unpack_file(source, self._files[number], number, most)
            case Convert():
                return self._convert(request)
            case _ as never:
                assert_never(never)

    def _next(self) -> Reply:
        self._whole = self._foreign = None
        self._files = []
        for left in self._folder.iterdir():
            left.unlink()
        match next(self._found, None):
            case None:
                return Reply()
            case ImportProblem() as flawed:
                return _flawed(flawed.what, flawed.why, flawed.reason)
            case ForeignConversation() as foreign:
                self._foreign, self._files = foreign, list(files_in(foreign))
                name = foreign.title or f"{foreign.id!r}"
                return Reply(foreign=ForeignOutline(foreign_id(foreign), _shown(name), len(self._files)))
            case WholeConversation() as whole:
                return self._sent(whole)
            case record:
                self._send_lines([encode_line(record)])
                return Reply(has_lines=True)

    def _unpack_file(self, source: ImportFile, file: ForeignFile, number: int, most: int) -> Reply:
        """A file of another product; nothing if the export doesn't have it."""
        if file.content is not None:
            name, content = file.file_name, storable(file.content).encode()
        elif file.asset_id is None or (found := source.read_asset(file.asset_id, most=most)) is None:
            return Reply()
        else:
            name, content = file.file_name or found[0], found[1]
        self._write(str(number), content)
        return Reply(unpacked=UnpackedFile(_file_name(name), is_text=file.content is not None))

    def _convert(self, asked: Convert) -> Reply:
        foreign = self._foreign
        assert foreign is not None
        files = {self._files[number]: file for number, file in asked.files.items()}
        try:
            with self._budget():
                whole, values = convert_conversation(foreign, UserId(""), asked.agent_id, asked.now, files)
        except (OutOfTime, MemoryError, TooDeep) as exc:
            return _too_much(f"conversation {foreign.title or foreign.id!r}", exc)
        for sha256, content in values.items():
            self._write(sha256, content)
        return self._sent(whole)

    def _sent(self, whole: WholeConversation) -> Reply:
        """Checks and sends a conversation, unless it is flawed."""
        name = f"conversation {whole.conversation.title or whole.conversation.id!r}"
        limits = self._opening.limits
        most, parts = MOST_GROWTH * limits.conversation_bytes, limits.message_parts
        if parts is not None and any(len(it.parts) > parts for it in whole.messages):
            why = f"one of its messages has more than {parts:,} parts"
            return _flawed(name, why, SkipReason.TOO_LARGE)
        try:
            with self._budget():
                if whole.messages:
                    whole = check_whole(whole)
                if not self._send_lines(map(encode_line, _records(whole)), most):
                    return _flawed(name, f"it is larger than {most:,} bytes", SkipReason.TOO_LARGE)
        except (OutOfTime, MemoryError) as exc:
            return _too_much(name, exc)
        except ThreadkeepError as exc:
            return _flawed(name, exc.message, SkipReason.UNREADABLE)
        self._whole = whole
        return Reply(has_lines=True)

    def _write(self, name: str, content: bytes) -> None:
        (self._folder / name).write_bytes(content)

    def _send_lines(self, lines: Iterable[bytes], most: int | None = None) -> bool:
        """Sends lines; False if they were more than `most` bytes: the reader then has some of them."""
        waiting: list[bytes] = []
        size = sent = 0
        for line in lines:
            if size and size + len(line) > FRAME_BYTES:
                self._write_frame(LINES, b"\n".join(waiting))
                waiting, size = [], 0
            waiting.append(line)
            size += len(line)
            sent += len(line)
            if most is not None and sent > most:
                return False
        self._write_frame(LINES, b"\n".join(waiting))
        return True

    def _send(self, reply: Reply) -> None:
        self._write_frame(REPLY, encode(reply))

    def _write_frame(self, kind: bytes, content: bytes) -> None:
        with self._slices.interrupting(allowed=False):
            out = sys.stdout.buffer
            out.write(HEADER.pack(kind, len(content)))
            out.write(content)
            out.flush()

    def _ask_to_go_on(self) -> None:
        self._send(Reply(progress=self._read))
        if not sys.stdin.buffer.readline():
            sys.exit()  # nobody waits any more


def _records(whole: WholeConversation) -> Iterator[Record]:
    yield whole.conversation
    yield from whole.payloads
    yield from whole.turns
    yield from whole.messages
    yield from whole.compactions
    yield from whole.feedback
    yield ConversationEnd(whole.conversation.id)


def _refused(exc: ThreadkeepError) -> Reply:
    reason = exc.reason if isinstance(exc, UnsupportedImport) else None
    return Reply(refused=Refusal(_shown(exc.message), reason))


def _flawed(what: str, why: str, reason: SkipReason) -> Reply:
    return Reply(flawed=ImportProblem(_shown(what), _shown(why), reason))


def _too_much(what: str, exc: Exception) -> Reply:
    if isinstance(exc, TooDeep):
        return _flawed(what, "a value in it is nested too deeply", SkipReason.UNREADABLE)
    return _flawed(what, TOO_SLOW if isinstance(exc, OutOfTime) else TOO_BIG, SkipReason.TOO_LARGE)


def _shown(text: str) -> str:
    """A text for the report, which a stranger's file may have made long."""
    text = storable(text[: MOST_CHARACTERS + 1])
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def _file_name(foreign_name: str) -> str:
    """A name without folders, within the length limit."""
    name = one_line(storable(PurePosixPath(foreign_name.replace("\\", "/")).name))
    return name[-(MOST_NAME_CHARACTERS - len(ENDING)) :] or "file"


def main(opening: Opening) -> None:
    """Reads one export within its limits."""
    limit_process(memory_bytes=opening.memory_bytes, cpu_s=opening.cpu_s, written_bytes=opening.memory_bytes)
    _Session(opening).run()


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Opening))
