"""Reads our own exports: turns lines into records, and conversations into wholes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import InvalidRequest, ThreadkeepError, UnsupportedImport
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import TurnId
from threadkeep.domain.import_run import ImportProblem, SkipReason
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import KeptTurn
from threadkeep.exports.format import TurnEnds, decode
from threadkeep.exports.records import (
    EXPORT_VERSION,
    FIRST_EXPORT_VERSION,
    ConversationEnd,
    ExportEnd,
    ExportHeader,
    Record,
)
from threadkeep.imports.source import OwnItem

MOST_LINE_BYTES = 64 * 1024 * 1024
SHORTEST_LINE_BYTES = 16
"""No record is shorter."""
MOST_UNREADABLE_LINES = 100_000
"""A file with more isn't worth the time."""
_CONVERSATION = re.compile(rb'\s*\{"type":\s*"conversation"')


@dataclass(slots=True)
class PendingConversation:
    """A conversation whose end has not been read yet."""

    conversation: Conversation
    line: int
    flaw: ImportProblem | None = None
    turns: list[KeptTurn] = field(default_factory=list[KeptTurn])
    messages: list[Message] = field(default_factory=list[Message])
    compactions: list[Compaction] = field(default_factory=list[Compaction])
    payloads: list[Payload] = field(default_factory=list[Payload])
    feedback: list[Feedback] = field(default_factory=list[Feedback])
    turn_ends: dict[TurnId, MessageStatus] = field(default_factory=dict[TurnId, MessageStatus])

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"conversation {self.conversation.title or self.conversation.id!r} (line {self.line})"

    def whole(self) -> WholeConversation | ImportProblem:
        """The conversation, or why it isn't one."""
        return self.flaw or WholeConversation(
            self.conversation, self.turns, self.messages, self.compactions, self.payloads, self.feedback
        )

    def add(self, record: Payload | KeptTurn | Message | Compaction | Feedback) -> None:
        """Adds what the next line says, unless it is flawed anyway."""
        if self.flaw is not None:
            return
        match record:
            case Payload():
                self.payloads.append(record)
            case KeptTurn(turn=turn):
                self.turns.append(record)
                if not turn.is_active:
                    self.turn_ends[turn.id] = MessageStatus(turn.status.value)
            case Message():
                self.messages.append(record)
            case Compaction():
                self.compactions.append(record)
            case Feedback():
                self.feedback.append(record)


def conversations(file: BinaryIO) -> Iterator[bytes]:
    """The lines that conversations begin with."""
    return (line for _, line, _ in _lines(file) if _CONVERSATION.match(line))


def read(file: BinaryIO, *, most: int) -> Iterator[OwnItem | WholeConversation | ImportProblem]:
    """Everything in an export; a conversation of more than `most` bytes is flawed."""
    pending: PendingConversation | None = None
    size, unreadable, ended = 0, 0, False
    for number, line, problem in _lines(file):
        size = len(line) if pending is None else size + len(line)
        turn_ends = pending.turn_ends if pending else {}
        record = (
            _record(line, number, turn_ends)
            if problem is None
            else ImportProblem(f"line {number}", problem, SkipReason.TOO_LARGE)
        )
        if number == 1:
            _check_header(record)
        match record:
            case None | ExportHeader():
                continue
            case ImportProblem():
                unreadable = _counted(unreadable)
                if pending is None:
                    yield record
                else:
                    pending.flaw = pending.flaw or ImportProblem(
                        pending.name, f"{record.what}: {record.why}", record.reason
                    )
            case ExportEnd():
                ended = True
            case Conversation():
                if pending is not None:
                    yield ImportProblem(pending.name, "it is incomplete", SkipReason.INCOMPLETE)
                pending, size = PendingConversation(record, number), len(line)
            case Payload() | KeptTurn() | Message() | Compaction() | Feedback() | ConversationEnd():
                if pending is None:
                    unreadable = _counted(unreadable)
                    yield ImportProblem(
                        f"line {number}", "it belongs to no conversation", SkipReason.INCOMPLETE
                    )
                elif isinstance(record, ConversationEnd):
                    yield pending.whole()
                    pending = None
                else:
                    pending.add(record)
                    if size > most and pending.flaw is None:
                        pending = PendingConversation(pending.conversation, pending.line)
                        pending.flaw = ImportProblem(
                            pending.name, f"it is larger than {most:,} bytes", SkipReason.TOO_LARGE
                        )
            case _:
                yield record
    if pending is not None:
        yield ImportProblem(pending.name, "the file ends before it is complete", SkipReason.INCOMPLETE)
    elif not ended:
        yield ImportProblem("the file", "it is incomplete: its end is missing", SkipReason.INCOMPLETE)


def _record(line: bytes, number: int, turn_ends: TurnEnds) -> Record | ImportProblem | None:
    try:
        return decode(line, turn_ends)
    except ThreadkeepError as exc:
        return ImportProblem(f"line {number}", exc.message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        return ImportProblem(f"line {number}", str(exc))


def _check_header(record: Record | ImportProblem | None) -> None:
    if not isinstance(record, ExportHeader):
        raise InvalidRequest("The file isn't a Threadkeep export: its first line isn't an export header.")
    if record.version > EXPORT_VERSION:
        raise InvalidRequest(
            f"The export has version {record.version}, but this Threadkeep reads versions up to "
            f"{EXPORT_VERSION}. Upgrade Threadkeep first."
        )
    if record.version < FIRST_EXPORT_VERSION:
        raise InvalidRequest(
            f"The export has version {record.version}, which only development versions before 0.1.0 wrote. "
            "Import it with commit 8c86409, and export it again."
        )


def _counted(unreadable: int) -> int:
    """One more; refuses the file if they are too many."""
    if unreadable >= MOST_UNREADABLE_LINES:
        raise UnsupportedImport(
            "damaged", f"More than {MOST_UNREADABLE_LINES:,} lines of the export can't be read."
        )
    return unreadable + 1


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes, str | None]]:
    """Lines with their numbers; skips and reports one that is too long."""
    number, short = 0, 0
    while line := file.readline(MOST_LINE_BYTES):
        number += 1
        if len(line) < SHORTEST_LINE_BYTES:
            short = _counted(short)
        if line.endswith(b"\n") or len(line) < MOST_LINE_BYTES:
            if line.strip():
                yield number, line, None
            continue
        while (rest := file.readline(MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield number, b"", f"it is larger than {MOST_LINE_BYTES:,} bytes"
