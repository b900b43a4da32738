"""Times: milliseconds since 1970 in UTC, within what everybody can write."""

from datetime import UTC, datetime, tzinfo

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, the latest time that RFC 3339 can write."""


def nearest_time(milliseconds: int) -> int:
    """A time from outside, or of before it was checked, as the nearest that can be written."""
    return min(max(milliseconds, 0), LATEST_MS)


def time_in(milliseconds: int, zone: tzinfo = UTC) -> datetime:
    """A time as people in a zone write it; one that cannot be written is the nearest that can."""
    seconds, rest = divmod(nearest_time(milliseconds), 1000)
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
    try:
        return at.astimezone(zone)
    except OverflowError:  # there it is the year 10000 already
        return at
