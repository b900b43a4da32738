"""Views of changes to the user's data."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.wire.view import Id, View


class UserEventView(View, frozen=True, kw_only=True):
    """Something has changed; read it to see its current state."""

    id: Annotated[str, Meta(description="Send it as `Last-Event-ID` to resume the stream.")]
    type: Annotated[
        UserEventType | Literal["reset"],
        Meta(description="`reset`: events may be missing before this one; reload your lists."),
    ]
    conversation_id: Id | UnsetType = UNSET
    turn_id: Id | UnsetType = UNSET
    request_id: Id | UnsetType = UNSET
    briefing_id: Id | UnsetType = UNSET


def user_event_view(id_: str, event: UserEvent | None) -> UserEventView:
    """An event; None means that some are missing."""
    if event is None:
        return UserEventView(id=id_, type="reset")
    return UserEventView(
        id=id_,
        type=event.type,
        conversation_id=event.conversation_id or UNSET,
        turn_id=event.turn_id or UNSET,
        request_id=event.request_id or UNSET,
        briefing_id=event.briefing_id or UNSET,
    )
