"""Shares as their owners see them, and as readers of the link see them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadkeep.domain.events import LogChunk
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.sharing.share import Share
from threadkeep.wire.parts import PartView, part_views
from threadkeep.wire.view import CreatedAt, Id, Time, View, rfc3339, time_or_none


class ShareView(View, frozen=True, kw_only=True):
    """A share of one of your conversations, without its link."""

    id: Annotated[Id, Meta(description="What to delete it with; its link can't be shown again.")]
    conversation_id: Annotated[Id, Meta(description="The conversation of which this is a snapshot.")]
    message_id: Annotated[Id, Meta(description="The last message of the snapshot.")]
    title: Annotated[str, Meta(description="The conversation's title when you shared it; may be empty.")]
    tools: Annotated[bool, Meta(description="Whether it shows what the agent did, not only what was said.")]
    message_count: Annotated[int, Meta(description="How many messages the snapshot has.")]
    created_at: CreatedAt
    expires_at: Annotated[Time | None, Meta(description="When the link stops working; null means never.")]


class NewShareView(ShareView, frozen=True, kw_only=True):
    """A new share with its link. It is shown this once: Threadkeep stores only the hash of its token."""

    url: Annotated[str, Meta(description="The page of the share, `/s/…`, relative to this server.")]
    token: Annotated[str, Meta(description="What the link ends with, for `GET /api/shares/{token}`.")]


class SharedMessageView(View, frozen=True, kw_only=True):
    """A message of a share."""

    number: Annotated[int, Meta(description="Its position in the share, from 1.")]
    role: Annotated[MessageRole, Meta(description="Who wrote it: the user or the assistant.")]
    status: Annotated[MessageStatus, Meta(description="Whether it is complete, failed or stopped.")]
    parts: Annotated[Sequence[PartView], Meta(description="What was said and, on request, what was done.")]
    created_at: CreatedAt


class SharedView(View, frozen=True, kw_only=True):
    """A shared conversation: what was said, and on request what the agent did. It names nobody."""

    title: Annotated[str, Meta(description="The conversation's title when it was shared.")]
    tools: Annotated[bool, Meta(description="Whether it shows what the agent did, not only what was said.")]
    messages: Annotated[
        Sequence[SharedMessageView], Meta(description="The messages of the snapshot, oldest first.")
    ]
    message_count: Annotated[int, Meta(description="How many it has in all.")]
    next_cursor: Annotated[str | None, Meta(description="Continues the messages; null at the end.")]
    created_at: Annotated[Time, Meta(description="When the snapshot was made, in UTC.")]
    expires_at: Annotated[Time | None, Meta(description="When the link stops working; null means never.")]


class SharedReplayView(View, frozen=True, kw_only=True):
    """What happened for a reply of a share."""

    events: Annotated[
        Sequence[Mapping[str, Any]], Meta(description="As a turn's stream has them, in their order.")
    ]


def share_view(share: Share) -> ShareView:
    """A share as its owner sees it."""
    return ShareView(
        id=share.id,
        conversation_id=share.conversation_id,
        message_id=share.message_id,
        title=share.title,
        tools=share.with_tools,
        message_count=share.message_count,
        created_at=rfc3339(share.created_at),
        expires_at=time_or_none(share.expires_at),
    )


def shared_view(share: Share, messages: Sequence[Message], next_cursor: str | None) -> SharedView:
    """Some messages of a share, for readers of the link."""
    return SharedView(
        title=share.title,
        tools=share.with_tools,
        messages=[_message_view(share.position(message.seq), message) for message in messages],
        message_count=share.message_count,
        next_cursor=next_cursor,
        created_at=rfc3339(share.created_at),
        expires_at=time_or_none(share.expires_at),
    )


def shared_replay_view(chunks: Sequence[LogChunk]) -> SharedReplayView:
    """The events of a shared reply, for readers of the link."""
    lines = (line for chunk in chunks for line in chunk.events.split("\n"))
    return SharedReplayView(events=[msgspec.json.decode(line) for line in lines])


def _message_view(number: int, message: Message) -> SharedMessageView:
    return SharedMessageView(
        number=number,
        role=message.role,
        status=message.status,
        parts=part_views(message.parts),
        created_at=rfc3339(message.created_at),
    )
