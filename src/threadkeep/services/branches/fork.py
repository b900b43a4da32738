"""Copies a conversation up to one of its messages, page by page; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import MOST_TITLE_CHARACTERS, Conversation, WholeConversation
from threadkeep.domain.ids import MessageId, PayloadId, TurnId, new_uuid
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import FilePart, ToolCallPart
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import KeptTurn
from threadkeep.services.branches.new_ids import with_new_ids
from threadkeep.storage.branches import OutlinedMessage


class Fork:
    """A separate conversation with its own ids and numbers."""

    def __init__(self, source: Conversation, path: Sequence[OutlinedMessage], now: int) -> None:
        self._numbers = {it.id: seq for seq, it in enumerate(path, 1)}
        self._parents = dict(zip(self._numbers, (None, *self._numbers), strict=False))
        self._new_seqs = {it.seq: seq for seq, it in enumerate(path, 1)}
        self._names: dict[str, str] = {}
        self._kept_turns: set[TurnId] = set()
        self._kept_payloads: set[PayloadId] = set()
        copy = replace(
            Conversation.start(source.user_id, source.agent_id, now, metadata=source.metadata),
            id=source.id,  # until it gets its own below
            title=_next_title(source.title),
            title_source=source.title_source,
            last_seq=len(path),
            message_count=len(path),
            tip_id=path[-1].id,
        )
        self._copy = copy
        self.conversation = self._renamed(WholeConversation(copy, (), ())).conversation

    def cover(self, last: Message, compactions: Sequence[Compaction]) -> Sequence[Compaction]:
        """Takes the time of the last message, and the compactions that are copied; returns these."""
        covered = _renumbered(compactions, self._new_seqs)
        archived_to_seq = max((it.to_seq for it in covered), default=0)
        self.conversation = replace(
            self.conversation, archived_to_seq=archived_to_seq, last_message_at=last.created_at
        )
        return self._renamed(WholeConversation(self._copy, (), (), covered)).compactions

    def includes(self, message_id: MessageId) -> bool:
        """Whether a message is copied."""
        return message_id in self._numbers

    def copies_of(self, messages: Sequence[Message]) -> Sequence[tuple[MessageId, MessageId]]:
        """Replies that are copied, each with the id of its copy."""
        replies = (it.id for it in messages if it.role is MessageRole.ASSISTANT)
        return [(it, MessageId(self._names[it])) for it in replies if it in self._names]

    def page(
        self, messages: Sequence[Message], turns: Sequence[KeptTurn], payloads: Sequence[Payload]
    ) -> WholeConversation:
        """Copies of messages, of their turns and of what they refer to."""
        new_turns = [self._kept(it) for it in turns if self._is_whole(it) and self._is_new(it)]
        self._kept_turns |= {it.turn.id for it in new_turns}
        new_payloads = [it for it in payloads if it.id not in self._kept_payloads]
        self._kept_payloads |= {it.id for it in new_payloads}
        numbered = [self._numbered(it) for it in messages]
        return self._renamed(WholeConversation(self._copy, new_turns, numbered, (), new_payloads))

    def _renamed(self, whole: WholeConversation) -> WholeConversation:
        return with_new_ids(whole, lambda id_: self._names.setdefault(id_, new_uuid()), {})

    def _is_whole(self, kept: KeptTurn) -> bool:
        turn = kept.turn
        return turn.user_message_id in self._numbers and turn.assistant_message_id in self._numbers

    def _is_new(self, kept: KeptTurn) -> bool:
        return kept.turn.id not in self._kept_turns

    def _kept(self, kept: KeptTurn) -> KeptTurn:
        """A turn; if another engine reported it, its run belongs to the original."""
        return replace(kept, run_id=None)

    def _numbered(self, message: Message) -> Message:
        return replace(
            message,
            seq=self._numbers[message.id],
            parent_id=self._parents[message.id],
            on_path=True,
            turn_id=message.turn_id if message.turn_id in self._kept_turns else None,
        )


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


def _renumbered(compactions: Sequence[Compaction], numbers: Mapping[int, int]) -> list[Compaction]:
    """The compactions whose last messages are copied, oldest first; each begins where the one before ends."""
    found: list[Compaction] = []
    for it in sorted(compactions, key=lambda compaction: compaction.to_seq):
        if it.to_seq in numbers:
            from_seq = found[-1].to_seq + 1 if found else 1
            found.append(replace(it, from_seq=from_seq, to_seq=numbers[it.to_seq]))
    return found
