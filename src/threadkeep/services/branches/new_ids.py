"""A conversation under other ids: a fork, or an import of what somebody else already has; pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from threadkeep.domain.conversation import WholeConversation
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import CompactionId, ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    OutputPart,
    Part,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCall
from threadkeep.domain.turn import KeptTurn

Rename = Callable[[str], str]


def with_new_ids(whole: WholeConversation, rename: Rename, documents: Mapping[str, str]) -> WholeConversation:
    """The same conversation under other ids; `documents` maps those of the documents that it cites."""
    return _NewIds(ConversationId(rename(whole.conversation.id)), rename, documents).in_all_of(whole)


@dataclass(frozen=True, slots=True)
class _NewIds:
    """Puts the new ids into each kind of value of one conversation."""

    conversation_id: ConversationId
    rename: Rename
    documents: Mapping[str, str]

    def in_all_of(self, whole: WholeConversation) -> WholeConversation:
        own, rename = self.conversation_id, self.rename
        tip_id = whole.conversation.tip_id
        return WholeConversation(
            replace(whole.conversation, id=own, tip_id=MessageId(rename(tip_id)) if tip_id else None),
            [self._in_turn(it) for it in whole.turns],
            [self._in_message(it) for it in whole.messages],
            [replace(it, id=CompactionId(rename(it.id)), conversation_id=own) for it in whole.compactions],
            [replace(it, id=PayloadId(rename(it.id)), conversation_id=own) for it in whole.payloads],
            [self._in_feedback(it) for it in whole.feedback],
        )

    def _in_turn(self, kept: KeptTurn) -> KeptTurn:
        old = kept.turn
        turn = replace(
            old,
            id=TurnId(self.rename(old.id)),
            conversation_id=self.conversation_id,
            user_message_id=MessageId(self.rename(old.user_message_id)),
            assistant_message_id=MessageId(self.rename(old.assistant_message_id)),
        )
        return replace(kept, turn=turn)

    def _in_message(self, old: Message) -> Message:
        return replace(
            old,
            id=MessageId(self.rename(old.id)),
            conversation_id=self.conversation_id,
            turn_id=TurnId(self.rename(old.turn_id)) if old.turn_id else None,
            parent_id=MessageId(self.rename(old.parent_id)) if old.parent_id else None,
            parts=tuple(map(self._in_part, old.parts)),
        )

    def _in_feedback(self, old: Feedback) -> Feedback:
        """A rating; not shared, since the agent may have another owner here."""
        message_id = MessageId(self.rename(old.message_id))
        return replace(old, message_id=message_id, conversation_id=self.conversation_id, share_text=False)

    def _in_part(self, old: Part) -> Part:
        match old:
            case ToolCallPart():
                return replace(old, call=self._in_call(old.call))
            case FilePart(is_elsewhere=False):
                return replace(old, file_id=PayloadId(self.rename(old.file_id)), refs=self._in_refs(old.refs))
            case RetrievalPart():
                return replace(old, hits=tuple(map(self._in_hit, old.hits)))
            case QuestionPart():
                return replace(old, request_id=self.rename(old.request_id))
            case UserTextPart():
                return replace(old, message_id=self.rename(old.message_id))
            case TextPart() | ThoughtPart() | StepPart() | NoticePart() | CardPart() | FilePart():
                return old
            case OutputPart():
                return old

    def _in_call(self, old: ToolCall) -> ToolCall:
        return replace(
            old,
            turn_id=TurnId(self.rename(old.turn_id)),
            message_id=MessageId(self.rename(old.message_id)),
            artifact_ids=tuple(PayloadId(self.rename(it)) for it in old.artifact_ids),
            refs=self._in_refs(old.refs),
        )

    def _in_hit(self, old: RetrievalHit) -> RetrievalHit:
        return replace(old, document_id=self.documents.get(old.document_id or "", old.document_id))

    def _in_refs(self, old: Mapping[str, PayloadId]) -> dict[str, PayloadId]:
        return {name: PayloadId(self.rename(ref)) for name, ref in old.items()}
