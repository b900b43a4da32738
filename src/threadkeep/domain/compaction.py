"""A compaction: a summary that stands in the context for a run of older messages, which stay archived."""

from dataclasses import dataclass

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import CompactionId, ConversationId
from threadkeep.domain.text import is_blank


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
            raise InvalidRequest("A compaction covers at least one message.", param="fromSeq")
        if is_blank(self.summary):
            raise InvalidRequest("A compaction needs a summary.", param="summary")
