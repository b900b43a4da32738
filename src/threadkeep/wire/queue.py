"""Views of queued messages."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.queued import QueuedMessage
from threadkeep.wire.parts import FilePartView, file_part_view
from threadkeep.wire.view import CreatedAt, Id, View, rfc3339


class QueuedMessageView(View, frozen=True, kw_only=True):
    """A queued message. It is sent when the turn before it has completed."""

    message_id: Annotated[Id, Meta(description="The message keeps this id when it is sent.")]
    content: Annotated[str, Meta(description="The message's text, empty if it has only files.")]
    files: Annotated[Sequence[FilePartView], Meta(description="The files that are attached to it.")]
    model: Annotated[str | None, Meta(description="The model that its sender chose.")]
    created_at: CreatedAt
    held: Annotated[bool, Meta(description="On hold until the user sends it, or another message.")]
    steers: Annotated[
        Literal[True] | UnsetType,
        Meta(description="It joins the running turn before the next model call, or is sent next."),
    ] = UNSET


class QueuedView(View, frozen=True, kw_only=True):
    """A message that was queued."""

    queued: Annotated[Literal[True], Meta(description="Always true: the message waits for its turn.")] = True
    message_id: Annotated[Id, Meta(description="The queued message, for `…/queued/{message_id}`.")]


class SteeredView(View, frozen=True, kw_only=True):
    """A message added to the running turn; if the turn ends first, it is queued."""

    steered: Annotated[
        Literal[True], Meta(description="Always true: the message joins the running turn.")
    ] = True
    turn_id: Annotated[Id, Meta(description="The running turn that the message joins.")]
    message_id: Annotated[Id, Meta(description="The added message, with which the turn's part names it.")]


def queued_message_view(conversation: Conversation, message: QueuedMessage) -> QueuedMessageView:
    """A queued message of a conversation."""
    active = conversation.active_turn_id
    return QueuedMessageView(
        message_id=message.id,
        content=message.content,
        files=[file_part_view(file) for file in message.files],
        model=message.model,
        created_at=rfc3339(message.created_at),
        held=active is None,
        steers=True if active is not None and message.steers_turn_id == active else UNSET,
    )


def queued_view(message: QueuedMessage) -> QueuedView | SteeredView:
    """The response for a message that could not be sent immediately."""
    if message.steers_turn_id is None:
        return QueuedView(message_id=message.id)
    return SteeredView(turn_id=message.steers_turn_id, message_id=message.id)
