"""The transport of our own, against servers that do everything HTTP/1.1 allows."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.gateways.asking import QUESTION, WIRES, Naps, ask, make_gateway, text_of
from threadkeep.gateways.addresses import Address
from threadkeep.gateways.transport import StreamTransport
from threadkeep.ports.gateway import GatewayUnreachable
from threadkeep.testing import Say, ScriptedModel
from threadkeep.testing.waiting import PATIENCE_S
from threadkeep.tls import tls_context

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"
TO_THE_END = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello world"
OLD = b"HTTP/1.0 200 OK\r\n\r\nhello world"
ANNOUNCED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED


class Server:
    """Responds to anything with the same bytes, in the same pieces."""

    def __init__(self, pieces: Sequence[bytes], *, closes: bool) -> None:
        self.url = ""
        self.connections = 0
        self._pieces = pieces
        self._closes = closes
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            while await reader.read(65536):
                for piece in self._pieces:
                    writer.write(piece)
                    await asyncio.sleep(0)
                if self._closes:
                    break
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


@asynccontextmanager
async def serving(*pieces: bytes, closes: bool = True) -> AsyncGenerator[Server]:
    """A server while the block runs."""
    server = Server(pieces, closes=closes)
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listener:
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
        yield server
        await server.close()


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=StreamTransport(), trust_env=False, timeout=PATIENCE_S) as client:
        yield client


@pytest.mark.parametrize("data", [CHUNKED, SIZED, TO_THE_END, OLD, ANNOUNCED])
async def test_each_kind_of_body_is_read_whole(client: httpx2.AsyncClient, data: bytes):
    async with serving(data) as server:
        assert (await client.post(server.url, content=b"x")).text == "hello world"
    async with serving(*(data[at : at + 1] for at in range(len(data)))) as server:
        assert (await client.post(server.url, content=b"x")).text == "hello world"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(CHUNKED[:-5], id="no last chunk"),
        pytest.param(SIZED[:-1], id="too short"),
        pytest.param(SIZED[:20], id="half a head"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="another protocol"),
        pytest.param(CHUNKED.replace(b"5\r\n", b"zz\r\n"), id="no number"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n", id="endless headers"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc", id="upgrade"),
    ],
)
async def test_what_is_not_a_whole_response_is_an_error(client: httpx2.AsyncClient, data: bytes):
    async with serving(data) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(server.url, content=b"x")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", id="header"),
        pytest.param(CHUNKED[:-2] + b"X: ", id="trailer"),
    ],
)
async def test_line_that_never_ends_is_given_up(client: httpx2.AsyncClient, data: bytes):
    async with serving(data, *[b"y" * 10_000] * 100, closes=False) as server:
        with pytest.raises(httpx2.RemoteProtocolError, match="valid HTTP"):
            await client.post(server.url, content=b"x")


@pytest.mark.parametrize(
    ("data", "closes", "connections"),
    [
        pytest.param(SIZED, False, 1, id="kept open"),
        pytest.param(CHUNKED, False, 1, id="kept open, chunked"),
        pytest.param(SIZED, True, 3, id="closed without a word"),
        pytest.param(SIZED.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"), False, 3, id="announced"),
        pytest.param(SIZED + SIZED, False, 3, id="said twice"),
        pytest.param(SIZED + b"HTTP/1.1 200 OK\r\n", False, 3, id="more said than asked"),
    ],
)
async def test_connection_is_used_again_only_where_it_can_be(
    client: httpx2.AsyncClient, data: bytes, closes: bool, connections: int
):
    async with serving(data, closes=closes) as server:
        for _ in range(3):
            assert (await client.post(server.url)).text == "hello world"
            for _ in range(
                20
            ):  # what the server does next, and that we notice it, takes a few turns of the loop
                await asyncio.sleep(0.001)
        assert server.connections == connections


async def test_response_that_is_not_read_to_its_end_costs_the_connection(client: httpx2.AsyncClient):
    async with serving(CHUNKED[:-5], closes=False) as server:
        async with client.stream("POST", server.url) as response:
            assert response.status_code == 200
        async with client.stream("POST", server.url) as response:
            assert await anext(response.aiter_raw()) == b"hello world"


async def test_header_with_a_line_break_is_not_sent(client: httpx2.AsyncClient):
    async with serving(SIZED) as server:
        with pytest.raises(httpx2.LocalProtocolError) as refused:
            await client.post(server.url, headers={"x-secret": "a\r\nb: c"})
    assert "b: c" not in str(refused.value)


@pytest.mark.parametrize("wire", WIRES)
async def test_calls_one_after_another_share_a_connection(wire: str):
    with ScriptedModel() as model:
        gateway = make_gateway(wire, model.url)
        for _ in range(5):
            assert text_of([event async for event in gateway.stream(QUESTION)]) == "OK."
        await gateway.close()
        assert model.connections == 1


class CountingTransport(StreamTransport):
    """Counts how often it was closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        await super().aclose()


