"""Requests to a provider: bounded in time and size, and never repeated in a log."""

import asyncio
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
        raise SignInProblem("unreachable", f"It can't be reached: {describe(exc)}") from None
    if status >= 500 or status == 429:
        raise SignInProblem("unreachable", f"It answers with status {status}.")
    try:
        return Reply(status, _decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SignInProblem("invalid", f"It answers with status {status} and no JSON object.") from None


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > MOST_BYTES:
            raise SignInProblem("invalid", f"It sends more than {MOST_BYTES} bytes.")
    return bytes(body)
