"""Remote servers stay out of our own network, whatever their name leads to at the moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from ipaddress import ip_address, ip_network
from typing import Any

import httpx2
import pytest

from threadkeep.mcp import addresses
from threadkeep.mcp.addresses import allowed_addresses
from threadkeep.mcp.sessions.http_client import http_client
from threadkeep.mcp.sessions.incoming import IncomingMessages, LargeMessageReader
from threadkeep.networks import is_public

PUBLIC = ["8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "2606:4700::1111", "64:ff9b::808:808"]
OWN = ["127.0.0.1", "10.0.0.1", "0.0.0.0", "169.254.169.254", "100.64.0.1", "255.255.255.255", "198.18.0.1",
       "192.0.0.8", "192.0.0.10", "192.0.0.192", "::ffff:192.0.0.192", "64:ff9b:1::a00:1", "3fff::1",
       "168.63.129.16", "192.88.99.1", "::ffff:168.63.129.16", "64:ff9b::c058:6301", "2002:a83f:8110::1",
       "::1", "::", "::ffff:10.0.0.1", "::ffff:0:a00:1", "fe80::1", "fc00::1", "2001:db8::1",
       "64:ff9b::a00:1", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:f5ff:fffe"]  # fmt: skip


class Resolver:
    """Answers with the addresses that a test writes down, one answer after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        return [(0, 0, 0, "", (address, port)) for address in self.answers.pop(0)]


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch):
    """Puts a resolver in the place of the machine's own."""

    def put(*answers: list[str]) -> Resolver:
        resolver = Resolver(*answers)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver.getaddrinfo, raising=False)
        return resolver

    return put


@pytest.fixture
async def server() -> AsyncIterator[tuple[int, list[str]]]:
    """A web server on loopback, and the requests that it got."""
    got: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1], got
    listening.close()
    await listening.wait_closed()


def client() -> httpx2.AsyncClient:
    return http_client({"X-Key": "k"}, IncomingMessages(LargeMessageReader()).shrink, allow_private=False)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet_are_public(address: str):
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", OWN)
def test_special_addresses_are_not_public_in_any_disguise(address: str):
    assert not is_public(ip_address(address))


async def test_name_with_one_private_address_among_public_ones_is_refused(resolve: Any):
    resolve(["8.8.8.8", "10.0.0.1"])
    with pytest.raises(PermissionError, match="private or local"):
        await allowed_addresses("mcp.example", 443)


async def test_networks_that_the_operator_denies_are_denied_even_where_private_ones_are_allowed(resolve: Any):
    denied = [ip_network("203.0.114.0/24"), ip_network("10.1.0.0/16"), ip_network("2606:4700::/32")]
    for address in ("203.0.114.7", "10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "2606:4700::1111"):
        for allow_private in (False, True):
            resolve(["8.8.8.8", address])
            with pytest.raises(PermissionError, match="blocked"):
                await allowed_addresses("mcp.example", 443, allow_private=allow_private, denied=denied)
    resolve(["10.2.0.1"])
    assert await allowed_addresses("a.example", 443, allow_private=True, denied=denied) == ["10.2.0.1"]
    resolve(["8.8.8.8"])
    assert await allowed_addresses("a.example", 443, denied=denied) == ["8.8.8.8"]


async def test_client_that_may_reach_private_addresses_reaches_no_denied_one(server: tuple[int, list[str]]):
    port, got = server
    for denied, requests in ((["127.0.0.0/8"], 0), (["10.0.0.0/8"], 1)):
        networks = [ip_network(it) for it in denied]
        small = IncomingMessages(LargeMessageReader()).shrink
        async with http_client({}, small, allow_private=True, denied=networks) as client:
            with contextlib.suppress(httpx2.ConnectError):
                await client.get(f"http://127.0.0.1:{port}/")
        assert len(got) == requests


async def test_address_with_a_zone_is_refused(resolve: Any):
    resolve(["fe80::1%eth0"])
    with pytest.raises(PermissionError):
        await allowed_addresses("mcp.example", 443)


async def test_loopback_is_not_reached_by_any_of_its_names(server: tuple[int, list[str]]):
    port, got = server
    for host in ("127.0.0.1", "localhost", "2130706433"):
        async with client() as http:
            with pytest.raises(httpx2.ConnectError, match="private or local"):
                await http.get(f"http://{host}:{port}/mcp")
    assert got == []


async def test_name_that_leads_elsewhere_the_second_time_is_refused(
    resolve: Any, server: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch
):
    """DNS rebinding. Loopback plays the Internet here, and 10.0.0.1 our own network."""
    port, got = server
    monkeypatch.setattr(addresses, "is_public", lambda address: str(address) == "127.0.0.1")  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    resolver = resolve(["127.0.0.1"], ["10.0.0.1"])
    async with client() as http:
        assert (await http.get(f"http://mcp.example:{port}/mcp")).text == "ok"
        with pytest.raises(httpx2.ConnectError, match=r"mcp\.example is on a private or local network"):
            await http.get(f"http://mcp.example:{port}/mcp")
    # The address that was looked at is the one that was used: nobody has asked a third time.
    assert resolver.asked == ["mcp.example", "mcp.example"]
    (request,) = got
    assert request.startswith("GET /mcp HTTP/1.1\r\n")
    assert f"host: mcp.example:{port}\r\n" in request.lower()
    assert "x-key: k\r\n" in request.lower()


async def test_second_address_is_tried_when_the_first_does_not_answer(
    resolve: Any, server: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(addresses, "is_public", lambda address: True)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    resolve(["127.0.0.2", "127.0.0.1"])
    async with client() as http:
        response = await http.post(f"http://mcp.example:{server[0]}/mcp", json={"a": 1})
        assert response.text == "ok"
        assert response.request.url.host == "mcp.example"


async def test_name_that_does_not_exist_is_a_failed_connection():
    async with client() as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get("http://nowhere.invalid/mcp")
        with pytest.raises((httpx2.ConnectError, httpx2.InvalidURL)):
            await http.get(f"http://{'a' * 70}.example/mcp")


async def test_certificate_is_checked_for_the_name_and_not_for_the_address(
    resolve: Any, monkeypatch: pytest.MonkeyPatch
):
    resolve(["8.8.8.8"])
    sent: list[httpx2.Request] = []

    async def note(_: object, request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        raise httpx2.ConnectError("nobody is there", request=request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", note)
    async with client() as http:
        with pytest.raises(httpx2.ConnectError, match="nobody is there"):
            await http.get("https://mcp.example/mcp")
    (request,) = sent
    assert (request.url.host, request.headers["host"]) == ("8.8.8.8", "mcp.example")
    assert request.extensions["sni_hostname"] == "mcp.example"
