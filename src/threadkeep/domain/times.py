"""Times: milliseconds since 1970 in UTC, up to the year 9999."""

from datetime import UTC, datetime, tzinfo

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, the latest time that RFC 3339 can write."""


def nearest_time(milliseconds: int) -> int:
    """The nearest valid time, for one from outside or from before times were checked."""
    return min(max(milliseconds, 0), LATEST_MS)


def time_in(milliseconds: int, zone: tzinfo = UTC) -> datetime:
    """A time as people in a zone write it; the nearest valid one if necessary."""
    seconds, rest = divmod(nearest_time(milliseconds), 1000)
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
    try:
        return at.astimezone(zone)
    except OverflowError:  # in that zone it is already the year 10000
        return at
