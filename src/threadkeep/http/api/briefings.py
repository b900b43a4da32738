"""Briefings over HTTP: send, list, read, open."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.errors import InvalidRequest
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.services.briefings import BriefingDraft
from threadkeep.wire.view import (
    CreatedAt,
    DomainAlias,
    Id,
    OwnId,
    PageView,
    Time,
    View,
    rfc3339,
    time_or_none,
)

MOST_EXTRA_BYTES = 64 * 1024


class BriefingBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The briefing to send."""

    agent_id: Annotated[str, Meta(description="The agent in whose name it is sent.")]
    user_id: Annotated[str, Meta(description="Who gets it: a user who has signed in before.")]
    title: Annotated[str, Meta(max_length=500, description="Its headline, in one line that isn't blank.")]
    summary: Annotated[
        str,
        Meta(
            max_length=20_000,
            description="What the user and the model read; the model gets 500 characters of it.",
        ),
    ]
    priority: Annotated[Priority, Meta(description="How urgent it is, from `P0` (most) to `P3`.")]
    data: Annotated[
        dict[str, Any] | None,
        Meta(description="Anything that your client draws; with `actions`, at most 64 KiB as JSON."),
    ] = None
    actions: Annotated[
        list[dict[str, Any]],
        Meta(max_length=20, description="Up to 20 buttons; with `data`, at most 64 KiB as JSON."),
    ] = []


class BriefingQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which briefings to list."""

    unread: Annotated[bool, Meta(description="`true` lists only unread ones.")] = False


class BriefingView(View, frozen=True, kw_only=True):
    """A notice from an agent. `messageId` is its card in the conversation, if there is one."""

    id: OwnId
    agent_id: Annotated[Id, Meta(description="The agent in whose name it was sent.")]
    domain_id: DomainAlias
    user_id: Annotated[str, Meta(description="The user who got it.")]
    title: Annotated[str, Meta(description="Its headline, in one line.")]
    summary: Annotated[str, Meta(description="What the user and the model read.")]
    priority: Annotated[Priority, Meta(description="How urgent it is, from `P0` (most) to `P3`.")]
    data: Annotated[Mapping[str, Any] | None, Meta(description="What it was sent with for clients to draw.")]
    actions: Annotated[Sequence[Mapping[str, Any]], Meta(description="The buttons that it was sent with.")]
    message_id: Annotated[
        Id | None, Meta(description="Its card in the conversation, once somebody opened it.")
    ]
    created_at: CreatedAt
    read_at: Annotated[Time | None, Meta(description="When it was marked as read; null while it is unread.")]


class StartedConversationView(View, frozen=True, kw_only=True):
    """The conversation that the briefing opened."""

    conversation_id: Annotated[
        Id, Meta(description="The user's main conversation with the briefing's agent.")
    ]
    conversation_alias: Annotated[
        str, Meta(description="Alias of `conversationId`, for clients that use this spelling.")
    ] = field(name="conversation_id")
    message_id: Annotated[Id, Meta(description="The briefing's card in that conversation.")]


async def create_briefing(request: RequestContext, *, body: BriefingBody) -> BriefingView:
    """Send a briefing to a known user on behalf of an agent. For the agent's owner and admins."""
    if len(msgspec.json.encode((body.data, body.actions))) > MOST_EXTRA_BYTES:
        raise InvalidRequest(
            f"`data` and `actions` can have at most {MOST_EXTRA_BYTES} bytes as JSON.", param="data"
        )
    draft = BriefingDraft(
        agent_id=body.agent_id,
        user_id=body.user_id,
        title=body.title,
        summary=body.summary,
        priority=body.priority,
        data=body.data,
        actions=tuple(body.actions),
    )
    return _view(await request.services.briefings.create(request.user, draft))


async def list_briefings(request: RequestContext, *, query: BriefingQuery) -> PageView[BriefingView]:
    """List your briefings, newest first."""
    pager = Pager(request.cursors, request.user, f"briefings {query.unread}", query)
    found = await request.services.briefings.page(
        request.user,
        unread=query.unread,
        before=pager.after(str),
        offset=pager.offset,
        limit=pager.fetch_limit,
    )
    return pager.page(found, lambda briefing: briefing.id, lambda briefings: list(map(_view, briefings)))


async def start_conversation(request: RequestContext, *, briefing_id: str) -> StartedConversationView:
    """Open a briefing: adds its card to your main conversation with the agent, once."""
    conversation_id, message_id = await request.services.briefings.start_conversation(
        request.user, briefing_id
    )
    return StartedConversationView(
        conversation_id=conversation_id, conversation_alias=conversation_id, message_id=message_id
    )


async def read_briefing(request: RequestContext, *, briefing_id: str) -> BriefingView:
    """Mark a briefing as read."""
    return _view(await request.services.briefings.read(request.user, briefing_id))


async def delete_briefing(request: RequestContext, *, briefing_id: str) -> None:
    """Delete a briefing. Its card stays in the conversation."""
    await request.services.briefings.delete(request.user, briefing_id)


def _view(briefing: Briefing) -> BriefingView:
    return BriefingView(
        id=briefing.id,
        agent_id=briefing.agent_id,
        domain_id=briefing.agent_id,
        user_id=briefing.user_id,
        title=briefing.title,
        summary=briefing.summary,
        priority=briefing.priority,
        data=briefing.data,
        actions=briefing.actions,
        message_id=briefing.message_id,
        created_at=rfc3339(briefing.created_at),
        read_at=time_or_none(briefing.read_at),
    )
