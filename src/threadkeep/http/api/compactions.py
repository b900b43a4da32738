"""Compactions over HTTP: create, list, undo the latest."""

from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.compaction import Compaction
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.view import CreatedAt, OwnId, PageView, View, rfc3339


class CompactBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How to compact."""

    keep_last: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)] | None,
        Meta(description="How many of the latest messages to keep as they are; by default, up to ten."),
    ] = None


class CompactionView(View, frozen=True, kw_only=True):
    """A summary that replaces the messages `fromSeq` to `toSeq` in the context; they stay archived."""

    id: OwnId
    summary: Annotated[str, Meta(description="The text that the model gets instead of the messages.")]
    archived_count: Annotated[int, Meta(description="How many messages the summary replaces.")]
    from_seq: Annotated[int, Meta(description="The `seq` of the first message that it replaces.")]
    to_seq: Annotated[int, Meta(description="The `seq` of the last message that it replaces.")]
    tokens_before: Annotated[int, Meta(description="An estimate of the replaced messages' length in tokens.")]
    tokens_after: Annotated[int, Meta(description="An estimate of the summary's length in tokens.")]
    created_at: CreatedAt


async def compact(request: RequestContext, *, conversation_id: str, body: CompactBody) -> CompactionView:
    """Replace older messages in the context with a summary. They stay readable, marked as archived."""
    compaction = await request.services.compactions.compact(
        request.user, conversation_id, keep_last=body.keep_last
    )
    return _view(compaction)


async def list_compactions(
    request: RequestContext, *, conversation_id: str, query: PageQuery
) -> PageView[CompactionView]:
    """List a conversation's compactions, newest first."""
    pager = Pager(request.cursors, request.user, f"compactions {conversation_id.lower()}", query)
    found = await request.services.compactions.page(
        request.user, conversation_id, before=pager.after(int), offset=pager.offset, limit=pager.fetch_limit
    )
    return pager.page(found, lambda it: it.to_seq, lambda compactions: list(map(_view, compactions)))


async def undo_compaction(request: RequestContext, *, conversation_id: str, compaction_id: str) -> None:
    """Undo the latest compaction: its messages return to the context."""
    await request.services.compactions.undo(request.user, conversation_id, compaction_id)


def _view(compaction: Compaction) -> CompactionView:
    return CompactionView(
        id=compaction.id,
        summary=compaction.summary,
        archived_count=compaction.archived_count,
        from_seq=compaction.from_seq,
        to_seq=compaction.to_seq,
        tokens_before=compaction.tokens_before,
        tokens_after=compaction.tokens_after,
        created_at=rfc3339(compaction.created_at),
    )
