"""Searches of the user's own messages and titles: our API and MCP ask for them in the same way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from msgspec import Meta

from threadkeep.domain.message import SaidHit
from threadkeep.handling.moments import Moment, milliseconds
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.view import PageView

V = TypeVar("V")

OneAgent = Annotated[
    Annotated[str, Meta(pattern="^[0-9a-fA-F-]{36}$")] | None,
    Meta(description="Only conversations with this agent."),
]
Since = Annotated[Moment | None, Meta(description="Created at or after this time (RFC 3339).")]
Until = Annotated[Moment | None, Meta(description="Only messages before this time (RFC 3339).")]


@dataclass(frozen=True, slots=True)
class Search:
    """What to search for, and where; times as the request has them, in `from` and `to`."""

    words: str
    agent_id: str | None
    since: str | None
    until: str | None

    async def page(
        self, request: RequestContext, query: PageQuery, view: Callable[[SaidHit], V]
    ) -> PageView[V]:
        """A page of hits, newest first."""
        since, until = milliseconds(self.since, "from"), milliseconds(self.until, "to")
        listing = f"search {(self.words, self.agent_id, since, until)}"
        pager = Pager(request.cursors, request.user, listing, query)
        found = await request.services.history.search(
            request.user,
            self.words,
            agent_id=self.agent_id,
            since=since,
            until=until,
            before=pager.after(int),
            limit=pager.fetch_limit,
        )
        return pager.page(found, lambda hit: hit.entry_id, lambda hits: [view(hit) for hit in hits])
