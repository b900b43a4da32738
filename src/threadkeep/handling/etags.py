"""Versions of what can be changed, as `ETag` and `If-Match` carry them."""

from threadkeep.domain.errors import InvalidRequest
from threadkeep.handling.routing import RequestContext


def etag(version: int) -> dict[str, str]:
    """The header that names a version."""
    return {"ETag": f'"{version}"'}


def expected_version(request: RequestContext) -> int | None:
    """The version that the caller wants to change; None for whichever there is."""
    if_match = request.http.headers.get("if-match")
    if if_match is None or if_match.strip() == "*":
        return None
    tag = if_match.strip().removeprefix("W/").strip('"')
    if not tag.isdecimal() or len(tag) > 18:  # no version has more digits, and none overflows a column
        raise InvalidRequest("`If-Match` must be an `ETag` of what you change.", param="If-Match")
    return int(tag)
