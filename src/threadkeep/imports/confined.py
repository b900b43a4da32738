"""Reads exports in a process of its own, which is killed when its import is stopped or takes too much."""

import asyncio
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from threadkeep.confined.process import end_process, start_confined
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import InvalidRequest, StorageRefused, UnsupportedImport
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.import_run import ImportProblem
from threadkeep.domain.message import Message
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import KeptTurn
from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.exports.format import decode as decode_line
from threadkeep.fair_slots import FairSlots
from threadkeep.imports.frames import (
    GO_ON,
    HEADER,
    REPLY,
    Convert,
    Count,
    Next,
    Opening,
    Reply,
    Request,
    Unpack,
    UnpackFile,
    UnpackPayloads,
    decode_reply,
    encode,
)
from threadkeep.imports.reading import OPERATOR_LIMITS, OnProgress
from threadkeep.imports.source import (
    ForeignContent,
    ImportItem,
    ImportLimits,
    OwnItem,
    SourceStopped,
)
from threadkeep.imports.threadkeep import PendingConversation

PROCESS = "threadkeep.imports.process"
MOST_SILENT_S = 300.0
"""However busy this machine is, a process that works says so more often."""
SLICE_S = 0.25
CONVERSATION_CPU_S = 30.0
LEAST_CPU_S = 300
CPU_S_PER_MB = 4
"""Of an upload, for all that is in it."""
OPERATORS_CPU_S = 10**6
LEAST_MEMORY_BYTES = 512 * 1024**2
MEMORY_TIMES = 32
"""How many times its size a conversation may take: JSON as Python's values, then as ours, then as lines."""
MOST_FRAME_BYTES = 2 * 1024**3
MB = 1024 * 1024
DECODED_HERE_BYTES = 16 * 1024

Slot = Callable[[], AbstractAsyncContextManager[None]]
"""The right to have the process work."""


