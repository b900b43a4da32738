"""Shares over HTTP."""

import asyncio
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from threadkeep.domain.sharing.share import ShareDraft
from threadkeep.handling.paging import Limit
from threadkeep.handling.routing import RequestContext, StreamedAttachment, ViewResponse
from threadkeep.http.api.files import NOT_KEPT, FileQuery, file_response
from threadkeep.wire.shares import (
    NewShareView,
    SharedReplayView,
    SharedView,
    ShareView,
    share_view,
    shared_replay_view,
    shared_view,
)
from threadkeep.wire.view import PageView


class ShareBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What to share."""

    message_id: Annotated[
        str | None,
        Meta(description="The last message to share, on any branch; by default, the latest one."),
    ] = None
    tools: Annotated[
        bool, Meta(description="Whether to show tool calls, passages found and thoughts, too.")
    ] = False
    expires_at: Annotated[
        Annotated[datetime, Meta(tz=True)] | None,
        Meta(description="When the link stops working; by default, when you revoke it."),
    ] = None


class SharedQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which messages of a share."""

    limit: Limit = 100
    cursor: Annotated[str | None, Meta(description="`nextCursor` of the previous response.")] = None


async def create_share(request: RequestContext, *, conversation_id: str, body: ShareBody) -> NewShareView:
    """Share a conversation up to a message, as it is now. The response is the only one with the link.

    The share never changes: it neither grows with the conversation nor follows your edits. It shows no
    approvals, prompts, memories, models or costs, and not who you are. `THREADKEEP_SHARING` decides who may
    open it.
    """
    draft = ShareDraft(
        message_id=body.message_id,
        with_tools=body.tools,
        expires_at=body.expires_at and int(body.expires_at.timestamp() * 1000),
    )
    share, token = await request.services.shares.create(request.user, conversation_id, draft)
    return NewShareView(**asdict(share_view(share)), url=request.link(f"/s/{token}"), token=token)


async def list_shares(request: RequestContext, *, conversation_id: str) -> PageView[ShareView]:
    """List a conversation's shares, newest first, without their links; expired ones stay until revoked."""
    shares = await request.services.shares.list(request.user, conversation_id)
    return PageView(items=[share_view(share) for share in shares], next_cursor=None)


async def revoke_share(request: RequestContext, *, share: str) -> None:
    """Revoke a share of one of your conversations, by its id: its link stops working at once."""
    await request.services.shares.revoke(request.user, share)


async def get_shared(request: RequestContext, *, share: str, query: SharedQuery) -> ViewResponse[SharedView]:
    """Read a shared conversation by the token of its link, oldest messages first.

    With `THREADKEEP_SHARING=anyone`, nobody has to sign in for it. Deleting the conversation hides its shares
    until it is restored.
    """
    shares = request.services.shares
    opened = await shares.open(share)
    listing = f"share {opened.id}"
    after = 0 if query.cursor is None else request.cursors.read(request.user, listing, query.cursor, int)
    messages, has_more = await shares.messages(opened, after_seq=after, limit=query.limit)
    cursor = request.cursors.write(request.user, listing, messages[-1].seq) if has_more else None
    return ViewResponse(shared_view(opened, messages, cursor), headers={"Cache-Control": NOT_KEPT})


async def get_shared_replay(
    request: RequestContext, *, share: str, number: str
) -> ViewResponse[SharedReplayView]:
    """Read the events of a reply of a share that shows tools, to replay it.

    They are made from the shown message, so they contain nothing that the share leaves out: no ids of turn,
    conversation and messages, no model, no usage, and no approvals.
    """
    opened = await request.services.shares.open(share)
    # More digits than any number of messages has.
    position = int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0
    events = await request.services.shares.replay(request.user.id, opened, position)
    view = await asyncio.to_thread(shared_replay_view, events)
    return ViewResponse(view, headers={"Cache-Control": NOT_KEPT})


async def get_shared_file(
    request: RequestContext, *, share: str, file_id: str, query: FileQuery
) -> StreamedAttachment:
    """Download a file of a shared conversation; only the preview is for display."""
    file = await request.services.shares.file(share, file_id, preview=query.preview)
    return file_response(request, file, caching=NOT_KEPT)
