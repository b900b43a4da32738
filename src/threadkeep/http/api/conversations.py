"""Conversations and their messages over HTTP."""

from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from threadkeep.domain.conversation import Conversation, ConversationFilter, ConversationStatus, ListedStatus
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId
from threadkeep.domain.message import MessageWindow
from threadkeep.handling.idempotency import idempotency_key
from threadkeep.handling.merge_patch import merge_patch
from threadkeep.handling.paging import Limit, PageQuery, Pager
from threadkeep.handling.routing import RequestContext, ViewResponse
from threadkeep.http.api.turns import Tip
from threadkeep.wire.messages import MessageView, message_views
from threadkeep.wire.view import PageView
from threadkeep.wire.views import (
    ContextMessageView,
    ContextView,
    ConversationDetailView,
    ConversationView,
    conversation_detail_view,
    conversation_view,
)

LATEST_IN_DETAIL = 50
MOST_METADATA_BYTES = 16 * 1024


class ConversationBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The conversation to create."""

    title: Annotated[
        str | None,
        Meta(description="At most 200 characters; without one, the model writes one after the first answer."),
    ] = None
    metadata: Annotated[
        dict[str, Any], Meta(description="Your own fields, at most 16 KiB as JSON; models don't see them.")
    ] = {}


class NewConversationBody(
    ConversationBody, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The conversation to create, and with which agent."""

    agent_id: Annotated[str, Meta(description="The agent to talk to, from `GET /api/agents`.")]


class ConversationPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The fields to change: a JSON merge patch. A null `title` removes the user's own title."""

    title: Annotated[
        str | UnsetType | None,
        Meta(description="At most 200 characters; null removes the title that you gave it."),
    ] = UNSET
    status: Annotated[
        ConversationStatus | UnsetType,
        Meta(description="`archived` hides it from the usual list, `active` shows it again."),
    ] = UNSET
    pinned: Annotated[bool | UnsetType, Meta(description="Whether front ends show it before the others.")] = (
        UNSET
    )
    metadata: Annotated[
        dict[str, Any] | UnsetType | None,
        Meta(description="A merge patch of your own fields, at most 16 KiB in all; null removes them."),
    ] = UNSET


class ConversationQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which conversations to list."""

    status: Annotated[
        ListedStatus | None,
        Meta(
            description="Default: all except deleted ones. Deleted ones are sorted by deletion, newest first."
        ),
    ] = None
    pinned: Annotated[
        bool | None, Meta(description="`true` for those that are pinned, `false` for the others.")
    ] = None


class OwnConversationQuery(
    ConversationQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Which conversations to list, with which agent."""

    agent_id: Annotated[str | None, Meta(description="Only conversations with this agent.")] = None


class MessageQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which messages to list."""

    order: Annotated[
        Literal["asc", "desc"] | None, Meta(description="`asc` (the default): oldest first.")
    ] = None
    after_seq: Annotated[
        int, Meta(ge=0, le=2**62, description="Only messages with a greater `seq`; 0 means from the start.")
    ] = 0
    before_seq: Annotated[
        Annotated[int, Meta(ge=0, le=2**62)] | None,
        Meta(description="Only messages with a smaller `seq` than this."),
    ] = None
    include: Annotated[
        Literal["overwritten"] | None, Meta(description="`overwritten` adds the messages of other branches.")
    ] = None


class PathBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which branch to select."""

    message_id: Annotated[str, Meta(description="A message of the branch.")]
    tip: Tip = UNSET


class ForkBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Where to fork."""

    message_id: Annotated[str, Meta(description="The last message of the new conversation.")]


class DeleteQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """How to delete."""

    purge: Annotated[bool, Meta(description="Delete it permanently instead of hiding it.")] = False
    if_deleted: Annotated[
        bool, Meta(description="Purge it only if it is still deleted; 412 if it was restored meanwhile.")
    ] = False


class ContextQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much context to return."""

    limit: Limit | None = None


async def create_conversation(
    request: RequestContext, *, agent_id: str, body: ConversationBody
) -> ViewResponse[ConversationView]:
    """Start another conversation with an agent. The same `Idempotency-Key` never starts a second one."""
    return await _create(request, agent_id, body)


