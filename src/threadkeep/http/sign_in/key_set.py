"""A sign-in provider's public keys: fetched, cached, and renewed when they rotate."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import httpx2
import jwt
import msgspec

from threadkeep.domain.errors import SignInUnavailable, Unauthenticated
from threadkeep.http.sign_in.access_tokens import KEY_SET_ALGORITHMS, NOT_OURS
from threadkeep.program_log import describe

KEYS_LIVE_S = 600
FETCH_PAUSE_S = 10  # forged `kid`s cannot make us hammer the provider
FIRST_FETCH_PAUSE_S = 1  # while nobody can sign in yet, retry soon: the provider may start late
FETCH_TIMEOUT_S = 5
MOST_KEY_SET_BYTES = 1024 * 1024

_log = logging.getLogger("threadkeep.http.key_set")


class KeySet:
    """The keys at one address."""

    def __init__(self, url: str, client: httpx2.AsyncClient | None, clock: Callable[[], float]) -> None:
        self._url, self._clock = url, clock
        self._client, self._owns_client = client or httpx2.AsyncClient(), client is None
        self._keys: list[jwt.PyJWK] = []
        self._fresh_until = self._next_fetch = self._failed_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Cancels a fetch in progress."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait({self._fetching})
        if self._owns_client:
            await self._client.aclose()

    async def key(self, kid: str | None, algorithm: str) -> jwt.PyJWK:
        """The key that a token names; fetches again if it is unknown or the keys are old."""
        key, now = self._find(kid, algorithm), self._clock()
        stale = now >= self._fresh_until
        idle = self._fetching is None or self._fetching.done()
        if (key is None or stale) and idle and now >= self._next_fetch:
            self._next_fetch = now + FETCH_PAUSE_S
            # A separate task: if the request that started it is cancelled, others still wait for it.
            self._fetching = asyncio.create_task(self._fetch())
        # With a cached key, wait only to learn whether it was revoked, and not for an unreachable provider.
        is_unreachable = self._failed_at >= self._fresh_until
        if self._fetching is not None and (key is None or (stale and not is_unreachable)):
            await asyncio.wait({self._fetching})
            key = self._find(kid, algorithm)
        if not self._keys:
            raise SignInUnavailable("Couldn't connect to the sign-in provider. Try again in a moment.")
        if key is None:
            raise Unauthenticated(NOT_OURS)
        return key

    def _find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        fitting = [key for key in self._keys if key.algorithm_name == algorithm]
        if kid is None:
            return fitting[0] if len(fitting) == 1 else None
        return next((key for key in fitting if key.key_id == kid), None)

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                self._keys = _usable_keys(await self._download())
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError) as exc:
            _log.warning("couldn't fetch the sign-in provider's keys: %s", describe(exc))
            self._failed_at = self._clock()
            self._next_fetch = self._failed_at + (FETCH_PAUSE_S if self._keys else FIRST_FETCH_PAUSE_S)
        else:
            self._fresh_until = self._clock() + KEYS_LIVE_S

    async def _download(self) -> bytes:
        # Uncompressed, so that few bytes can't expand into many.
        async with self._client.stream("GET", self._url, headers={"Accept-Encoding": "identity"}) as response:
            if response.status_code != 200:
                raise ValueError(f"status {response.status_code}")
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MOST_KEY_SET_BYTES:
                    raise ValueError(f"more than {MOST_KEY_SET_BYTES} bytes")
            return bytes(body)


class _Document(msgspec.Struct):
    keys: list[dict[str, Any]]


def _usable_keys(document: bytes) -> list[jwt.PyJWK]:
    """The keys that can verify a signature; a document without any is invalid."""
    usable: list[jwt.PyJWK] = []
    for entry in msgspec.json.decode(document, type=_Document).keys:
        # A published private key (`d`) proves nothing about who signed with it.
        if entry.get("use", "sig") != "sig" or "d" in entry:
            continue
        try:
            key = jwt.PyJWK(entry)
        except (jwt.PyJWTError, LookupError, TypeError, ValueError):
            continue  # an unknown kind of key must not hide the others
        if key.algorithm_name in KEY_SET_ALGORITHMS:
            usable.append(key)
    if not usable:
        raise ValueError("the document has no usable key")
    return usable