@pytest.mark.parametrize("wire", WIRES)
async def test_replaced_gateway_closes_its_connections_when_its_last_call_ends(wire: str):
    with ScriptedModel() as model:
        model.script([Say("Still"), Say(" here.")], [Say("Again.")])
        transport = CountingTransport()
        gateway = make_gateway(wire, model.url, transport=transport)
        call = gateway.stream(QUESTION)
        begun = await anext(call)
        await gateway.retire()
        assert transport.closed == 0  # a turn reads from it
        assert text_of([begun, *[event async for event in call]]) == "Still here."
        assert transport.closed == 1
        # The same turn goes on after its tools.
        assert text_of([event async for event in gateway.stream(QUESTION)]) == "Again."
        assert (transport.closed, model.connections) == (2, 2)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that nobody but the test trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "model")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, key_pem = folder / "certificate.pem", folder / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem, key_pem


@asynccontextmanager
async def with_tls(url: str, pem: Path, key: Path) -> AsyncGenerator[str]:
    """The same server behind TLS."""
    host, _, port = url.removeprefix("http://").partition(":")
    passing: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        passing.add(task)
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    sink.write(data)
            finally:
                writer.close()
                inner_writer.close()

        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer), return_exceptions=True)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem, key)
    async with await asyncio.start_server(pass_on, host, 0, ssl=context) as server:
        yield f"https://{host}:{server.sockets[0].getsockname()[1]}"
        await asyncio.gather(*passing)


@pytest.fixture
def fresh_tls() -> Iterator[None]:
    """Certificates are loaded anew, as the environment of the test says."""
    tls_context.cache_clear()
    yield
    tls_context.cache_clear()


@pytest.mark.usefixtures("fresh_tls")
async def test_tls_is_spoken_and_the_certificate_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pem, key = make_certificate(tmp_path)
    with ScriptedModel(otherwise=[Say("Hel"), Say("lo")]) as model:
        async with with_tls(model.url, pem, key) as url:
            _, error = await ask(make_gateway("openai", url, key="", naps=Naps()))
            assert isinstance(error, GatewayUnreachable)
            assert error.message == "Couldn't connect to the model provider."
            monkeypatch.setenv("SSL_CERT_FILE", str(pem))
            tls_context.cache_clear()
            events, error = await ask(make_gateway("openai", url, key="", naps=Naps()))
            assert error is None
            assert text_of(events) == "Hello"


@pytest.mark.parametrize("problem", [socket.gaierror("Name or service not known"), TimeoutError()])
async def test_host_without_an_address_cannot_be_reached_and_the_log_names_the_connection(
    problem: OSError, caplog: pytest.LogCaptureFixture
):
    async def fail(host: str, port: int) -> Sequence[Address]:
        raise problem

    transport, naps = StreamTransport(resolve=fail), Naps()
    gateway = make_gateway("openai", "http://models.test", transport=transport, naps=naps)
    events, error = await ask(gateway)
    assert isinstance(error, GatewayUnreachable)
    assert error.message == "Couldn't connect to the model provider."
    assert "couldn't connect to the model provider openai: " in caplog.text
    assert len(naps.taken) == len(events) > 1


async def test_proxy_of_the_machine_is_used_but_not_for_the_machine_itself(monkeypatch: pytest.MonkeyPatch):
    with ScriptedModel(otherwise=[Say("direct")]) as model:
        async with serving(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 11\r\n\r\nfrom proxy!") as proxy:
            for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
                monkeypatch.setenv(name, proxy.url)
            for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.delenv(name, raising=False)
            events, _ = await ask(make_gateway("openai", model.url))
            assert text_of(events) == "direct"
            _, error = await ask(make_gateway("openai", "http://models.test"))
            assert error
            assert error.message == "The model provider failed (502): from proxy!"