async def create_conversation_with(
    request: RequestContext, *, body: NewConversationBody
) -> ViewResponse[ConversationView]:
    """Start a conversation with the agent `agentId`, as `POST /api/agents/{agent_id}/conversations` does."""
    return await _create(request, body.agent_id, body)


async def _create(
    request: RequestContext, agent_id: str, body: ConversationBody
) -> ViewResponse[ConversationView]:
    conversation, made = await request.services.conversations.create(
        request.user,
        agent_id,
        title=body.title,
        metadata=_checked_metadata(body.metadata),
        idempotency_key=idempotency_key(request.http),
    )
    return _made_or_found(request, conversation, made)


async def put_main_conversation(request: RequestContext, *, agent_id: str) -> ViewResponse[ConversationView]:
    """Get the main conversation with an agent, creating it if needed: 201 if created, otherwise 200."""
    return _made_or_found(request, *await request.services.conversations.main(request.user, agent_id))


async def list_agent_conversations(
    request: RequestContext, *, agent_id: str, query: ConversationQuery
) -> PageView[ConversationView]:
    """List your conversations with an agent, latest activity first."""
    return await _conversation_page(request, AgentId(agent_id.lower()), query)


async def list_conversations(
    request: RequestContext, *, query: OwnConversationQuery
) -> PageView[ConversationView]:
    """List your conversations, latest activity first; with `agentId`, those with one agent."""
    agent_id = query.agent_id and AgentId(query.agent_id.lower())
    return await _conversation_page(request, agent_id or None, query)


async def get_conversation(request: RequestContext, *, conversation_id: str) -> ConversationDetailView:
    """Read a conversation with its latest messages, at most 50; `nextCursor` continues with older ones."""
    detail = await request.services.conversations.detail(
        request.user, conversation_id, latest=LATEST_IN_DETAIL + 1
    )
    messages = detail.messages[-LATEST_IN_DETAIL:]
    cursor = None
    if len(detail.messages) > LATEST_IN_DETAIL or detail.is_cut:
        listing = _message_listing(detail.conversation.id, newest_first=True, include=None)
        cursor = request.cursors.write(request.user, listing, messages[0].seq)
    return conversation_detail_view(
        detail.conversation,
        messages,
        detail.siblings,
        detail.feedback,
        next_cursor=cursor,
        summary=detail.summary,
        queued=detail.queued,
    )


async def patch_conversation(
    request: RequestContext, *, conversation_id: str, body: ConversationPatch
) -> ConversationView:
    """Rename, archive, pin or annotate a conversation. This does not change its position in the list."""

    def change(conversation: Conversation) -> Conversation:
        if body.title is not UNSET:
            conversation = conversation.rename(body.title)
        if body.status is not UNSET:
            conversation = replace(conversation, status=body.status)
        if body.pinned is not UNSET:
            conversation = conversation.pin(is_pinned=body.pinned)
        if body.metadata is not UNSET:
            # null removes all of it, as in RFC 7396
            merged: dict[str, Any] = merge_patch(conversation.metadata, body.metadata) or {}
            conversation = replace(conversation, metadata=_checked_metadata(merged))
        return conversation

    return conversation_view(
        await request.services.conversations.update(request.user, conversation_id, change)
    )


async def delete_conversation(request: RequestContext, *, conversation_id: str, query: DeleteQuery) -> None:
    """Delete a conversation. You can restore it until it is purged; `purge=true` purges it immediately."""
    conversations = request.services.conversations
    if not query.if_deleted:
        await conversations.delete(request.user, conversation_id, purge=query.purge)
    elif query.purge:
        await conversations.purge_deleted(request.user, conversation_id)
    else:
        raise InvalidRequest("Use ifDeleted together with purge=true.", param="ifDeleted")


async def restore_conversation(request: RequestContext, *, conversation_id: str) -> ConversationView:
    """Restore a deleted conversation."""
    return conversation_view(await request.services.conversations.restore(request.user, conversation_id))


async def rotate_session(request: RequestContext, *, conversation_id: str) -> ConversationView:
    """Give a conversation a new `sessionId`; the old one stops working."""
    conversation = await request.services.conversations.rotate_session(request.user, conversation_id)
    return conversation_view(conversation, with_session=True)


