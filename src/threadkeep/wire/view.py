"""The common base of all views. Fields are camelCase on the wire."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct

from threadkeep.domain.times import nearest_time, time_in

T = TypeVar("T")

Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]

OwnId = Annotated[Id, Meta(description="The id by which requests name it.")]

CreatedAt = Annotated[Time, Meta(description="When it was created, in UTC.")]

UpdatedAt = Annotated[Time, Meta(description="When it last changed, in UTC.")]

OfAgent = Annotated[Id, Meta(description="The agent that it belongs to.")]

OfConversation = Annotated[Id, Meta(description="The conversation that it belongs to.")]

OfTurn = Annotated[Id, Meta(description="The turn that it belongs to.")]

DomainAlias = Annotated[str, Meta(description="Alias of `agentId`; some clients call agents domains.")]

RunAlias = Annotated[str | None, Meta(description="Alias of `turnId`; some clients call turns runs.")]


class View(Struct, frozen=True, kw_only=True, rename="camel"):
    """The common base of all views."""


class PageView(View, Generic[T], frozen=True, kw_only=True):
    """A page of a list. `nextCursor` continues it; null at the end."""

    items: Annotated[Sequence[T], Meta(description="The entries of this page, at most `limit` of them.")]
    next_cursor: Annotated[
        str | None, Meta(description="Where the list continues, for `cursor`; null at the end.")
    ]


class CompleteListView(View, frozen=True, kw_only=True):
    """The base of lists that are always whole, so that every list has the same shape."""

    next_cursor: Annotated[None, Meta(description="Always null: the list is complete.")] = None


@lru_cache(maxsize=16_384)  # clients load the latest pages again and again
def rfc3339(milliseconds: int) -> str:
    """A time as RFC 3339 in UTC with milliseconds; the nearest valid one if necessary."""
    return f"{time_in(milliseconds).isoformat()[:19]}.{nearest_time(milliseconds) % 1000:03d}Z"


def time_or_none(milliseconds: int | None) -> str | None:
    """The same for a time that may be missing."""
    return None if milliseconds is None else rfc3339(milliseconds)
