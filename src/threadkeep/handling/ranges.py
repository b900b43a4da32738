"""Which bytes of a file a request asks for (RFC 9110: Range and If-Range)."""

import re
from collections.abc import Mapping

from threadkeep.domain.errors import RangeNotSatisfiable

# A file has at most 18 digits; longer numbers would only cost time.
_ONE_RANGE = re.compile(r"bytes=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII | re.IGNORECASE)


def requested_range(headers: Mapping[str, str], etag: str, size: int) -> tuple[int, int] | None:
    """The first byte that the request wants and the one after the last; None if it wants the whole file.

    A header that isn't one valid range counts as none, as the RFC allows; RangeNotSatisfiable if the range
    begins after the file's end.
    """
    found = _ONE_RANGE.fullmatch(headers.get("range", ""))
    if found is None or headers.get("if-range", etag) != etag:
        return None
    first, last = found.groups()
    if first:
        start, stop = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    elif last:
        start, stop = max(size - int(last), 0), size
    else:
        return None
    if start >= stop:
        raise RangeNotSatisfiable(size)
    return start, stop
