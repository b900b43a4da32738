"""Reads our own exports: turns lines into records, and conversations into wholes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import msgspec

from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import InvalidRequest, ThreadkeepError
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import Message
from threadkeep.domain.payload import Payload
from threadkeep.exchange.format import NOTHING_BEFORE, Before, decode
from threadkeep.ports.exchange import (
    EXPORT_VERSION,
    ConversationEnd,
    ExportEnd,
    ExportHeader,
    Flawed,
    Found,
    KeptTurn,
    Record,
    WholeConversation,
)

MOST_LINE_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class _Pending:
    """A conversation whose end has not been read yet."""

    conversation: Conversation
    line: int
    flaw: Flawed | None = None
    turns: list[KeptTurn] = field(default_factory=list[KeptTurn])
    messages: list[Message] = field(default_factory=list[Message])
    compactions: list[Compaction] = field(default_factory=list[Compaction])
    payloads: list[Payload] = field(default_factory=list[Payload])
    before: Before = field(default_factory=Before)

    @property
    def name(self) -> str:
        return f"conversation {self.conversation.title or self.conversation.id!r} (line {self.line})"

    def whole(self) -> WholeConversation | Flawed:
        return self.flaw or WholeConversation(
            self.conversation,
            self.turns,
            _linked(self.messages, self.turns),
            self.compactions,
            self.payloads,
        )


def read(file: BinaryIO, *, most: int) -> Iterator[Found | Flawed]:
    """Everything in an export; a conversation of more than `most` bytes is flawed."""
    pending: _Pending | None = None
    size, ended = 0, False
    for number, line, problem in _lines(file):
        size = len(line) if pending is None else size + len(line)
        before = pending.before if pending else NOTHING_BEFORE
        record = _record(line, number, before) if problem is None else Flawed(f"line {number}", problem)
        if number == 1:
            _check_header(record)
        match record:
            case None | ExportHeader():
                continue
            case Flawed():
                if pending is None:
                    yield record
                else:
                    pending.flaw = pending.flaw or Flawed(pending.name, f"{record.what}: {record.why}")
            case ExportEnd():
                ended = True
            case Conversation():
                if pending is not None:
                    yield Flawed(pending.name, "it is incomplete")
                pending, size = _Pending(record, number), len(line)
            case Payload() | KeptTurn() | Message() | Compaction() | ConversationEnd():
                if pending is None:
                    yield Flawed(f"line {number}", "it belongs to no conversation")
                elif isinstance(record, ConversationEnd):
                    yield pending.whole()
                    pending = None
                else:
                    _add(pending, record)
                    if size > most and pending.flaw is None:
                        pending = _Pending(pending.conversation, pending.line)
                        pending.flaw = Flawed(pending.name, f"it is larger than {most:,} bytes")
            case _:
                yield record
    if pending is not None:
        yield Flawed(pending.name, "the file ends before it is complete")
    elif not ended:
        yield Flawed("the file", "it is incomplete: its end is missing")


def _linked(messages: Sequence[Message], turns: Sequence[KeptTurn]) -> Sequence[Message]:
    """Adds parents to messages; those of version 1 have none.

    A reply follows its question, every other message the one before it on the path.
    """
    if any(message.parent_id for message in messages):
        return messages
    questions = {kept.turn.assistant_message_id: kept.turn.user_message_id for kept in turns}
    linked: list[Message] = []
    tip_id: MessageId | None = None
    for message in messages:
        linked.append(replace(message, parent_id=questions.get(message.id, tip_id)))
        tip_id = message.id if message.on_path else tip_id
    return linked


def _add(pending: _Pending, record: Payload | KeptTurn | Message | Compaction) -> None:
    if pending.flaw is not None:
        return
    match record:
        case Payload():
            pending.payloads.append(record)
            pending.before.note(record)
        case KeptTurn():
            pending.turns.append(record)
            pending.before.note(record)
        case Message():
            pending.messages.append(record)
        case Compaction():
            pending.compactions.append(record)


def _record(line: bytes, number: int, before: Before) -> Record | Flawed | None:
    try:
        return decode(line, before)
    except ThreadkeepError as exc:
        return Flawed(f"line {number}", exc.message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        return Flawed(f"line {number}", str(exc))


def _check_header(record: Record | Flawed | None) -> None:
    if not isinstance(record, ExportHeader):
        raise InvalidRequest("The file isn't a Threadkeep export: its first line isn't an export header.")
    if record.version > EXPORT_VERSION:
        raise InvalidRequest(
            f"The export has version {record.version}, but this Threadkeep reads versions up to "
            f"{EXPORT_VERSION}. Upgrade Threadkeep first."
        )


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes, str | None]]:
    """Lines with their numbers; skips and reports one that is too long."""
    number = 0
    while line := file.readline(MOST_LINE_BYTES):
        number += 1
        if line.endswith(b"\n") or len(line) < MOST_LINE_BYTES:
            if line.strip():
                yield number, line, None
            continue
        while (rest := file.readline(MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield number, b"", f"it is larger than {MOST_LINE_BYTES:,} bytes"
