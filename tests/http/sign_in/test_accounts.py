"""Which account a connection comes from, and who is let in where nobody signs in."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
import uvicorn

from tests.http.calls import new_agent, refusal
from tests.talking import Talk, talking
from threadkeep import Settings, create_app
from threadkeep.bootstrap import Runtime
from threadkeep.client import Client
from threadkeep.domain.data_folder import TOKEN_REQUIRED
from threadkeep.domain.ids import AgentId, new_uuid
from threadkeep.domain.mcp import StdioServer
from threadkeep.http.server.server import SignalFreeServer
from threadkeep.http.sign_in import accounts as accounts_module
from threadkeep.http.sign_in import methods
from threadkeep.http.sign_in.accounts import Accounts, Address
from threadkeep.http.sign_in.local_token import is_token_required, make_token, read_token
from threadkeep.http.sign_in.socket_owner import socket_owner
from threadkeep.mcp.processes.programs import ServerKey

PROGRAM = {"settings": {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}}
SOMEBODY_ELSE = 54321


@contextmanager
def connected(family: int, host: str, to: str) -> Generator[tuple[socket.socket, Address, Address]]:
    """A client's socket, and both ends as the server sees them."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind) as listener, socket.socket(family) as client:
        listener.bind((host, 0))
        listener.listen()
        client.connect((to, listener.getsockname()[1]))
        server, peer = listener.accept()
        with server:
            yield client, peer[:2], server.getsockname()[:2]


@pytest.mark.parametrize(
    ("family", "host", "to"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "127.0.0.1", "::ffff:127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
    ],
)
async def test_kernel_tells_whose_process_is_at_the_other_end(family: int, host: str, to: str):
    with connected(family, host, to) as (_, client, server):
        assert await Accounts().of(client, server) == os.geteuid()
        assert await Accounts().of(server, ("127.0.0.1", 1)) is None
        assert await Accounts().of(("not an address", 1), server) is None


async def test_kernel_is_asked_for_one_socket_and_its_tables_only_if_it_does_not_know(tmp_path: Path):
    nothing = tmp_path / "tcp", tmp_path / "tcp6"
    for table in nothing:
        table.write_text("  sl\n")
    with connected(socket.AF_INET, "127.0.0.1", "127.0.0.1") as (_, client, server):
        assert await Accounts(nothing).of(client, server) == os.geteuid()
        assert await Accounts(nothing).of(client, ("127.0.0.1", 1)) is None
        near, far = ip_address(client[0]), ip_address(server[0])
        with pytest.raises(OSError):
            socket_owner(far, server[1], near, 1)  # where we listen, but nobody is connected from there


@pytest.mark.parametrize("resets", [False, True])
async def test_connection_that_its_process_has_let_go_of_is_nobodys(resets: bool):
    """Such a one is told to be root's, or is told of no more: a request could be left behind by anybody."""
    with connected(socket.AF_INET, "127.0.0.1", "127.0.0.1") as (held, client, server):
        if resets:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        held.close()
        assert await Accounts().of(client, server) is None


async def test_each_connection_is_looked_up_once(tmp_path: Path):
    tables = tmp_path / "tcp", tmp_path / "tcp6"
    line = "   0: 0100007F:1F90 0100007F:2206 01 00000000:00000000 00:00000000 00000000  {} 0 77 1\n"
    tables[0].write_text("  sl  local_address rem_address st …\n" + line.format(1000))
    tables[1].write_text("  sl\n")
    accounts = Accounts(tables)
    client, server = ("127.0.0.1", 0x1F90), ("127.0.0.1", 0x2206)
    assert await accounts.of(client, server) == 1000
    tables[0].write_text(line.format(1001))
    assert await accounts.of(client, server) == 1000
    another = ("127.0.0.1", int("8080"))  # the same port again, another connection
    assert another == client
    assert await accounts.of(another, server) == 1001


async def test_connections_of_long_ago_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(accounts_module, "MOST_CONNECTIONS", 2)
    tables = tmp_path / "tcp", tmp_path / "tcp6"
    for table in tables:
        table.write_text("")
    accounts = Accounts(tables)
    for port in range(5):
        await accounts.of(("127.0.0.1", port), ("127.0.0.1", 1))
    assert len(accounts._seen) == 2  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.load({}, data=tmp_path / "data", gateway="openai", embedding_url="off")


