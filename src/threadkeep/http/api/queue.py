"""Queued messages over HTTP."""

from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.handling.routing import RequestContext
from threadkeep.wire.queue import QueuedMessageView, queued_message_view


class QueuedMessagePatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The new text."""

    content: Annotated[str, Meta(description="The message's new text; blank is fine only with files.")]


async def edit_queued_message(
    request: RequestContext, *, conversation_id: str, message_id: str, body: QueuedMessagePatch
) -> QueuedMessageView:
    """Edit a queued message before it is sent. It keeps its position."""
    message, conversation = await request.services.queue.edit(
        request.user, conversation_id, message_id, body.content
    )
    return queued_message_view(conversation, message)


async def remove_queued_message(request: RequestContext, *, conversation_id: str, message_id: str) -> None:
    """Remove a queued message before it is sent."""
    await request.services.queue.remove(request.user, conversation_id, message_id)
