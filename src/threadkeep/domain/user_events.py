"""Events about a user's resources, without their contents."""

from dataclasses import dataclass
from enum import StrEnum

from threadkeep.domain.ids import BriefingId, ConversationId, TurnId, UserId


class UserEventType(StrEnum):
    """What happened."""

    CONVERSATION_CREATED = "conversation_created"
    CONVERSATION_RENAMED = "conversation_renamed"
    CONVERSATION_CHANGED = "conversation_changed"
    CONVERSATION_DELETED = "conversation_deleted"
    TURN_STARTED = "turn_started"
    TURN_PAUSED = "turn_paused"
    TURN_ENDED = "turn_ended"
    APPROVAL_OPENED = "approval_opened"
    APPROVAL_ANSWERED = "approval_answered"
    BRIEFING_ARRIVED = "briefing_arrived"
    BRIEFING_CHANGED = "briefing_changed"


@dataclass(frozen=True, slots=True)
class UserEvent:
    """Something that happened, and to which resource."""

    user_id: UserId
    type: UserEventType
    conversation_id: ConversationId | None = None
    turn_id: TurnId | None = None
    request_id: str | None = None
    briefing_id: BriefingId | None = None
