"""Requests to a provider: bounded in time and size, and never repeated in a log."""

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

from threadkeep.domain.sign_in.identity import SignInProblem
from threadkeep.program_log import describe

CALL_S = 10
MOST_BYTES = 1024 * 1024

_CODE = re.compile(r"[a-z_]{1,60}")
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_log = logging.getLogger("threadkeep.sign_in")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider replied, if it replied as it should: an object."""

    status: int
    fields: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A field that is a text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) and value else None

    @property
    def error(self) -> str:
        """The error's code, if it is one."""
        return error_code(self.text("error"))


def error_code(text: str | None) -> str:
    """A code for the log: others may have written it."""
    return text if text is not None and _CODE.fullmatch(text) else "(no code)"


async def call(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Sends a request; SignInProblem if there is no usable reply."""
    # Uncompressed, so that few bytes can't expand into many.
    sent = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
    try:
        async with (
            asyncio.timeout(CALL_S),
            client.stream(method, url, data=form, headers=sent) as response,
        ):
            status, body = response.status_code, await _body(response)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
        _log.warning("couldn't reach the sign-in provider: %s", describe(exc))
        raise SignInProblem("unreachable") from None
    if status >= 500 or status == 429:
        _log.warning("the sign-in provider answered with status %d", status)
        raise SignInProblem("unreachable")
    try:
        return Reply(status, _decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        _log.warning("the sign-in provider answered with status %d and no JSON object", status)
        raise SignInProblem("invalid") from None


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            _log.warning("the sign-in provider sent more than %d bytes", MOST_BYTES)
            raise SignInProblem("invalid")
    return bytes(body)
