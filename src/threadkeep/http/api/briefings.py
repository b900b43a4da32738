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
from threadkeep.wire.view import DomainAlias, Id, PageView, Time, View, rfc3339, time_or_none

MOST_EXTRA_BYTES = 64 * 1024


class BriefingBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The briefing to send."""

    agent_id: str
    user_id: str
    title: Annotated[str, Meta(max_length=500)]
    summary: Annotated[str, Meta(max_length=20_000)]
    priority: Priority
    data: dict[str, Any] | None = None
    actions: Annotated[list[dict[str, Any]], Meta(max_length=20)] = []


class BriefingQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which briefings to list."""

    unread: Annotated[bool, Meta(description="Only unread ones.")] = False


class BriefingView(View, frozen=True, kw_only=True):
    """A notice from an agent. `messageId` is its card in the conversation, if there is one."""

    id: Id
    agent_id: Id
    domain_id: DomainAlias
    user_id: str
    title: str
    summary: str
    priority: Priority
    data: Mapping[str, Any] | None
    actions: Sequence[Mapping[str, Any]]
    message_id: Id | None
    created_at: Time
    read_at: Time | None


class StartedConversationView(View, frozen=True, kw_only=True):
    """The conversation that the briefing opened."""

    conversation_id: Id
    conversation_alias: Annotated[
        str, Meta(description="Alias of `conversationId`, for clients that use this spelling.")
    ] = field(name="conversation_id")
    message_id: Id


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
