"""A compaction: a summary that replaces a run of older messages in the context; they stay archived."""

from collections.abc import Sequence
from dataclasses import dataclass

from threadkeep.domain.errors import InvalidRequest, TooFewMessages
from threadkeep.domain.ids import CompactionId, ConversationId
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.text import is_blank

KEPT_BY_DEFAULT = 10


@dataclass(frozen=True, slots=True)
class Compaction:
    """The summary of messages `from_seq` to `to_seq`; undoing it brings them back into the context."""

    id: CompactionId
    conversation_id: ConversationId
    from_seq: int
    to_seq: int
    summary: str
    archived_count: int
    tokens_before: int
    tokens_after: int
    created_at: int

    def __post_init__(self) -> None:
        if not 1 <= self.from_seq <= self.to_seq:
            raise InvalidRequest("A compaction must cover at least one message.", param="fromSeq")
        if is_blank(self.summary):
            raise InvalidRequest("A compaction needs a summary.", param="summary")


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """How far a summary in several model calls has come, and since when it must not be tried again."""

    conversation_id: ConversationId
    from_seq: int
    """The first message that it summarizes."""
    text_count: int = 0
    """How many texts of messages the summary covers."""
    texts_sha256: str = ""
    summary: str = ""
    failures: int = 0
    """How often a model took too long, since the last part that it summarized."""
    not_before: int = 0


def to_archive(messages: Sequence[Message], *, keep_last: int | None, threshold: int) -> Sequence[Message]:
    """Which of the messages, oldest first, a summary is to replace; refuses too few.

    The rest never begins with a reply: without its question it says little, and no model accepts it.
    """
    count = len(messages)
    keep_last = min(KEPT_BY_DEFAULT, count // 4) if keep_last is None else keep_last
    end = max(count - keep_last, 0)
    while 0 < end < count and messages[end].role is MessageRole.ASSISTANT:
        end -= 1
    if count < threshold or not end:
        needed = max(threshold, keep_last + 1)
        raise TooFewMessages(
            f"This conversation is too short to compact ({count} of {needed} messages).",
            details={"messages": count, "threshold": threshold, "keepLast": keep_last},
        )
    return messages[:end]
