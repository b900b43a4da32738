"""Requests with a form."""

import http.client
from collections.abc import Mapping
from urllib.parse import urlencode

from bench.peers.contender import Api

PATIENCE_S = 60


def post_form(api: Api, path: str, form: Mapping[str, str]) -> bytes:
    """Sends a form and reads the response to its end."""
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=PATIENCE_S)
    try:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", path, urlencode(form), kind)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    if response.status >= 300:
        raise RuntimeError(f"POST {path}: {response.status} {content[:300]!r}")
    return content