class ConfinedImport:
    """An export that a process reads for us; it works only while we wait for it."""

    def __init__(
        self, process: Process, name: str, folder: Path, most_bytes: int, slot: Slot, on_progress: OnProgress
    ) -> None:
        self._process = process
        self._name = name
        self._folder = folder
        self._most_bytes = most_bytes
        self._slot = slot
        self._on_progress = on_progress
        self._is_stopped = False
        self._waiting: set[asyncio.Timeout] = set()
        self.is_ours = False

    async def open(self) -> None:
        """Waits until the file is open; UnsupportedImport if it can't be."""
        reply = (await self._hear(b""))[0]
        self.is_ours = bool(reply.is_ours)

    def stop(self) -> None:
        """Ends whatever is being done, at once."""
        if self._is_stopped:
            return
        self._is_stopped = True
        for waiting in self._waiting:
            waiting.reschedule(0)

    @asynccontextmanager
    async def unless_stopped(self) -> AsyncGenerator[None]:
        """Ends the block with SourceStopped when it is stopped."""
        waiting = asyncio.timeout(0 if self._is_stopped else None)
        self._waiting.add(waiting)
        try:
            async with waiting:
                yield
        except TimeoutError as exc:
            if waiting.expired():
                raise SourceStopped from exc
            raise
        finally:
            self._waiting.discard(waiting)

    async def count(self) -> int:
        """How many conversations it has, flawed ones too."""
        return (await self._ask(Count()))[0].count or 0

    async def next(self) -> ImportItem | ImportProblem | None:
        """The next item; None after the last."""
        reply, lines = await self._ask(Next())
        if not reply.has_lines:
            return reply.flawed or reply.foreign
        found = lines.found()
        return found.whole() if isinstance(found, PendingConversation) else found

    async def unpack(self, name: str, *, most: int) -> Path | None:
        """An accompanying file; None if it is missing."""
        reply, _ = await self._ask(Unpack(name, "file", most))
        return self._folder / reply.unpacked.name if reply.unpacked else None

    async def unpack_payloads(self, *, most: int) -> None:
        """Makes the payloads of this conversation readable."""
        await self._ask(UnpackPayloads(most))

    async def unpack_file(self, number: int, *, most: int) -> ForeignContent | None:
        """A file of this conversation of another product; None if it is missing."""
        found = (await self._ask(UnpackFile(number, most)))[0].unpacked
        return ForeignContent(found.name, self._folder / str(number), found.is_text) if found else None

    async def convert(
        self, agent_id: AgentId, now: int, files: Mapping[int, UploadedFile]
    ) -> WholeConversation | ImportProblem:
        """This conversation of another product as one of ours."""
        reply, lines = await self._ask(Convert(agent_id, now, files))
        found = lines.found() if reply.has_lines else None
        if isinstance(found, PendingConversation):
            return found.whole()
        return reply.flawed or ImportProblem(self._name, "it can't be read")

    def read(self, sha256: str) -> bytes:
        """A payload of this conversation, or a large value of one that was converted."""
        return (self._folder / sha256).read_bytes()

    async def _ask(self, request: Request) -> tuple[Reply, "_Lines"]:
        return await self._hear(encode(request) + b"\n")

    async def _hear(self, said: bytes) -> tuple[Reply, "_Lines"]:
        """The answer to what we say; while it takes long, others have their turn now and then."""
        lines = _Lines()
        async with self.unless_stopped():
            while True:
                async with self._slot():
                    self._say(said)
                    reply = await self._reply(lines)
                if reply.progress is None:
                    break
                self._on_progress(*reply.progress)
                said = GO_ON
        if reply.refused is not None:
            message, reason = reply.refused.message, reply.refused.reason
            raise InvalidRequest(message) if reason is None else UnsupportedImport(reason, message)
        return reply, lines

    def _say(self, said: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(said)  # little, and it waits for it

    async def _reply(self, lines: "_Lines") -> Reply:
        assert self._process.stdout is not None
        try:
            while True:
                async with asyncio.timeout(MOST_SILENT_S):
                    header = await self._process.stdout.readexactly(HEADER.size)
                    kind, size = HEADER.unpack(header)
                    if lines.size + size > self._most_bytes:
                        raise self._unreadable("more than expected")
                    frame = await self._process.stdout.readexactly(size)
                if kind == REPLY:
                    return decode_reply(frame)
                await lines.take(frame)
        except asyncio.IncompleteReadError as exc:
            raise await self._died() from exc
        except TimeoutError as exc:
            raise self._unreadable("no answer") from exc
        except (msgspec.MsgspecError, ValueError) as exc:
            raise self._unreadable(str(exc)) from exc

    async def _died(self) -> UnsupportedImport:
        code = await self._process.wait()
        if code in {-signal.SIGXCPU, -signal.SIGKILL}:
            return UnsupportedImport("too_large", f"{self._name} takes too much time or memory to read.")
        return self._unreadable(f"the process that read it ended with {code}")

    def _unreadable(self, why: str) -> UnsupportedImport:
        return UnsupportedImport("damaged", f"{self._name} can't be read: {why}.")


class _Lines:
    """What the lines of an answer say: a conversation, or one other record."""

    def __init__(self) -> None:
        self.size = 0
        self._found: PendingConversation | OwnItem | None = None

    async def take(self, frame: bytes) -> None:
        """Reads some lines; many take a moment, during which nobody may wait."""
        self.size += len(frame)
        if len(frame) <= DECODED_HERE_BYTES:
            self._take(frame)
        else:
            await asyncio.to_thread(self._take, frame)

    def found(self) -> OwnItem | PendingConversation | None:
        """What they say."""
        return self._found

    def _take(self, frame: bytes) -> None:
        for line in frame.split(b"\n"):
            pending = self._found if isinstance(self._found, PendingConversation) else None
            match decode_line(line, pending.turn_ends if pending else {}):
                case Conversation() as conversation:
                    self._found = PendingConversation(conversation, 0)
                case Payload() | KeptTurn() | Message() | Compaction() | Feedback() as record if pending:
                    pending.add(record)
                case record if isinstance(record, OwnItem):
                    self._found = record
                case _:
                    pass


@dataclass(frozen=True, slots=True)
class UploadedExports:
    """How exports that users upload are opened, and how large they may be."""

    folder: Path
    """For what is unpacked."""
    most_bytes: int
    """Of an upload."""
    limits: ImportLimits
    slots: FairSlots
    """The rights to have a process work."""

    @asynccontextmanager
    async def open(self, user_id: UserId, name: str, file: BinaryIO) -> AsyncGenerator[ConfinedImport]:
        """An export that a user uploaded under a name; refuses anything else."""
        opening = Opening(
            name=name,
            descriptor=file.fileno(),
            folder=str(self.folder),
            limits=self.limits,
            memory_bytes=LEAST_MEMORY_BYTES + MEMORY_TIMES * self.limits.conversation_bytes,
            cpu_s=LEAST_CPU_S + CPU_S_PER_MB * os.fstat(file.fileno()).st_size // MB,
            conversation_cpu_s=CONVERSATION_CPU_S,
            slice_s=SLICE_S,
        )
        slot = partial(self.slots.slot, user_id)
        async with _started(opening, slot=slot, pass_fds=(file.fileno(),)) as source:
            yield source


def _ignore_progress(read: int, total: int) -> None:
    pass


@asynccontextmanager
async def reading_file(
    path: Path, folder: Path, on_progress: OnProgress = _ignore_progress
) -> AsyncGenerator[ConfinedImport]:
    """An export on this machine, which the operator imports; refuses anything else."""
    opening = Opening(
        name=str(path),
        path=os.path.abspath(path),  # noqa: ASYNC240, PTH100 - asks no disk
        folder=str(folder),
        limits=OPERATOR_LIMITS,
        memory_bytes=LEAST_MEMORY_BYTES + MEMORY_TIMES * OPERATOR_LIMITS.conversation_bytes,
        cpu_s=OPERATORS_CPU_S,
        conversation_cpu_s=OPERATORS_CPU_S,
        slice_s=SLICE_S,
    )
    beside = [path.parent / name for name in ("payloads", "documents")]
    async with _started(opening, reads=[path, *beside], on_progress=on_progress) as source:
        yield source


@asynccontextmanager
async def _started(
    opening: Opening,
    *,
    slot: Slot = nullcontext,
    reads: Sequence[Path] = (),
    pass_fds: Sequence[int] = (),
    on_progress: OnProgress = _ignore_progress,
) -> AsyncGenerator[ConfinedImport]:
    folder = await asyncio.to_thread(_new_folder, Path(opening.folder))
    try:
        opening = msgspec.structs.replace(opening, folder=str(folder))
        process = await start_confined(
            PROCESS, encode(opening).decode(), reads=reads, writes=[folder], stdin=PIPE, pass_fds=pass_fds
        )
        try:
            most_bytes = min(8 * opening.limits.conversation_bytes, MOST_FRAME_BYTES)
            source = ConfinedImport(process, opening.name, folder, most_bytes, slot, on_progress)
            await source.open()
            yield source
        finally:
            await end_process(process)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _new_folder(beside: Path) -> Path:
    try:
        beside.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(tempfile.mkdtemp(dir=beside.absolute()))
    except OSError as exc:
        raise StorageRefused(f"Can't write to the uploads folder: {exc.strerror}.") from exc
