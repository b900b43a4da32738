"""Signing in with tokens of a provider: whose keys are trusted, and how they are fetched."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.http.signing_in import (
    ALICE,
    GARBAGE,
    NO_ALGORITHMS,
    ROOT,
    RSA_KEY,
    SECRET,
    claims,
    handmade,
    refusal,
    request,
    rsa_token,
    with_token,
)
from threadkeep import create_app
from threadkeep.domain.errors import SignInUnavailable
from threadkeep.http.sign_in.access_tokens import Expected
from threadkeep.http.sign_in.by_token import KeySetSignIn
from threadkeep.http.sign_in.key_set import MOST_KEY_SET_BYTES
from threadkeep.http.sign_in.methods import sign_in
from threadkeep.settings import Settings
from threadkeep.testing.waiting import PATIENCE_S, until

RSA_NEXT = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def ec_token(kid: str | None = "ec", **more: object) -> str:
    return jwt.encode(claims(**more), EC_KEY, "ES256", {"kid": kid} if kid else None)


def public(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, **more: object) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        return RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | more
    return ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | more


class Provider:
    """A sign-in provider on a real socket."""

    def __init__(self) -> None:
        self.keys: list[Any] = [public(RSA_KEY, kid="rsa"), public(EC_KEY, kid="ec")]
        self.body: bytes | None = None
        self.status = 200
        self.fetches = 0
        self.responding = threading.Event()
        self.responding.set()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.fetches += 1
                provider.responding.wait(PATIENCE_S)
                body = (
                    json.dumps({"keys": provider.keys}).encode() if provider.body is None else provider.body
                )
                try:
                    self.send_response(provider.status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def stop(self) -> None:
        """Goes away: from now on connections are refused."""
        self.responding.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    if provider.thread.is_alive():
        provider.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def key_set(
    provider: Provider, clock: Clock | None = None, issuer: str | None = None, audience: str | None = None
) -> AsyncGenerator[KeySetSignIn]:
    # A proxy of the machine that runs the tests has no business between two loopback sockets.
    async with httpx2.AsyncClient(trust_env=False) as client:
        way = KeySetSignIn(provider.url, Expected(issuer, audience), client, clock=clock or Clock())
        try:
            yield way
        finally:
            await way.close()


@pytest.mark.parametrize("make_token", [rsa_token, ec_token])
async def test_token_of_the_provider_signs_its_user_in(
    make_token: Callable[[], str], provider: Provider
) -> None:
    async with key_set(provider) as way:
        assert await way.user(with_token(make_token())) == ALICE


async def test_default_client_works_and_is_closed(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    way = sign_in(Settings(jwks_url=provider.url, jwt_issuer="https://id.example", jwt_audience="chat"))
    given: dict[str, Any] = {"iss": "https://id.example", "role": "admin", "sub": "root"}
    assert await way.user(with_token(rsa_token(**given, aud="chat"))) == ROOT
    # Another application's token, signed with the same key.
    assert "audience" in await refusal(way, with_token(rsa_token(**given, aud="payroll")))
    await way.close()


async def test_claims_of_a_providers_token_are_checked(provider: Provider) -> None:
    good: dict[str, Any] = {"iss": "https://id.example", "aud": "chat"}
    async with key_set(provider, issuer="https://id.example", audience="chat") as way:
        assert await way.user(with_token(rsa_token(**good))) == ALICE
        assert "expired" in await refusal(way, with_token(rsa_token(**good, exp=int(time.time()) - 60)))
        assert "audience" in await refusal(way, with_token(ec_token(**good | {"aud": "other"})))
        assert "issuer" in await refusal(
            way, with_token(ec_token(**good | {"iss": "https://id.example.evil"}))
        )
        assert "`aud`" in await refusal(way, with_token(ec_token(iss="https://id.example")))
        assert "`exp`" in await refusal(way, with_token(ec_token(**good, exp=None)))
        assert "missing" in await refusal(way, request())


@pytest.mark.parametrize("algorithm", NO_ALGORITHMS)
async def test_unsigned_token_is_refused_where_keys_are_published(
    algorithm: object, provider: Provider
) -> None:
    token = handmade({"alg": algorithm, "kid": "rsa"}, claims(), None)
    async with key_set(provider) as way:
        assert "not signed" in await refusal(way, with_token(token))


@pytest.mark.parametrize("token", GARBAGE)
async def test_garbage_is_refused_and_no_reason_to_fetch_keys(token: str, provider: Provider) -> None:
    async with key_set(provider) as way:
        await refusal(way, with_token(token))
    assert provider.fetches == 0


def public_texts() -> list[bytes]:
    key, form = RSA_KEY.public_key(), serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.public_bytes(serialization.Encoding.PEM, form)
    der = key.public_bytes(serialization.Encoding.DER, form)
    modulus = key.public_numbers().n.to_bytes(256)
    return [pem, pem.strip(), der, modulus, json.dumps(public(RSA_KEY, kid="rsa")).encode()]


@pytest.mark.parametrize("key", public_texts(), ids=["pem", "pem-stripped", "der", "modulus", "jwk"])
async def test_public_key_is_never_taken_for_a_secret(key: bytes, provider: Provider) -> None:
    token = handmade({"alg": "HS256", "kid": "rsa"}, claims(role="admin"), key)
    async with key_set(provider) as way:
        assert "not signed" in await refusal(way, with_token(token))
        assert await way.user(with_token(rsa_token())) == ALICE
        assert "not signed" in await refusal(way, with_token(token))


async def test_secret_key_in_the_set_is_never_used(provider: Provider) -> None:
    secret = base64.urlsafe_b64encode(SECRET.encode()).rstrip(b"=").decode()
    provider.keys += [
        {"kty": "oct", "k": secret, "kid": "oct"},
        {"kty": "oct", "k": secret, "kid": "x", "alg": "RS256"},
    ]
    async with key_set(provider) as way:
        for kid in ("oct", "x"):
            token = handmade({"alg": "HS256", "kid": kid}, claims(), SECRET.encode())
            assert "not signed" in await refusal(way, with_token(token))


async def test_token_signed_with_another_key_is_refused(provider: Provider) -> None:
    async with key_set(provider) as way:
        assert "not signed" in await refusal(way, with_token(rsa_token(RSA_NEXT)))


async def test_token_cannot_bring_its_own_key(provider: Provider) -> None:
    own = {"jwk": public(RSA_NEXT, kid="rsa"), "jku": provider.url, "x5u": provider.url}
    async with key_set(provider) as way:
        for kid in ("rsa", "own", None):
            assert "not signed" in await refusal(way, with_token(rsa_token(RSA_NEXT, kid, own)))


async def test_key_of_one_kind_does_not_check_the_other(provider: Provider) -> None:
    async with key_set(provider) as way:
        assert "not signed" in await refusal(way, with_token(rsa_token(kid="ec")))
        assert "not signed" in await refusal(way, with_token(ec_token(kid="rsa")))


@pytest.mark.parametrize("algorithm", ["RS384", "RS512", "PS256"])
async def test_only_rs256_and_es256_are_accepted(algorithm: str, provider: Provider) -> None:
    provider.keys.append(public(RSA_KEY, kid="other", alg=algorithm))
    async with key_set(provider) as way:
        token = jwt.encode(claims(), RSA_KEY, algorithm, {"kid": "other"})
        assert "not signed" in await refusal(way, with_token(token))
        assert "not signed" in await refusal(way, with_token(rsa_token(kid="other")))


async def test_token_without_a_kid_works_where_one_key_fits(provider: Provider) -> None:
    async with key_set(provider) as way:
        assert await way.user(with_token(rsa_token(kid=None))) == ALICE
        assert await way.user(with_token(ec_token(kid=None))) == ALICE


async def test_token_without_a_kid_is_refused_where_two_keys_fit(provider: Provider) -> None:
    provider.keys.append(public(RSA_NEXT, kid="next"))
    async with key_set(provider) as way:
        assert "not signed" in await refusal(way, with_token(rsa_token(kid=None)))
        assert await way.user(with_token(ec_token(kid=None))) == ALICE


async def test_keys_that_cannot_check_signatures_are_ignored(provider: Provider) -> None:
    private = RSAAlgorithm.to_jwk(RSA_NEXT, as_dict=True)
    provider.keys = [
        public(RSA_NEXT, kid="enc", use="enc"),
        private | {"kid": "private"},
        public(RSA_NEXT, kid="alg", alg="RSA-OAEP"),
        {"kty": "RSA", "kid": "half", "n": "AQAB"},
        {"kty": "RSA", "kid": "junk", "n": 7, "e": []},
        {"kty": "EC", "kid": "curve", "crv": "P-256", "x": "AQAB", "y": "AQAB"},
        {"kty": "RSA", "alg": ["RS256"]},
        {"kty": ["RSA"]},
        {"kty": "oct"},
        {"kty": "new"},
        {},
        public(RSA_KEY, kid="rsa", use="sig", alg="RS256"),
    ]
    async with key_set(provider) as way:
        for kid in ("enc", "private", "alg", "half", "junk"):
            assert "not signed" in await refusal(way, with_token(rsa_token(RSA_NEXT, kid)))
        assert await way.user(with_token(rsa_token(kid=None))) == ALICE


async def test_weak_key_of_the_provider_is_not_trusted(provider: Provider) -> None:
    weak = rsa.generate_private_key(65537, 1024)
    provider.keys.append(public(weak, kid="weak"))
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = rsa_token(weak, "weak")
    async with key_set(provider) as way:
        assert "not signed" in await refusal(way, with_token(token))


# Fetching, rotating, and a provider that is away


async def test_keys_are_fetched_once_and_again_after_ten_minutes(provider: Provider, clock: Clock) -> None:
    async with key_set(provider, clock) as way:
        for _ in range(5):
            await way.user(with_token(rsa_token()))
            clock.now += 100
        assert provider.fetches == 1
        clock.now += 101
        await way.user(with_token(rsa_token()))
        assert provider.fetches == 2


async def test_new_key_is_found_and_the_old_one_is_forgotten(provider: Provider, clock: Clock) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        clock.now += 10
        provider.keys = [public(RSA_NEXT, kid="next")]
        assert await way.user(with_token(rsa_token(RSA_NEXT, "next"))) == ALICE
        assert "not signed" in await refusal(way, with_token(rsa_token()))


async def test_revoked_key_is_refused_by_the_first_request_after_ten_minutes(
    provider: Provider, clock: Clock
) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        provider.keys = [public(RSA_NEXT, kid="next")]
        clock.now += 300
        assert await way.user(with_token(rsa_token())) == ALICE
        provider.status = 503
        await refusal(way, with_token(rsa_token(kid="forged")))  # an outage in between changes nothing
        provider.status = 200
        clock.now += 300
        assert "not signed" in await refusal(way, with_token(rsa_token()))


async def test_forged_kids_do_not_hammer_the_provider(provider: Provider, clock: Clock) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        clock.now += 100
        for number in range(100):
            clock.now += 0.3
            assert "not signed" in await refusal(way, with_token(rsa_token(RSA_KEY, f"forged-{number}")))
            await way.user(with_token(rsa_token()))
        assert provider.fetches == 1 + 3  # 30 s have passed


async def test_forged_kid_does_not_slow_down_others(provider: Provider, clock: Clock) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        clock.now += 10
        provider.responding.clear()
        forged = asyncio.create_task(refusal(way, with_token(rsa_token(kid="forged"))))
        await until(lambda: provider.fetches == 2)
        assert await way.user(with_token(rsa_token())) == ALICE
        assert not forged.done()
        provider.responding.set()
        assert "not signed" in await forged


async def test_fifty_first_requests_share_one_fetch(provider: Provider) -> None:
    async with key_set(provider) as way:
        users = await asyncio.gather(*(way.user(with_token(rsa_token(sub=f"user-{n}"))) for n in range(50)))
    assert [user.id for user in users] == [f"user-{n}" for n in range(50)]
    assert provider.fetches == 1


async def test_fifty_requests_with_a_new_key_share_one_fetch(provider: Provider, clock: Clock) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        clock.now += 10
        provider.keys = [public(RSA_NEXT, kid="next")]
        token = with_token(rsa_token(RSA_NEXT, "next"))
        assert await asyncio.gather(*(way.user(token) for _ in range(50))) == [ALICE] * 50
    assert provider.fetches == 2


async def test_cancelled_first_request_does_not_fail_the_others(provider: Provider, clock: Clock) -> None:
    provider.responding.clear()
    async with key_set(provider, clock) as way:
        first = asyncio.create_task(way.user(with_token(rsa_token())))
        await until(lambda: provider.fetches == 1)
        clock.now += 60  # however long it takes, one fetch is enough
        others = [asyncio.create_task(way.user(with_token(rsa_token()))) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        provider.responding.set()
        assert await asyncio.gather(*others) == [ALICE] * 5
    assert provider.fetches == 1


async def test_keys_arrive_even_when_every_waiting_request_is_cancelled(provider: Provider) -> None:
    provider.responding.clear()
    async with key_set(provider) as way:
        only = asyncio.create_task(way.user(with_token(rsa_token())))
        await until(lambda: provider.fetches == 1)
        only.cancel()
        with pytest.raises(asyncio.CancelledError):
            await only
        provider.responding.set()
        assert await way.user(with_token(rsa_token())) == ALICE
    assert provider.fetches == 1


async def test_closing_ends_a_fetch_under_way(provider: Provider) -> None:
    provider.responding.clear()
    async with key_set(provider) as way:
        waiting = asyncio.create_task(way.user(with_token(rsa_token())))
        await until(lambda: provider.fetches == 1)
        await way.close()
        with pytest.raises(SignInUnavailable):
            await waiting
        provider.responding.set()


def goes_away(provider: Provider) -> None:
    provider.stop()


def fails(provider: Provider) -> None:
    provider.status, provider.body = 503, b'{"keys": []}'


def redirects(provider: Provider) -> None:
    provider.status = 302


def breaks(body: bytes) -> Callable[[Provider], None]:
    def broken(provider: Provider) -> None:
        provider.body = body

    return broken


def grows(provider: Provider) -> None:
    provider.keys.append({"kty": "x" * MOST_KEY_SET_BYTES})


def hangs(provider: Provider) -> None:
    provider.responding.clear()


BROKEN = [
    *(b"", b"<html>", b"\xff", b"[]", b"{}", b'{"keys": []}', b'{"keys": 1}', b'{"keys": [1]}'),
    *(b'{"keys": [{"kty": "oct", "k": "AAAA"}]}', b"[" * 100_000, b'{"keys": [' + b'{"a":' * 50_000),
]
FAULTS = [goes_away, fails, redirects, grows, hangs, *map(breaks, BROKEN)]


@pytest.fixture
def wait_at_most(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Changes the time limit, so that the tests need not wait for the real one."""
    return lambda seconds: monkeypatch.setattr("threadkeep.http.sign_in.key_set.FETCH_TIMEOUT_S", seconds)


