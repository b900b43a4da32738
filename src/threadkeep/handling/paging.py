"""Pages of lists: requests and responses."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.user import User
from threadkeep.handling.cursors import Cursors
from threadkeep.wire.view import PageView

T = TypeVar("T")
P = TypeVar("P")
V = TypeVar("V")

Limit = Annotated[int, Meta(ge=1, le=200, description="The most items to return in one response.")]
Offset = Annotated[
    int,
    Meta(
        ge=0,
        le=10**9,
        description="Deprecated: how many items to skip. Send `cursor` instead.",
        extra_json_schema={"deprecated": True},
    ),
]


class PageQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which page of a list."""

    limit: Limit = 20
    cursor: Annotated[str | None, Meta(description="`nextCursor` of the previous page.")] = None
    offset: Offset | None = None


class Pager:
    """One list of one user: where the requested page begins, and the next cursor."""

    def __init__(self, cursors: Cursors, user: User, listing: str, query: PageQuery) -> None:
        if query.cursor is not None and query.offset is not None:
            raise InvalidRequest("Send either `cursor` or `offset`, not both.", param="offset")
        self._cursors = cursors
        self._user = user
        self._listing = listing
        self._query = query
        self.offset = query.offset or 0
        # One more than requested shows whether there is a next page.
        self.fetch_limit = query.limit + 1

    def after(self, position_type: type[P]) -> P | None:
        """The position after which the page begins."""
        if self._query.cursor is None:
            return None
        return self._cursors.read(self._user, self._listing, self._query.cursor, position_type)

    def page(
        self,
        found: Sequence[T],
        position: Callable[[T], Any],
        view: Callable[[Sequence[T]], Sequence[V]],
        *,
        is_cut: bool = False,
    ) -> PageView[V]:
        """The page, and where the next one begins; `is_cut` says that it ended because of its size."""
        items, rest = found[: self._query.limit], found[self._query.limit :]
        cursor = (
            self._cursors.write(self._user, self._listing, position(items[-1])) if rest or is_cut else None
        )
        return PageView(items=view(items), next_cursor=cursor)
