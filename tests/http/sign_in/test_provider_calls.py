"""What a sign-in provider sends that isn't what it should: it is refused soon, and repeated nowhere."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Coroutine

import httpx2
import pytest

from threadkeep.domain.sign_in.identity import Problem, SignInProblem
from threadkeep.http.sign_in.openid import calls

URL = "https://id.example/token"
SECRET = "s3cret"
Reply = (
    Callable[[httpx2.Request], httpx2.Response]
    | Callable[[httpx2.Request], Coroutine[None, None, httpx2.Response]]
)


class Bytes(httpx2.AsyncByteStream):
    """A body that comes in portions, as from a socket."""

    def __init__(self, portion: bytes, times: int = 1) -> None:
        self._portion = portion
        self._times = times
        self.sent = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._times):
            self.sent += 1
            yield self._portion


async def problem(reply: Reply) -> Problem:
    """Why a reply doesn't count."""
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(reply)) as client:
        with pytest.raises(SignInProblem) as caught:
            await calls.call(client, "POST", URL, form={"client_secret": SECRET})
    assert SECRET not in f"{caught.value.detail}"
    return caught.value.problem


def sent(status: int, body: bytes, **headers: str) -> Reply:
    return lambda _: httpx2.Response(status, headers=headers, stream=Bytes(body))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (sent(200, b""), "invalid"),
        (sent(200, b"<html>s3cret</html>"), "invalid"),
        (sent(200, b'["sub"]'), "invalid"),
        (sent(200, b'{"sub": "\xff"}'), "invalid"),
        (sent(200, b'{"sub": ' + b"[" * 100_000), "invalid"),
        (sent(200, gzip.compress(b"{}"), **{"content-encoding": "gzip"}), "invalid"),
        (sent(500, b'{"error": "s3cret"}'), "unreachable"),
        (sent(429, b"{}"), "unreachable"),
    ],
)
async def test_reply_that_is_none_is_refused(reply: Reply, expected: Problem):
    assert await problem(reply) == expected


async def test_reply_goes_nowhere_else():
    """A redirection would take the client's secret along."""
    asked: list[str] = []

    def moved(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(307, headers={"location": "https://evil.example/"}, stream=Bytes(b""))

    assert await problem(moved) == "invalid"
    assert asked == [URL]


async def test_endless_reply_is_cut_off():
    body = Bytes(b" " * 64 * 1024, times=10_000)
    assert await problem(lambda _: httpx2.Response(200, stream=body)) == "invalid"
    assert body.sent * 64 * 1024 <= calls.MOST_BYTES + 64 * 1024


async def test_provider_that_never_answers_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calls, "CALL_S", 0.05)

    async def hang(_: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(60)
        return httpx2.Response(200)

    assert await problem(hang) == "unreachable"


async def test_error_of_a_provider_is_quoted_only_if_it_is_a_code():
    for text, code in (("invalid_grant", "invalid_grant"), ("<b>s3cret</b>", "(no code)"), (7, "(no code)")):
        body = f'{{"error": "{text}"}}' if isinstance(text, str) else f'{{"error": {text}}}'
        transport = httpx2.MockTransport(sent(400, body.encode()))
        async with httpx2.AsyncClient(transport=transport) as client:
            assert (await calls.call(client, "GET", URL)).error == code
