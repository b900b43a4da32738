"""Times in queries."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.times import nearest_time

# Read by `milliseconds`: a query's values are read leniently, and a number would pass for a time.
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


def milliseconds(moment: str | None, param: str) -> int | None:
    """A time in ms; InvalidRequest if it isn't one."""
    if moment is None:
        return None
    try:
        read = msgspec.convert(moment, Annotated[datetime, Meta(tz=True)])
    except msgspec.ValidationError as exc:
        raise InvalidRequest(
            "This isn't an RFC 3339 time, such as 2026-01-31T09:00:00Z.", param=param
        ) from exc
    return nearest_time(int(read.timestamp() * 1000))
