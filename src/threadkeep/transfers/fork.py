"""Copies a conversation up to one of its messages; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import MOST_TITLE_CHARACTERS, Conversation
from threadkeep.domain.ids import PayloadId, new_uuid
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart, ToolCallPart
from threadkeep.domain.payload import Payload
from threadkeep.ports.exchange.records import KeptTurn, WholeConversation
from threadkeep.transfers.imported import Rename, with_new_ids


@dataclass(frozen=True, slots=True)
class Forked:
    """The content of a fork: the messages of one branch, oldest first, and what belongs to them."""

    messages: Sequence[Message]
    turns: Sequence[KeptTurn]
    compactions: Sequence[Compaction]
    payloads: Sequence[Payload]


def fork(conversation: Conversation, forked: Forked, now: int) -> WholeConversation:
    """A separate conversation with its own ids and numbers."""
    messages = _numbered(forked.messages)
    numbers = {old.seq: new.seq for old, new in zip(forked.messages, messages, strict=True)}
    compactions = _renumbered(forked.compactions, numbers)
    ids = {message.id for message in messages}
    turns = [it for it in forked.turns if {it.turn.user_message_id, it.turn.assistant_message_id} <= ids]
    turn_ids = {it.turn.id for it in turns}
    copy = replace(
        Conversation.start(conversation.user_id, conversation.agent_id, now, metadata=conversation.metadata),
        id=conversation.id,  # until it gets its own below
        title=_next_title(conversation.title),
        title_source=conversation.title_source,
        last_seq=len(messages),
        message_count=len(messages),
        archived_to_seq=max((it.to_seq for it in compactions), default=0),
        last_message_at=messages[-1].created_at,
        tip_id=messages[-1].id,
    )
    kept = [it if it.turn_id in turn_ids else replace(it, turn_id=None) for it in messages]
    # A run reported by another engine belongs to the original.
    turns = [replace(it, run_id=None) for it in turns]
    return with_new_ids(WholeConversation(copy, turns, kept, compactions, forked.payloads), _renaming(), {})


def _next_title(title: str | None) -> str | None:
    """The title of a copy, so that lists tell both apart: `Ferry`, `Ferry (2)`, `Ferry (3)`."""
    if not title:
        return title
    name, _, end = title.rpartition(" (")
    number = end.removesuffix(")")
    is_numbered = bool(name) and end.endswith(")") and number.isdecimal() and len(number) < 4
    suffix = f" ({int(number) + 1})" if is_numbered else " (2)"
    return (name if is_numbered else title)[: MOST_TITLE_CHARACTERS - len(suffix)].rstrip() + suffix


def payload_ids(messages: Iterable[Message]) -> set[PayloadId]:
    """The values and files that messages refer to."""
    found: set[PayloadId] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                found.update(part.call.refs.values(), part.call.artifact_ids)
            elif isinstance(part, FilePart) and not part.is_elsewhere:
                found.update((part.file_id, *part.refs.values()))
    return found


def _numbered(messages: Sequence[Message]) -> list[Message]:
    parents = (None, *(message.id for message in messages))
    return [
        replace(message, seq=seq, parent_id=parent_id, on_path=True)
        for seq, (message, parent_id) in enumerate(zip(messages, parents, strict=False), 1)
    ]


def _renumbered(compactions: Sequence[Compaction], numbers: dict[int, int]) -> list[Compaction]:
    """The compactions whose last messages are copied, oldest first; each begins where the one before ends."""
    found: list[Compaction] = []
    for it in sorted(compactions, key=lambda compaction: compaction.to_seq):
        if it.to_seq in numbers:
            from_seq = found[-1].to_seq + 1 if found else 1
            found.append(replace(it, from_seq=from_seq, to_seq=numbers[it.to_seq]))
    return found


def _renaming() -> Rename:
    names: dict[str, str] = {}

    def rename(id_: str) -> str:
        return names.setdefault(id_, new_uuid())

    return rename