@pytest.fixture
async def here(settings: Settings) -> AsyncIterator[Talk]:
    """A server without a sign-in on a real port."""
    async with talking(settings) as talk:
        yield talk


@pytest.fixture
async def plain(here: Talk) -> AsyncIterator[httpx.AsyncClient]:
    """A client without the token."""
    async with httpx.AsyncClient(base_url=here.url) as client:
        yield client


async def test_own_account_gets_in_without_the_token_while_there_is_no_program(plain: httpx.AsyncClient):
    me = (await plain.get("/api/me")).json()
    assert (me["id"], me["role"]) == ("local", "admin")
    await new_agent(plain)


async def test_once_a_program_is_saved_everybody_needs_the_token(here: Talk, plain: httpx.AsyncClient):
    """It runs under our account: otherwise it would be the admin `local`, and approve its own calls."""
    response = await plain.post("/api/agents", json={"name": "A", **PROGRAM})
    refusal(response, 403, "FORBIDDEN", "settings.mcpServers.time")
    await new_agent(here.client, **PROGRAM)
    for path in ("/api/me", "/api/agents", "/api/conversations"):
        error = refusal(await plain.get(path), 401, "UNAUTHENTICATED")
        assert "threadkeep open" in error["message"]
    assert (await here.client.get("/api/me")).json()["role"] == "admin"


async def test_program_that_was_saved_before_the_start_needs_the_token(settings: Settings):
    async with talking(settings) as talk:
        made = await new_agent(talk.client, **PROGRAM)
        await talk.client.patch(
            f"/api/agents/{made['id']}", json={"settings": {"mcpServers": {"time": None}}}
        )
    # It may have left a process behind, which needs no more of us than our address.
    await _check_is_required(settings)
    (settings.data / TOKEN_REQUIRED).unlink()
    async with talking(settings) as talk, httpx.AsyncClient(base_url=talk.url) as plain:
        assert (await plain.get("/api/me")).status_code == 200
        await talk.client.patch(f"/api/agents/{made['id']}", json=PROGRAM)
    (settings.data / TOKEN_REQUIRED).unlink()  # as in a restored backup, or an older version's folder
    await _check_is_required(settings)


async def test_promptx_of_the_operator_needs_the_token(settings: Settings):
    await _check_is_required(
        Settings.load({}, data=settings.data, embedding_url="off", promptx_command="npx -y dpml-prompt")
    )


def test_token_is_required_before_a_program_starts(settings: Settings):
    environment = Runtime(settings, is_local=True)._environment  # pyright: ignore[reportPrivateUsage]
    assert not is_token_required(settings.data)
    environment.program(
        ServerKey(AgentId(new_uuid()), "time", None), StdioServer("uvx", ("mcp-server-time",))
    )
    assert is_token_required(settings.data)


async def _check_is_required(settings: Settings) -> None:
    async with talking(settings) as talk, httpx.AsyncClient(base_url=talk.url) as plain:
        refusal(await plain.get("/api/me"), 401, "UNAUTHENTICATED")
        assert (await talk.client.get("/api/me")).status_code == 200


async def test_without_sign_in_only_our_own_server_lets_anybody_in(settings: Settings, tmp_path: Path):
    """`uvicorn --uds` knows no account and no port at the other end."""
    app = create_app(settings)
    path = str(tmp_path / "socket")
    server = SignalFreeServer(uvicorn.Config(app, uds=path, log_config=None, lifespan="off"))
    async with app.lifespan():
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        for transport in (httpx.AsyncHTTPTransport(uds=path), httpx.ASGITransport(app)):
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                error = refusal(await client.get("/api/me"), 403, "FORBIDDEN")
                assert "threadkeep serve" in error["message"]
                assert "create_app()" in error["message"]
                assert "threadkeep invite NAME" in error["message"]
                signed = {"Authorization": f"Bearer {make_token(settings.data)}"}
                refusal(await client.get("/api/me", headers=signed), 403, "FORBIDDEN")
        server.should_exit = True
        await serving


