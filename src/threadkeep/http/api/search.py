"""Search of the user's own messages and titles over HTTP."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, field

from threadkeep.domain.message import MessageRole, SaidHit
from threadkeep.handling.paging import PageQuery
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.searching import OneAgent, Search, Since, Until
from threadkeep.wire.view import Id, PageView, Time, View, rfc3339


class SearchQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What to search for."""

    q: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=500,
            description="Words that must all occur; the last may be a beginning of 3 letters or more.",
        ),
    ]
    agent_id: OneAgent = None
    since: Since = field(name="from", default=None)
    until: Until = field(name="to", default=None)


class HighlightView(View, frozen=True, kw_only=True):
    """The position of a match, in characters."""

    begin: Annotated[int, Meta(description="Where the match begins in the snippet, counted from 0.")]
    end: Annotated[int, Meta(description="Where the match ends: the first character after it.")]


class SearchHitView(View, frozen=True, kw_only=True):
    """A matching message or, without `messageId`, a conversation with a matching title."""

    conversation_id: Annotated[Id, Meta(description="The conversation in which it was found.")]
    agent_id: Annotated[Id, Meta(description="The agent that the conversation is with.")]
    title: Annotated[str | None, Meta(description="The conversation's title; null if it has none yet.")]
    message_id: Annotated[Id | None, Meta(description="The matching message; null if the title matches.")]
    seq: Annotated[
        int | None, Meta(description="The message's number in its conversation; null if the title matches.")
    ]
    role: Annotated[MessageRole | None, Meta(description="Who wrote the message; null if the title matches.")]
    snippet: Annotated[str, Meta(description="Text around the first match, without Markdown's marks.")]
    highlights: Annotated[Sequence[HighlightView], Meta(description="Positions of the words in `snippet`.")]
    created_at: Annotated[
        Time, Meta(description="When the message was sent; of a title, when the conversation started.")
    ]
    on_path: Annotated[bool, Meta(description="False if the message is outside the active path.")]


async def search(request: RequestContext, *, query: SearchQuery) -> PageView[SearchHitView]:
    """Search your own messages and titles, on every branch, newest first."""
    return await Search(query.q, query.agent_id, query.since, query.until).page(request, query, _view)


def _view(hit: SaidHit) -> SearchHitView:
    return SearchHitView(
        conversation_id=hit.conversation_id,
        agent_id=hit.agent_id,
        title=hit.title,
        message_id=hit.message_id,
        seq=hit.seq,
        role=hit.role,
        snippet=hit.snippet,
        highlights=[HighlightView(begin=begin, end=end) for begin, end in hit.highlights],
        created_at=rfc3339(hit.created_at),
        on_path=hit.on_path,
    )
