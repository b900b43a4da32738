"""The access token of a request."""

import re

from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Unauthenticated

_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)")


def bearer_token(connection: HTTPConnection) -> str | None:
    """The token of `Authorization: Bearer …`, if there is such a header."""
    given = connection.headers.getlist("authorization")
    if not given:
        return None
    found = _BEARER.fullmatch(given[0].strip())
    if found is None or len(given) > 1:
        raise Unauthenticated("Send exactly one header of the form `Authorization: Bearer <token>`.")
    return found[1]


def required_token(request: HTTPConnection) -> str:
    """The token of a request that must have one."""
    if token := bearer_token(request):
        return token
    raise Unauthenticated("Sign in: the header `Authorization: Bearer <token>` is missing.")