async def test_other_accounts_are_turned_away_with_a_sentence(here: Talk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(methods.os, "geteuid", lambda: SOMEBODY_ELSE)
    monkeypatch.setattr(methods, "ROOT", SOMEBODY_ELSE)
    for path in ("/api/me", "/api/agents", "/api/conversations"):
        error = refusal(await here.client.get(path), 403, "FORBIDDEN")
        assert "account that runs this server" in error["message"]
        for way in ("threadkeep invite NAME", "[sign_in.NAME]", "THREADKEEP_JWKS_URL"):
            assert way in error["message"]
    refusal(await here.client.post("/api/agents", json={"name": "A"}), 403, "FORBIDDEN")
    assert (await here.client.get("/healthz")).status_code == 200


async def test_headers_do_not_say_where_a_request_comes_from(here: Talk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(methods.os, "geteuid", lambda: SOMEBODY_ELSE)
    monkeypatch.setattr(methods, "ROOT", SOMEBODY_ELSE)
    for name in ("testclient", "127.0.0.1", "127.0.0.1:123"):
        headers = {"X-Forwarded-For": name, "Forwarded": f"for={name}", "X-Real-Ip": name}
        refusal(await here.client.get("/api/me", headers=headers), 403, "FORBIDDEN")


async def test_request_left_behind_by_a_closed_connection_does_nothing(here: Talk):
    body = b'{"name": "Left behind"}'
    head = f"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
    held = writer.get_extra_info("socket")
    held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
    writer.transport.abort()
    agents = (await here.client.get("/api/agents")).json()["items"]
    assert [it["name"] for it in agents] == ["Assistant"]


async def test_application_that_is_called_in_this_process_is_our_own(settings: Settings):
    app = create_app(settings)
    async with app.lifespan(), Client("http://localhost:8710", app=app) as client:
        assert [agent.name async for agent in client.agents()] == ["Assistant"]


@pytest.fixture
def unknown_accounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A system that does not tell accounts apart."""
    monkeypatch.setattr(methods, "Accounts", lambda: Accounts((tmp_path / "no", tmp_path / "tables")))


@pytest.mark.usefixtures("unknown_accounts")
async def test_where_accounts_are_unknown_programs_need_the_token(settings: Settings):
    async with talking(settings) as talk, httpx.AsyncClient(base_url=talk.url) as plain:
        agent = await new_agent(plain)  # all else goes without it
        error = refusal(
            await plain.patch(f"/api/agents/{agent['id']}", json=PROGRAM),
            403, "FORBIDDEN", "settings.mcpServers.time",
        )  # fmt: skip
        assert "threadkeep open" in error["message"]
        for token, status in (("wrong", 403), (make_token(settings.data), 200)):
            signed = {"Authorization": f"Bearer {token}"}
            patched = await talk.client.patch(f"/api/agents/{agent['id']}", json=PROGRAM, headers=signed)
            assert patched.status_code == status


@pytest.mark.parametrize("known", [True, False])
async def test_required_token_is_required_for_everything(
    known: bool, settings: Settings, request: pytest.FixtureRequest
):
    if not known:
        request.getfixturevalue("unknown_accounts")
    strict = Settings.load({}, data=settings.data, gateway="openai", embedding_url="off", require_token=True)
    async with talking(strict) as talk, httpx.AsyncClient(base_url=talk.url) as plain:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic abc"}):
            refusal(await plain.get("/api/me", headers=headers), 401, "UNAUTHENTICATED")
        signed = {"Authorization": f"Bearer {read_token(settings.data)}"}
        async with httpx.AsyncClient(base_url=talk.url, headers=signed) as client:
            assert (await client.get("/api/me")).json()["role"] == "admin"
            await new_agent(client, **PROGRAM)


def test_token_is_made_once_and_for_this_account_only(tmp_path: Path):
    data = tmp_path / "data"
    assert read_token(data) is None
    token = make_token(data)
    assert make_token(data) == read_token(data) == token
    assert len(token) >= 43
    assert {it.name for it in data.iterdir()} == {"token", ".gitignore"}
    assert (data / "token").stat().st_mode & 0o777 == 0o600
    (data / "token").chmod(0o644)
    make_token(data)
    assert (data / "token").stat().st_mode & 0o777 == 0o600


def test_first_requests_at_the_same_time_make_one_token(tmp_path: Path):
    for number in range(20):
        data = tmp_path / str(number)
        with ThreadPoolExecutor(8) as threads:
            tokens = set(threads.map(make_token, [data] * 8))
        assert tokens == {read_token(data)}
        assert {it.name for it in data.iterdir()} == {"token", ".gitignore"}
