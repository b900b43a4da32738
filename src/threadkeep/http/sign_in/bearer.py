"""The credential of a request: an access token or an API key, in one of two headers."""

import re

from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Unauthenticated
from threadkeep.domain.key import is_key_value
from threadkeep.services.replies.run_tokens import is_run_token

API_KEY = "x-api-key"
_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)")


def key_value(connection: HTTPConnection) -> str | None:
    """The API key that a request sends, in either header and whatever else it sends; None without one."""
    found = [_BEARER.fullmatch(it.strip()) for it in connection.headers.getlist("authorization")]
    given = {it[1] for it in found if it} | {it.strip() for it in connection.headers.getlist(API_KEY)}
    match [it for it in given if is_key_value(it)]:
        case []:
            return None
        case [value]:
            return value
        case _:
            raise Unauthenticated("Send one API key, not several.")


def has_run_token(connection: HTTPConnection) -> bool:
    """Whether a request sends the token of a program's run."""
    given = (*connection.headers.getlist("authorization"), *connection.headers.getlist(API_KEY))
    return any(is_run_token(it.strip().rpartition(" ")[2]) for it in given)


def bearer_token(connection: HTTPConnection) -> str | None:
    """The token of `Authorization: Bearer …`, or of `x-api-key` without it, if there is such a header."""
    given = connection.headers.getlist("authorization")
    if not given:
        given = [f"Bearer {it}" for it in connection.headers.getlist(API_KEY)]
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