@pytest.mark.parametrize("fault", FAULTS)
async def test_sign_in_is_unavailable_until_the_first_keys_arrive(
    fault: Callable[[Provider], None],
    provider: Provider,
    clock: Clock,
    wait_at_most: Callable[[float], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault(provider)
    wait_at_most(0.3)
    async with key_set(provider, clock) as way:
        for _ in range(3):
            with pytest.raises(SignInUnavailable):
                await way.user(with_token(rsa_token()))
        assert provider.fetches <= 1  # and the next requests are answered at once
        assert "couldn't fetch" in caplog.text
        provider.responding.set()


@pytest.mark.parametrize("fault", FAULTS)
async def test_old_keys_serve_while_the_provider_is_away(
    fault: Callable[[Provider], None],
    provider: Provider,
    clock: Clock,
    wait_at_most: Callable[[float], None],
) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        fault(provider)
        wait_at_most(0.3)
        for _ in range(3):
            clock.now += 3600
            assert await way.user(with_token(rsa_token())) == ALICE
            assert "not signed" in await refusal(way, with_token(rsa_token(kid="unknown")))
        provider.responding.set()


async def test_provider_that_starts_late_is_found_after_a_second(provider: Provider, clock: Clock) -> None:
    provider.status = 503
    async with key_set(provider, clock) as way:
        with pytest.raises(SignInUnavailable):
            await way.user(with_token(rsa_token()))
        provider.status = 200
        clock.now += 1
        assert await way.user(with_token(rsa_token())) == ALICE


async def test_provider_that_comes_back_brings_its_new_keys(provider: Provider, clock: Clock) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        clock.now += 600
        provider.status = 503
        assert await way.user(with_token(rsa_token())) == ALICE
        provider.status, provider.keys = 200, [public(RSA_NEXT, kid="next")]
        clock.now += 10
        assert await way.user(with_token(rsa_token(RSA_NEXT, "next"))) == ALICE
        assert "not signed" in await refusal(way, with_token(rsa_token()))


async def test_nobody_waits_twice_for_a_provider_that_hangs(
    provider: Provider, clock: Clock, wait_at_most: Callable[[float], None]
) -> None:
    async with key_set(provider, clock) as way:
        await way.user(with_token(rsa_token()))
        clock.now += 600
        provider.responding.clear()
        wait_at_most(0.3)
        assert await way.user(with_token(rsa_token())) == ALICE
        clock.now += 10
        wait_at_most(3600)
        async with asyncio.timeout(PATIENCE_S / 2):  # the provider is silent for longer
            assert await way.user(with_token(rsa_token())) == ALICE
        await until(lambda: provider.fetches == 3)  # tried again, behind everyone's back
        provider.responding.set()


async def test_slow_drip_ends_at_the_time_limit(wait_at_most: Callable[[float], None]) -> None:
    wait_at_most(0.3)
    ended = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        while not writer.is_closing() and not reader.at_eof():
            writer.write(b" ")
            await asyncio.sleep(0.05)
        writer.close()
        ended.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server, httpx2.AsyncClient(trust_env=False) as client:
        way = KeySetSignIn(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", Expected(), client)
        with pytest.raises(SignInUnavailable):
            await way.user(with_token(rsa_token()))
        await way.close()
        await ended.wait()


@pytest.mark.parametrize("url", ["http://\x00", "https://", "ftp://id.example/keys", "http://127.0.0.1:1/"])
async def test_unusable_address_of_the_provider_makes_sign_in_unavailable(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        way = KeySetSignIn(url, Expected(), client)
        with pytest.raises(SignInUnavailable):
            await way.user(with_token(rsa_token()))
        await way.close()
    assert "couldn't fetch" in caplog.text


async def test_provider_that_is_away_is_told_and_when_to_come_back(tmp_path: Path) -> None:
    named: dict[str, Any] = {"jwt_issuer": "https://id.example", "jwt_audience": "chat"}
    app = create_app(Settings.load({}, data=tmp_path, jwks_url="http://127.0.0.1:1/keys", **named))
    async with app.lifespan():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            response = await client.get("/api/me", headers={"Authorization": f"Bearer {rsa_token()}"})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "SIGN_IN_UNAVAILABLE")
    assert response.headers["retry-after"] == "1"