async def list_messages(
    request: RequestContext, *, conversation_id: str, query: MessageQuery
) -> PageView[MessageView]:
    """List a conversation's messages, oldest first; `order=desc` for newest first."""
    listings = {
        newest_first: _message_listing(conversation_id, newest_first=newest_first, include=query.include)
        for newest_first in (False, True)
    }
    newest_first = query.order == "desc"
    if query.order is None and query.cursor is not None:
        # The cursor from a conversation's detail pages backwards, without `order=desc`.
        newest_first = _reads(request, listings[True], query.cursor)
    pager = Pager(request.cursors, request.user, listings[newest_first], query)
    window = MessageWindow(query.after_seq, query.before_seq, newest_first, query.include is not None)
    position = pager.after(int)
    if position is not None and newest_first:
        before_seq = position if window.before_seq is None else min(position, window.before_seq)
        window = replace(window, before_seq=before_seq)
    elif position is not None:
        window = replace(window, after_seq=max(position, window.after_seq))
    page = await request.services.conversations.messages(
        request.user, conversation_id, window, offset=pager.offset, limit=pager.fetch_limit
    )
    return pager.page(
        page.messages,
        lambda message: message.seq,
        lambda messages: message_views(page.conversation, messages, page.siblings, page.feedback),
        is_cut=page.is_cut,
    )


async def get_context(request: RequestContext, *, conversation_id: str, query: ContextQuery) -> ContextView:
    """Get the latest messages as role and content, ready to send from another engine."""
    context = await request.services.conversations.context(request.user, conversation_id, limit=query.limit)
    return ContextView(messages=[ContextMessageView(role=it.role, content=it.content) for it in context])


async def list_chat_messages(request: RequestContext, *, query: MessageQuery) -> PageView[MessageView]:
    """List the messages of your main conversation with the default agent."""
    conversation = await request.services.conversations.find_main_with_default_agent(request.user)
    if conversation is None:
        pager = Pager(request.cursors, request.user, "messages", query)
        pager.after(int)  # any cursor belongs to another list
        return PageView(items=(), next_cursor=None)
    return await list_messages(request, conversation_id=conversation.id, query=query)


async def choose_path(request: RequestContext, *, conversation_id: str, body: PathBody) -> ConversationView:
    """Make the branch through a message the active path, continuing with the newest message at each step."""
    return conversation_view(
        await request.services.branches.choose(
            request.user, conversation_id, body.message_id, tip_id=body.tip
        )
    )


async def fork_conversation(
    request: RequestContext, *, conversation_id: str, body: ForkBody
) -> ViewResponse[ConversationView]:
    """Start a new conversation with everything up to a message. It does not count as usage."""
    forked = await request.services.branches.fork(request.user, conversation_id, body.message_id)
    return _made_or_found(request, forked, True)


def _made_or_found(
    request: RequestContext, conversation: Conversation, made: bool
) -> ViewResponse[ConversationView]:
    view = conversation_view(conversation, with_session=True)
    location = request.link(f"/api/conversations/{conversation.id}")
    return ViewResponse(view, 201 if made else 200, {"Location": location})


async def _conversation_page(
    request: RequestContext, agent_id: AgentId | None, query: ConversationQuery
) -> PageView[ConversationView]:
    which = ConversationFilter(agent_id, query.status, query.pinned)
    listing = f"conversations {which.agent_id} {which.status} {which.pinned}"
    pager = Pager(request.cursors, request.user, listing, query)
    found = await request.services.conversations.page(
        request.user,
        which,
        after=pager.after(tuple[int, str]),
        offset=pager.offset,
        limit=pager.fetch_limit,
    )
    purge_time = request.services.conversations.purge_time
    return pager.page(
        found,
        lambda it: (it.updated_at if it.deleted_at is None else it.deleted_at, it.id),
        lambda conversations: [conversation_view(it, purge_at=purge_time(it)) for it in conversations],
    )


def _message_listing(conversation_id: str, *, newest_first: bool, include: str | None) -> str:
    return f"messages {conversation_id.lower()} {newest_first} {include}"


def _reads(request: RequestContext, listing: str, cursor: str) -> bool:
    try:
        request.cursors.read(request.user, listing, cursor, int)
    except InvalidRequest:
        return False
    return True


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    if len(msgspec.json.encode(metadata)) > MOST_METADATA_BYTES:
        raise InvalidRequest(
            f"`metadata` can have at most {MOST_METADATA_BYTES} bytes as JSON.", param="metadata"
        )
    return metadata
